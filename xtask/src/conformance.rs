//! `cargo xtask conformance`: the official conformance suite against our server.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::diagnostic::run_aside;
use crate::repo::{self, Build, Stamp, cargo, command};

/// Run the official conformance suite against our server on HTTP
///
/// Installs the suite, and the Node.js that it wants, into .cache/conformance. So far there is a
/// server in Rust.
#[derive(clap::Args)]
pub struct Args {
    /// One scenario instead of the whole suite
    #[arg(long)]
    scenario: Option<String>,
    /// Build the server optimised
    #[arg(long)]
    release: bool,
}

/// Ends the server with the run.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let folder = repo::cache().join("conformance");
    install(&folder)?;
    let how = Build::asked(!args.release);
    let mut build = cargo("build -p mcpbolt --example conformance --features http,skills");
    build.args(how.flags());
    run_aside(build)?;
    let program = repo::target()
        .join(how.folder())
        .join("examples/conformance");
    let child = Command::new(program)
        .arg("127.0.0.1:0")
        .stderr(Stdio::piped())
        .spawn()?;
    let mut server = Server(child);
    let stderr = server.0.stderr.take().context("the server has no stderr")?;
    let mut url = String::new();
    BufReader::new(stderr).read_line(&mut url)?;
    ensure!(url.starts_with("http"), "the server did not start");

    let modules = folder.join("node_modules");
    let mut suite = Command::new(modules.join(".bin/node"));
    suite
        .arg(modules.join("@modelcontextprotocol/conformance/dist/index.js"))
        .args(["server", "--url", url.trim()]);
    match &args.scenario {
        Some(scenario) => suite.args(["--scenario", scenario]),
        None => suite.args(["--suite", "all"]),
    };
    let status = suite.current_dir(&folder).status()?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

fn install(folder: &std::path::Path) -> Result<()> {
    let source = repo::root().join("conformance");
    let lock = std::fs::read_to_string(source.join("package-lock.json"))?;
    let stamp = Stamp::new("conformance", lock);
    if stamp.is_current() && folder.join("node_modules").exists() {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    for name in ["package.json", "package-lock.json"] {
        std::fs::copy(source.join(name), folder.join(name))?;
    }
    let mut npm = command("npm", ["ci", "--no-audit", "--no-fund"]);
    npm.current_dir(folder);
    run_aside(npm)?;
    stamp.write()
}
