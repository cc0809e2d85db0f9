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
        repo::root().join(match self {
            Self::Rust => "core/examples/diagnostic.rs",
            Self::Python => "bindings-python/examples/diagnostic.py",
            Self::Node => "bindings-node/examples/diagnostic.mjs",
        })
    }
}

/// Builds what is missing and returns the words that start the server.
pub fn build(language: Language, how: Build, run: Run<'_>) -> Result<Vec<String>> {
    let source = language.source();
    if !source.exists() {
        bail!("there is no {}", source.display());
    }
    let words = match language {
        Language::Rust => {
            let mut build = cargo("build -p mcpbolt --example diagnostic");
            build.args(how.flags());
            if how == Build::Checked {
                // As the engine's own tests build it: there is nothing left to do after them.
                build.arg("--all-features");
            }
            run(build)?;
            vec![
                repo::target()
                    .join(how.folder())
                    .join("examples/diagnostic"),
            ]
        }
        Language::Python => vec![python::package(how, run)?.python(), source],
        Language::Node => {
            node::package(how, run)?;
            let program = match how {
                Build::Checked => source,
                Build::Release => {
                    let program = node::installed()?.join("diagnostic.mjs");
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
