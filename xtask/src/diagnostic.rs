//! `cargo xtask diagnostic`: the diagnostic server of one language, built and ready to start.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Result, bail};

use crate::log::{quote, show};
use crate::python::Run;
use crate::repo::{self, Build, cargo};
use crate::{node, python};

/// Build a diagnostic server and start it, or print the command that does
///
/// It offers echo(text), resize(text, n), sleep(ms), progress(n), stats() and, with MCP_TOOLS=N in
/// its environment, N more tools, so that any load generator can drive it.
#[derive(clap::Args)]
pub struct Args {
    /// The language it is written in
    #[arg(long)]
    lang: Language,
    /// Where it listens; without one, on standard input and output, which is all that every
    /// language has so far
    #[arg(long)]
    address: Option<String>,
    /// Build it quickly, with overflow and assertions checked: for tests, not for figures
    #[arg(long)]
    debug: bool,
    /// Print the command line, as the last line, instead of starting it
    #[arg(long)]
    print: bool,
}

/// The languages of our packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    Rust,
    Python,
    Node,
}

impl Language {
    pub const ALL: [Self; 3] = [Self::Rust, Self::Python, Self::Node];

    /// What `--lang` calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Node => "node",
        }
    }

    /// Where its diagnostic server is written.
    pub fn source(self) -> PathBuf {
        self.example("diagnostic")
    }

    /// Where an example of that name is written.
    fn example(self, name: &str) -> PathBuf {
        repo::root().join(match self {
            Self::Rust => format!("core/examples/{name}.rs"),
            Self::Python => format!("bindings-python/examples/{name}.py"),
            Self::Node => format!("bindings-node/examples/{name}.mjs"),
        })
    }
}

/// Builds what is missing and returns the words that start the server.
pub fn build(language: Language, how: Build, run: Run<'_>) -> Result<Vec<String>> {
    example(language, "diagnostic", "", how, run)
}

/// The same for the example of that name, which in Rust needs these features.
pub fn example(
    language: Language,
    name: &str,
    features: &str,
    how: Build,
    run: Run<'_>,
) -> Result<Vec<String>> {
    let source = language.example(name);
    if !source.exists() {
        bail!("there is no {}", source.display());
    }
    let words = match language {
        Language::Rust => {
            let mut build = cargo(&format!("build -p mcpbolt --example {name}"));
            build.args(how.flags());
            match how {
                // As the engine's own tests build it: there is nothing left to do after them.
                Build::Checked => build.arg("--all-features"),
                Build::Release => build.args(["--features", features]),
            };
            run(build)?;
            let built = repo::target().join(how.folder()).join("examples");
            vec![built.join(name)]
        }
        Language::Python => vec![python::package(how, run)?.python(), source],
        Language::Node => {
            node::package(how, run)?;
            let program = match how {
                Build::Checked => source,
                Build::Release => {
                    let program = node::installed()?.join(format!("{name}.mjs"));
                    std::fs::copy(source, &program)?;
                    program
                }
            };
            vec![PathBuf::from("node"), program]
        }
    };
    Ok(words
        .iter()
        .map(|word| word.display().to_string())
        .collect())
}

/// Runs a command whose output, whatever it is, is for the person at the terminal.
pub fn run_aside(mut command: Command) -> Result<()> {
    let shown = show(&command);
    let status = command
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()?;
    if !status.success() {
        bail!("{shown}: {status}");
    }
    Ok(())
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(address) = &args.address {
        bail!(
            "not every language has another carrier than standard input and output, so not {address} either"
        );
    }
    let words = build(args.lang, Build::asked(args.debug), &mut run_aside)?;
    if args.print {
        let line: Vec<String> = words.iter().map(|word| quote(word)).collect();
        println!("{}", line.join(" "));
        return Ok(ExitCode::SUCCESS);
    }
    let status = Command::new(&words[0]).args(&words[1..]).status()?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
