//! A server as a child process, and a client of it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use mcpbolt::client::{Client, block_on};
use mcpbolt::connection::{Answer, Batch, CallKey, Config, Disposition, Host, Incoming, Stray};
use mcpbolt::io::{ChildCommand, Running};
use mcpbolt::mcp::{ErrorKind, Side};

/// How a server is started.
#[derive(clap::Args)]
pub struct Start {
    /// A variable for the server, as NAME=VALUE, or NAME alone to hand on this environment's
    ///
    /// Without it the server gets only those that say who and where the user is: HOME, PATH and
    /// the like.
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// The folder it starts in
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
    /// The command that starts the server
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// A server that runs as long as this lives.
pub struct Session {
    pub client: Client,
    running: Running,
}

impl Session {
    /// Starts the server and opens the connection in whatever revision both speak.
    pub fn open(start: &Start) -> Result<Self> {
        let (program, args) = start.command.split_first().context("no command")?;
        let mut child = ChildCommand::new(program).args(args);
        for variable in &start.env {
            child = match variable.split_once('=') {
                Some((name, value)) => child.env(name, value),
                None => child.inherit_env(variable),
            };
        }
        if let Some(folder) = &start.cwd {
            child = child.cwd(folder);
        }
        let child = child
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let config = Config::new(Side::Client, "mcpbolt", env!("CARGO_PKG_VERSION"));
        let running = child.connect(Arc::new(config), |_| Onlooker)?;
        block_on(running.handle().opened()).with_context(|| format!("talking to {program}"))?;
        let client = Client::new(running.handle().clone());
        Ok(Self { client, running })
    }

    /// Ends the server.
    pub fn close(self) -> Result<()> {
        self.running.shutdown()?;
        Ok(())
    }
}

/// Offers nothing to the server, and tells of what it should not have sent.
struct Onlooker;

impl Host for Onlooker {
    fn request(&mut self, _: Incoming<'_>, answer: Answer<'_>) -> Disposition {
        answer.error(
            ErrorKind::MethodNotFound,
            "this client offers nothing",
            None,
        )
    }

    fn dispatch(&mut self, _: Batch) {}

    fn cancelled(&mut self, _: CallKey, _: Option<&str>) {}

    fn stray(&mut self, what: Stray, frame: &[u8]) {
        let shown = String::from_utf8_lossy(&frame[..frame.len().min(200)]);
        eprintln!("warning: the server sent what concerns nobody ({what:?}): {shown}");
    }
}
