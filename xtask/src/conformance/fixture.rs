//! Our server and client in each language, for the suite to test.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::language::Language;
use crate::log::quote;
use crate::node;
use crate::python::{self, Run};
use crate::repo::{self, Build, cargo};
use crate::together;

/// The command lines of the server and the client.
pub struct Fixture {
    server: Vec<PathBuf>,
    client: Vec<PathBuf>,
    /// What stands between the suite and the server, and the folder of its programs.
    through: Option<(Through, PathBuf)>,
}

impl Fixture {
    /// Builds both programs; and the command, to test servers through its proxy or its gateway.
    pub fn build(
        language: Language,
        how: Build,
        through: Option<Through>,
        run: Run<'_>,
    ) -> Result<Self> {
        let through = match through {
            Some(through) => {
                let build = match how {
                    Build::Checked => together::checked()?,
                    Build::Demo | Build::Release => {
                        let mut build = cargo("build -p mcpbolt-cli --bins --examples");
                        build.args(how.flags());
                        build
                    }
                };
                run(build)?;
                Some((through, repo::target().join(how.folder())))
            }
            None => None,
        };
        let root = repo::root();
        let (server, client) = match language {
            Language::Rust => {
                let build = match how {
                    Build::Checked => together::checked()?,
                    Build::Demo | Build::Release => {
                        let mut build = cargo("build -p mcpbolt --all-features");
                        build.args(how.flags());
                        build.args(["--example", "conformance"]);
                        build.args(["--example", "conformance_client"]);
                        build
                    }
                };
                run(build)?;
                let examples = repo::target().join(how.folder()).join("examples");
                (
                    vec![examples.join("conformance")],
                    vec![examples.join("conformance_client")],
                )
            }
            Language::Python => {
                let python = python::package(how, run)?.python();
                let examples = root.join("bindings-python/examples");
                (
                    vec![python.clone(), examples.join("conformance_server.py")],
                    vec![python, examples.join("conformance_client.py")],
                )
            }
            Language::Node => {
                node::package(how, run)?;
                let examples = root.join("bindings-node/examples");
                (
                    vec!["node".into(), examples.join("conformance-server.mjs")],
                    vec!["node".into(), examples.join("conformance-client.mjs")],
                )
            }
        };
        Ok(Self {
            server,
            client,
            through,
        })
    }

    /// The command line of the client.
    pub fn client(&self) -> String {
        let words = self.client.iter().map(|word| word.display().to_string());
        words.map(|word| quote(&word)).collect::<Vec<_>>().join(" ")
    }

    /// Starts the server on a free port; and what stands before it, if anything does.
    pub fn serve(&self) -> Result<Server> {
        let mut command = Command::new(&self.server[0]);
        command.args(&self.server[1..]).arg(ANY_PORT);
        let server = Server::start(&mut command, Stdio::null(), Stdio::piped())?;
        let Some((through, programs)) = &self.through else {
            return Ok(server);
        };
        let command = programs.join("mcpbolt");
        let mut between = Command::new(&command);
        match through {
            Through::Proxy => between.args(["proxy", ANY_PORT, "--to", &server.url]),
            Through::Gateway => {
                // The server keeps its names; the others, which the suite does not know, have prefixes.
                let adder = programs.join("examples/adder");
                let url = &server.url;
                let text = format!(
                    "[servers.suite]\nurl = {url:?}\nprefix = \"\"\n\
                     [servers.calculator]\ncommand = {adder:?}\n\
                     [servers.sample]\ncommand = [{command:?}, \"serve\", \"stdio:\"]\n"
                );
                let file = repo::cache().join("conformance/gateway.toml");
                std::fs::write(&file, text)?;
                between.args(["gateway", ANY_PORT, "--config"]).arg(file)
            }
        };
        let mut between = Server::start(&mut between, Stdio::piped(), Stdio::inherit())?;
        between.behind = Some(Box::new(server));
        Ok(between)
    }
}

/// Where a program listens that prints its address.
const ANY_PORT: &str = "http://127.0.0.1:0/mcp";

/// A program that stands between the suite and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Through {
    /// `mcpbolt proxy`, from HTTP to HTTP
    Proxy,
    /// `mcpbolt gateway`, before the server and two others with prefixes
    Gateway,
}

/// A running server; ends when dropped.
pub struct Server {
    child: Child,
    pub url: String,
    /// The server behind this one.
    behind: Option<Box<Server>>,
}

impl Server {
    /// Starts a program that prints its address on the one of its outputs that is piped.
    fn start(command: &mut Command, stdout: Stdio, stderr: Stdio) -> Result<Self> {
        let mut child = command.stdout(stdout).stderr(stderr).spawn()?;
        let output: Box<dyn Read + Send> = match (child.stderr.take(), child.stdout.take()) {
            (Some(stderr), _) => Box::new(stderr),
            (None, stdout) => Box::new(stdout.context("the server has no output")?),
        };
        let mut server = Self {
            child,
            url: String::new(),
            behind: None,
        };
        let mut lines = BufReader::new(output);
        // A server may print other lines before its address.
        while !server.url.contains("http://") {
            server.url.clear();
            let read = lines.read_line(&mut server.url)?;
            ensure!(read > 0, "the server did not start");
        }
        let at = server.url.find("http://").unwrap_or_default();
        let url = server.url[at..].split_whitespace().next();
        server.url = url.unwrap_or_default().to_owned();
        // Later output must be read, or a full pipe would block the server.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
