//! A client connected to a server that it starts as a child process, or to a running one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use mcpbolt::chain::External;
use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::connection::{
    Answer, Batch, CallKey, Config, Disposition, Host, IncomingRequest, Stray,
};
use mcpbolt::io::http::HttpClientOptions;
use mcpbolt::io::{Address, Auth, ChildCommand, ConnectOptions, Running, wait_for_clients};
use mcpbolt::mcp::{ErrorKind, Side};

use crate::login;
use crate::network::Network;
use crate::on_the_spot::OnTheSpot;
use crate::shown;

/// How to start a server, or its address.
#[derive(Clone, clap::Args)]
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
    #[arg(long, value_name = "TOKEN", conflicts_with = "command")]
    bearer: Option<String>,
    /// A further header, for servers on HTTP and WebSocket, as NAME=VALUE
    #[arg(long = "header", value_name = "NAME=VALUE", conflicts_with = "command")]
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

    /// The same options for the server at an address, which may be `stdio:COMMAND`.
    pub fn moved_to(&self, address: Address) -> Self {
        let (at, command) = match address {
            Address::Stdio(words) => (None, words),
            address => (Some(address), Vec::new()),
        };
        Self {
            at,
            command,
            ..self.clone()
        }
    }

    /// The same with these credentials and variables, and no others.
    pub fn with_secrets(
        self,
        bearer: Option<String>,
        headers: Vec<String>,
        env: Vec<String>,
    ) -> Self {
        Self {
            bearer,
            headers,
            env,
            ..self
        }
    }

    /// The address or the program, without anything that may be secret.
    pub fn name(&self) -> String {
        match &self.at {
            Some(address) => address.public_name(),
            None => Address::Stdio(self.command.clone()).public_name(),
        }
    }

    /// The address of a running server; `None` if a command starts one for each connection.
    pub fn address(&self) -> Option<&Address> {
        self.at.as_ref()
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
        match &start.at {
            Some(address) => Self::connect(address, start, Self::builder(), None),
            None => Self::spawn(start),
        }
    }

    /// The same with a client of one's own, which has at most `in_flight` requests in flight.
    pub fn open_with(start: &Start, client: ClientBuilder, in_flight: usize) -> Result<Self> {
        match &start.at {
            Some(address) => Self::connect(address, start, client, Some(in_flight)),
            None => Self::spawn_with(start, client),
        }
    }

    /// A client that offers nothing to servers.
    pub fn builder() -> ClientBuilder {
        Client::builder("mcpbolt", env!("CARGO_PKG_VERSION"))
    }

    /// The process of a started server.
    pub fn child(&self) -> Option<u32> {
        self.running.as_ref().map(Running::id)
    }

    fn connect(
        address: &Address,
        start: &Start,
        client: ClientBuilder,
        in_flight: Option<usize>,
    ) -> Result<Self> {
        let mut options = start.options(address)?;
        options.http.max_concurrent = in_flight.or(options.http.max_concurrent);
        let client = block_on(client.open(address, options));
        Ok(Self {
            client: client.with_context(|| format!("talking to {address}"))?,
            running: None,
        })
    }

    fn spawn(start: &Start) -> Result<Self> {
        let (program, child) = start.child()?;
        let child = child
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let config = Config::new(Side::Client, "mcpbolt", env!("CARGO_PKG_VERSION"));
        let running = child.connect(Arc::new(config), |_| Onlooker)?;
        let client = Client::new(running.handle().clone());
        Self::running(client, running, program)
    }

    fn spawn_with(start: &Start, client: ClientBuilder) -> Result<Self> {
        let (program, child) = start.child()?;
        let child = child
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let (config, prepared) = client.prepare()?;
        let mut made = None;
        let running = child.connect(Arc::new(config), |handle| {
            let (client, host) = prepared.connect(handle.clone(), Arc::new(OnTheSpot));
            made = Some(client);
            host
        })?;
        let client = made.context("the child has no connection")?;
        Self::running(client, running, program)
    }

    fn running(client: Client, running: Running, program: &str) -> Result<Self> {
        block_on(running.handle().opened()).with_context(|| format!("talking to {program}"))?;
        Ok(Self {
            client,
            running: Some(running),
        })
    }

    /// Ends the started server, or closes the connection.
    pub fn close(self) -> Result<()> {
        Self::close_all([self]).map_or(Ok(()), Err)
    }

    /// Ends the started servers, and closes the connections: together, since what waits for one waits for all of this process.
    /// Returns the first error.
    pub fn close_all(sessions: impl IntoIterator<Item = Self>) -> Option<anyhow::Error> {
        let (mut first, mut has_connections) = (None, false);
        for session in sessions {
            match session.running {
                Some(running) => first = first.or(running.shutdown().err().map(Into::into)),
                None => has_connections = true,
            }
            drop(session.client);
        }
        if has_connections {
            wait_for_clients(FAREWELL);
        }
        first
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
