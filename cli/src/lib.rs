//! The `mcpbolt` command as a library: inspects a server, calls its tools, logs in, passes a server on, or serves a
//! sample server. The program of this crate and those of the Python and Node packages are [`run`] with their own arguments. It
//! uses only the public API of `mcpbolt`.

mod carrier;
mod gateway;
mod health;
mod inspect;
mod load;
mod log;
mod login;
mod network;
mod on_the_spot;
mod otlp;
mod page;
mod poster;
mod proxy;
mod reference;
mod role;
mod serve;
mod session;
mod shown;
mod store;
#[cfg(unix)]
mod supervisor;
mod systemd;
mod watched;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use session::Start;
#[cfg(unix)]
pub use supervisor::Supervised;
use tracing_subscriber::filter::LevelFilter;

/// Inspect an MCP server, call its tools, log in to it, serve it over another transport, or serve a sample server.
#[derive(Parser)]
#[command(name = "mcpbolt", version)]
struct Args {
    /// Log level for stderr: error, warn, info, debug or trace; RUST_LOG also sets it
    #[arg(long, global = true, value_name = "LEVEL")]
    log: Option<String>,
    /// Write the log as JSON, an object on each line
    #[arg(long, global = true)]
    log_json: bool,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Show a server's name and version, and what it offers
    Inspect {
        /// Show JSON, including schemas
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        start: Start,
    },
    /// Serve a sample server that has every feature, to try clients with
    ///
    /// It is the server for the official conformance suite. Ctrl-C shuts it down gracefully, a second Ctrl-C
    /// at once; SIGUSR1 logs its counters. With --workers, SIGHUP replaces the processes one by one.
    Serve(Box<serve::Serve>),
    /// Serve another server at an address: over another transport, or in another revision of the protocol
    ///
    /// Between any two carriers, as in `mcpbolt proxy stdio: --to https://example.com/mcp` or
    /// `mcpbolt proxy http://127.0.0.1:8000/mcp -- npx some-server`. Each side speaks the revision that its peer
    /// speaks, so old clients can use new servers and the reverse. Credentials of clients are not passed on. A server
    /// that is a command is started for each client that opens a session, and ends with the session. Serves until
    /// Ctrl-C, SIGTERM or SIGHUP, a second one ends it at once; with --workers, SIGHUP replaces the processes one by one.
    Proxy(Box<proxy::Proxy>),
    /// Serve several servers as one
    ///
    /// The file lists the servers: in TOML, or in the JSON of an editor (mcpServers). Each has a prefix for its names.
    /// When the file changes, it is read again. Serves until Ctrl-C, SIGTERM or SIGHUP, a second one ends it at once; with
    /// --workers, SIGHUP replaces the processes one by one. SIGUSR1 logs the counters.
    Gateway(Box<gateway::Gateway>),
    /// Call a tool and print its result
    Call {
        /// The tool's name
        tool: String,
        /// Its arguments, a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
        /// Show the whole result as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        start: Start,
    },
    /// Load a server with requests, check the answers, and measure it
    ///
    /// With --rate, requests are sent when they are due, however long the server takes, and latency counts from then; so a
    /// server that stops for a while is seen as its clients see it. With --in-flight, each answer is followed by the next
    /// request. A server on this machine is also asked for its processor time and memory (Linux).
    #[command(after_help = load::EXAMPLES)]
    Load(Box<load::Args>),
    /// Log in to a server on HTTP, for the commands that connect to it
    ///
    /// Opens the browser; --device and --paste are for machines without one. What the login gave is kept in
    /// files that only this user can read, in the folder that MCPBOLT_CREDENTIALS names, else in the user's
    /// folder for program state. Access tokens are refreshed when they end.
    Login(Box<login::Login>),
    /// Forget the login for a server, and have its authorization server end the tokens
    Logout(login::Logout),
    /// Show the stored login for a server, without asking anybody
    Whoami(login::Whoami),
}

/// Runs the command with `arguments`, which do not include the program's name. Returns its exit status: 2 if
/// the arguments are wrong, 1 if it fails. Blocks until the command is done, and starts logging for the
/// whole process.
///
/// `other` are further subcommands, as name and description, which the caller runs itself. The help lists
/// them.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    other: &[(&'static str, &'static str)],
) -> u8 {
    let named =
        |(name, about): &(&'static str, &'static str)| clap::Command::new(*name).about(*about);
    let command = Args::command().subcommands(other.iter().map(named));
    let program = std::iter::once(OsString::from("mcpbolt"));
    let matches = command.try_get_matches_from(program.chain(arguments));
    let args = matches.and_then(|matches| Args::from_arg_matches(&matches));
    match args {
        Ok(args) => args.run(),
        Err(error) => {
            // Help and version are errors of clap, too. There is nobody to tell if they cannot be printed.
            let _ = error.print();
            u8::try_from(error.exit_code()).unwrap_or(1)
        }
    }
}

/// How [`supervise`] serves.
#[cfg(unix)]
#[derive(Clone, Debug)]
pub struct SuperviseOptions {
    /// Number of processes.
    pub workers: usize,
    /// How long calls in flight may take when a worker ends.
    pub grace: std::time::Duration,
    /// An address such as `http://127.0.0.1:9090` where `/readyz`, `/healthz` and `/livez` are answered.
    pub health: Option<mcpbolt::io::Address>,
    /// The signals that are heard: SIGHUP replaces the workers one by one, SIGUSR1 is passed on to them, any other ends them, and a second one
    /// kills them.
    pub signals: Vec<i32>,
}

/// Serves an address with several processes: starts `command` for each worker, and keeps them running. Each takes its socket by
/// [`WorkerProcess::inherited`](mcpbolt::io::WorkerProcess::inherited). Listening sockets of the service manager are used in place of those
/// at the addresses. Starts logging for the whole process.
///
/// # Errors
/// When an address cannot be listened on.
#[cfg(unix)]
pub fn supervise(
    command: Vec<OsString>,
    address: mcpbolt::io::Address,
    options: SuperviseOptions,
) -> std::io::Result<Supervised> {
    log::begin(None, LevelFilter::WARN, false);
    let start = || {
        let handed = systemd::Handed::new()?;
        let pages = health::listen("health", options.health.as_ref(), &handed)?;
        let supervision = supervisor::Supervision {
            command,
            address,
            workers: options.workers,
            grace: options.grace,
            reuse_port: false,
            listener: handed.mcp()?,
            signals: options.signals,
        };
        supervision.start(pages)
    };
    start().map_err(|error| std::io::Error::other(format!("{error:#}")))
}

impl Args {
    fn run(self) -> u8 {
        log::begin(self.log.as_deref(), LevelFilter::INFO, self.log_json);
        let done = match self.task {
            Task::Serve(args) => serve::serve(&args),
            Task::Proxy(args) => proxy::proxy(*args),
            Task::Gateway(args) => gateway::gateway(*args),
            Task::Inspect { json, start } => inspect::inspect(&start, json),
            Task::Call {
                tool,
                arguments,
                json,
                start,
            } => inspect::call(&start, &tool, &arguments, json),
            Task::Load(args) => load::load(&args),
            Task::Login(args) => login::login(&args),
            Task::Logout(args) => login::logout(&args),
            Task::Whoami(args) => login::whoami(&args),
        };
        done.unwrap_or_else(|error| {
            shown::tell(&format!("error: {}", shown::lines(&format!("{error:#}"))));
            1
        })
    }
}
