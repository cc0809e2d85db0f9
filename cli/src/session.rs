//! A client connected to a server that it starts as a child process, or to a running one.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use mcpbolt::chain::External;
use mcpbolt::client::{Client, block_on};
use mcpbolt::connection::{
    Answer, Batch, CallKey, Config, Disposition, Host, IncomingRequest, Stray,
};
use mcpbolt::io::http::HttpClientOptions;
use mcpbolt::io::{Address, Auth, ChildCommand, ConnectOptions, Running, wait_for_clients};
use mcpbolt::mcp::{ErrorKind, Revision, Revisions, Side};

use crate::login;
use crate::network::Network;
use crate::shown;

/// How to start a server, or its address.
#[derive(clap::Args)]
pub struct Start {
    /// A variable for the server, as NAME=VALUE, or NAME alone to pass on its current value
    ///
    /// Without it, the server gets only basic variables such as HOME and PATH.
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// The working directory of the server
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
    /// The address of a running server, instead of a command: http://…, https://…, ws://…, wss://…,
    /// tcp:HOST:PORT or unix:/PATH
    #[arg(long, visible_alias = "to", value_name = "ADDRESS", conflicts_with_all = ["command", "env", "cwd"])]
    at: Option<Address>,
    /// A bearer token, for servers on HTTP and WebSocket
    #[arg(long, value_name = "TOKEN", requires = "at")]
    bearer: Option<String>,
    /// A further header, for servers on HTTP and WebSocket, as NAME=VALUE
    #[arg(long = "header", value_name = "NAME=VALUE", requires = "at")]
    headers: Vec<String>,
    #[command(flatten)]
    network: Network,
    /// The command that starts the server
    #[arg(last = true, required_unless_present = "at", value_name = "COMMAND")]
    command: Vec<String>,
}

impl Start {
    /// The options of connecting to an address.
    fn options(&self, address: &Address) -> Result<ConnectOptions> {
        let header = |header: &String| {
            let pair = header
                .split_once('=')
                .map(|(name, value)| (name.into(), value.into()));
            pair.with_context(|| format!("{header:?} is not NAME=VALUE"))
        };
        let headers = self.headers.iter().map(header).collect::<Result<_>>()?;
        let auth = self.bearer.clone().map_or(Auth::None, Auth::Bearer);
        connecting(&self.network, address, auth, headers)
    }

    /// The command, and its program.
    fn child(&self) -> Result<(&str, ChildCommand)> {
        let (program, args) = self.command.split_first().context("no command")?;
        let mut child = ChildCommand::new(program).args(args);
        for variable in &self.env {
            child = match variable.split_once('=') {
                Some((name, value)) => child.env(name, value),
                None => child.inherit_env(variable),
            };
        }
        if let Some(folder) = &self.cwd {
            child = child.cwd(folder);
        }
        Ok((program, child))
    }

    /// The port of a running server on this machine.
    pub fn local_port(&self) -> Option<u16> {
        match self.at.as_ref()? {
            Address::Http(url) | Address::WebSocket(url) => {
                let authority = url.authority();
                let (host, port) = authority.rsplit_once(':')?;
                is_here(host).then(|| port.parse().ok())?
            }
            Address::Tcp { host, port, .. } => is_here(host).then_some(*port),
            _ => None,
        }
    }

    /// The server as the end of a chain.
    pub fn external(self) -> Result<External> {
        if let Some(address) = &self.at {
            let (name, options) = (address.public_name(), self.options(address)?);
            return Ok(External::at(name, address.clone(), options));
        }
        let name = Address::Stdio(self.command.clone()).public_name();
        self.child()?;
        // The command was just made, so making it again does not fail.
        let missing = || ChildCommand::new("");
        let command = move || self.child().map_or_else(|_| missing(), |(_, child)| child);
        Ok(External::command(name, command))
    }
}

/// Options of a connection to a server, with the user's login unless there are credentials.
pub fn connecting(
    network: &Network,
    address: &Address,
    auth: Auth,
    headers: Vec<(String, String)>,
) -> Result<ConnectOptions> {
    let is_authorization =
        |(name, _): &(String, String)| name.trim().eq_ignore_ascii_case("authorization");
    let has_credentials = auth != Auth::None || headers.iter().any(is_authorization);
    let has_login = matches!(address, Address::Http(_)) && !has_credentials;
    Ok(ConnectOptions {
        auth,
        headers,
        root_certificates: network.certificates()?,
        http: HttpClientOptions {
            authorization: has_login.then(login::stored).transpose()?,
            ..network.options()?
        },
        ..ConnectOptions::default()
    })
}

fn is_here(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// How long closing a connection may take.
pub const FAREWELL: Duration = Duration::from_secs(5);

/// A client, together with the child process of its server if it started one.
pub struct Session {
    pub client: Client,
    running: Option<Running>,
}

impl Session {
    /// Starts the server if there is a command, and connects in a revision that both sides support.
    pub fn open(start: &Start) -> Result<Self> {
        Self::open_in(start, None)
    }

    /// The same in one revision, or in any.
    pub fn open_in(start: &Start, revision: Option<Revision>) -> Result<Self> {
        let revisions =
            revision.map_or(Revisions::ALL, |revision| [revision].into_iter().collect());
        match &start.at {
            Some(address) => Self::connect(address, start, revisions),
            None => Self::spawn(start, revisions),
        }
    }

    /// The process of a started server.
    pub fn child(&self) -> Option<u32> {
        self.running.as_ref().map(Running::id)
    }

    fn connect(address: &Address, start: &Start, revisions: Revisions) -> Result<Self> {
        let options = start.options(address)?;
        let builder = Client::builder("mcpbolt", env!("CARGO_PKG_VERSION")).revisions(revisions);
        let client = block_on(builder.open(address, options));
        Ok(Self {
            client: client.with_context(|| format!("talking to {address}"))?,
            running: None,
        })
    }

    fn spawn(start: &Start, revisions: Revisions) -> Result<Self> {
        let (program, child) = start.child()?;
        let child = child
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let mut config = Config::new(Side::Client, "mcpbolt", env!("CARGO_PKG_VERSION"));
        config.revisions = revisions;
        let running = child.connect(Arc::new(config), |_| Onlooker)?;
        block_on(running.handle().opened()).with_context(|| format!("talking to {program}"))?;
        let client = Client::new(running.handle().clone());
        Ok(Self {
            client,
            running: Some(running),
        })
    }

    /// Ends the started server, or closes the connection.
    pub fn close(self) -> Result<()> {
        match self.running {
            Some(running) => drop(running.shutdown()?),
            None => {
                drop(self.client);
                wait_for_clients(FAREWELL);
            }
        }
        Ok(())
    }
}

/// Client handlers that offer nothing to the server, and report messages that it should not have sent.
struct Onlooker;

impl Host for Onlooker {
    fn request(&mut self, _: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
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
        let shown = shown::line(&shown);
        eprintln!("warning: the server sent an unrelated message ({what:?}): {shown}");
    }
}
