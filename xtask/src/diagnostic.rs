//! `cargo xtask diagnostic`: the diagnostic server of one language, built and ready to start.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Result, bail};

use crate::language::Language;
use crate::log::{quote, show};
use crate::python::Run;
use crate::repo::{self, Build, cargo};
use crate::{node, python, together};

/// Build a diagnostic server and start it, or print the command that starts it
///
/// The server offers echo(text), resize(text, n), sleep(ms), progress(n), stats() and, with MCP_TOOLS=N in
/// its environment, N more tools, so that any load generator can use it. MCP_TARGETS=1 adds the tools that
/// attacks target, MCP_KEYS=CLIENT:KEY,… a verifier, MCP_JWT=SECRET signed tokens beside it, MCP_QUOTA=N a
/// quota, MCP_OPENING=N a deadline of N seconds for the begin of a connection; MCP_TLS=CERTIFICATE,KEY
/// names the files for an address with TLS.
#[derive(clap::Args)]
pub struct Args {
    /// The language of the server
    #[arg(long)]
    lang: Language,
    /// Where it listens: stdio:, unix:/PATH, tcp:HOST:PORT, http://HOST:PORT/PATH or ws://HOST:PORT/PATH, the
    /// last two also as https and wss. With port 0 the system chooses a port; the server prints its address
    /// to standard error
    #[arg(long, default_value = STDIO, value_parser = address)]
    address: String,
    /// Build it quickly, with overflow checks and assertions: for tests, not for figures
    #[arg(long)]
    debug: bool,
    /// Print the command line, as the last line, instead of starting it
    #[arg(long)]
    print: bool,
}

/// The address of standard input and output.
pub const STDIO: &str = "stdio:";

/// The schemes of addresses, and the features of the crate that each needs.
const SCHEMES: [(&str, &str); 7] = [
    (STDIO, ""),
    ("unix:", "http"),
    ("tcp:", "http"),
    ("http://", "http"),
    ("ws://", "http"),
    ("https://", "http,tls"),
    ("wss://", "http,tls"),
];

/// Checks the scheme of an address to listen on. The server parses the rest.
fn address(text: &str) -> Result<String, String> {
    let is_known = |(scheme, _): &(&str, &str)| match *scheme {
        STDIO => text == STDIO,
        scheme => text.starts_with(scheme),
    };
    match SCHEMES.iter().any(is_known) {
        true => Ok(text.to_owned()),
        false => Err("a server listens on stdio:, unix:/PATH, tcp:HOST:PORT, http(s)://HOST:PORT/PATH or ws(s)://HOST:PORT/PATH".into()),
    }
}

/// Builds what is missing and returns the command line that starts the server on stdin and stdout.
pub fn build(language: Language, how: Build, run: Run<'_>) -> Result<Vec<String>> {
    build_for(language, STDIO, how, run)
}

/// Builds what is missing and returns the command line that starts the server on an address.
pub fn build_for(
    language: Language,
    address: &str,
    how: Build,
    run: Run<'_>,
) -> Result<Vec<String>> {
    let scheme = SCHEMES
        .iter()
        .find(|(scheme, _)| address.starts_with(scheme));
    let features = scheme.map_or("", |(_, features)| features);
    let mut words = example(language, "diagnostic", features, how, run)?;
    if address != STDIO {
        words.push(address.to_owned());
    }
    Ok(words)
}

/// The same for any example; the Rust one needs `features` of the crate.
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
            let build = match how {
                Build::Checked => together::checked()?,
                Build::Demo | Build::Release => {
                    let mut build = cargo(&format!("build -p mcpbolt --example {name}"));
                    build.args(how.flags()).args(["--features", features]);
                    build
                }
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
                Build::Release | Build::Demo => {
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

/// Runs a command with all its output on stderr, where the user reads it; stdout stays free.
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
    let how = Build::asked(args.debug);
    let words = build_for(args.lang, &args.address, how, &mut run_aside)?;
    if args.print {
        let line: Vec<String> = words.iter().map(|word| quote(word)).collect();
        println!("{}", line.join(" "));
        return Ok(ExitCode::SUCCESS);
    }
    let status = Command::new(&words[0]).args(&words[1..]).status()?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_listens_on_addresses_and_nothing_else() {
        for good in [
            "stdio:",
            "unix:/run/mcp.sock",
            "tcp:127.0.0.1:0",
            "http://127.0.0.1:0/mcp",
            "https://127.0.0.1:0/mcp",
            "ws://127.0.0.1:0/mcp",
            "wss://127.0.0.1:0/mcp",
        ] {
            assert_eq!(address(good).as_deref(), Ok(good));
        }
        for bad in ["stdio:cat", "ftp://host/", "127.0.0.1:8000", ""] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
