//! A client of a server that is a child process, or is somewhere already.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use mcpbolt::client::{Client, block_on};
use mcpbolt::connection::{Answer, Batch, CallKey, Config, Disposition, Host, Incoming, Stray};
use mcpbolt::io::{Address, Auth, ChildCommand, ConnectOptions, Running, farewell};
use mcpbolt::mcp::{ErrorKind, Side};

/// How a server is started, or where it is.
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
    /// The address of a server that runs already, instead of a command: http://…, https://…,
    /// ws://…, wss://…, tcp:HOST:PORT or unix:/PATH
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["command", "env", "cwd"])]
    at: Option<Address>,
    /// A token that shows who asks, for servers on HTTP and WebSocket
    #[arg(long, value_name = "TOKEN", requires = "at")]
    bearer: Option<String>,
    /// A further header, for servers on HTTP and WebSocket, as NAME=VALUE
    #[arg(long = "header", value_name = "NAME=VALUE", requires = "at")]
    headers: Vec<String>,
    /// The command that starts the server
    #[arg(last = true, required_unless_present = "at", value_name = "COMMAND")]
    command: Vec<String>,
}

/// How long the last words to a server may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// A server that runs as long as this lives, or a connection to one that does.
pub struct Session {
    pub client: Client,
    running: Option<Running>,
}

impl Session {
    /// Opens the connection in whatever revision both speak; starts the server if it is to be
    /// started.
    pub fn open(start: &Start) -> Result<Self> {
        match &start.at {
            Some(address) => Self::connect(address, start),
            None => Self::spawn(start),
        }
    }

    fn connect(address: &Address, start: &Start) -> Result<Self> {
        let header = |header: &String| {
            let pair = header
                .split_once('=')
                .map(|(name, value)| (name.into(), value.into()));
            pair.with_context(|| format!("{header:?} is not NAME=VALUE"))
        };
        let options = ConnectOptions {
            auth: start.bearer.clone().map_or(Auth::None, Auth::Bearer),
            headers: start.headers.iter().map(header).collect::<Result<_>>()?,
            ..ConnectOptions::default()
        };
        let builder = Client::builder("mcpbolt", env!("CARGO_PKG_VERSION"));
        let client = block_on(builder.open(address, options));
        Ok(Self {
            client: client.with_context(|| format!("talking to {address}"))?,
            running: None,
        })
    }

    fn spawn(start: &Start) -> Result<Self> {
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
        Ok(Self {
            client,
            running: Some(running),
        })
    }

    /// Ends the server that was started, or the connection.
    pub fn close(self) -> Result<()> {
        match self.running {
            Some(running) => drop(running.shutdown()?),
            None => {
                drop(self.client);
                farewell(FAREWELL);
            }
        }
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
