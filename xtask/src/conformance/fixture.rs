//! Our server and client in each language, for the suite to test.

use std::io::{BufRead, BufReader};
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
}

impl Fixture {
    /// Builds both programs.
    pub fn build(language: Language, how: Build, run: Run<'_>) -> Result<Self> {
        let root = repo::root();
        Ok(match language {
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
                Self {
                    server: vec![examples.join("conformance")],
                    client: vec![examples.join("conformance_client")],
                }
            }
            Language::Python => {
                let python = python::package(how, run)?.python();
                let examples = root.join("bindings-python/examples");
                Self {
                    server: vec![python.clone(), examples.join("conformance_server.py")],
                    client: vec![python, examples.join("conformance_client.py")],
                }
            }
            Language::Node => {
                node::package(how, run)?;
                let examples = root.join("bindings-node/examples");
                Self {
                    server: vec!["node".into(), examples.join("conformance-server.mjs")],
                    client: vec!["node".into(), examples.join("conformance-client.mjs")],
                }
            }
        })
    }

    /// The command line of the client.
    pub fn client(&self) -> String {
        let words = self.client.iter().map(|word| word.display().to_string());
        words.map(|word| quote(&word)).collect::<Vec<_>>().join(" ")
    }

    /// Starts the server on a free port.
    pub fn serve(&self) -> Result<Server> {
        let mut command = Command::new(&self.server[0]);
        let mut child = command
            .args(&self.server[1..])
            .arg("http://127.0.0.1:0/mcp")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = child.stderr.take().context("the server has no stderr")?;
        let mut server = Server {
            child,
            url: String::new(),
        };
        let mut lines = BufReader::new(stderr);
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

/// A running server; ends when dropped.
pub struct Server {
    child: Child,
    pub url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
