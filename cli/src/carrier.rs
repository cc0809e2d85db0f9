//! Where a server of this command may be reached, by whom, and its bounds.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use mcpbolt::io::http::Network;
use mcpbolt::io::{Address, ServeOptions, Serving, TlsOptions};
use tracing::info;

use crate::role::ServerState;
use crate::shown;
use crate::store::Store;

/// Access rules and bounds.
#[derive(clap::Args)]
pub struct Carrier {
    /// A further host name of this server, besides the one in the address; requests with other Host
    /// headers are refused; * for any
    #[arg(long = "host", value_name = "NAME", help_heading = "Who may ask")]
    hosts: Vec<String>,
    /// A further origin whose pages may send requests, such as https://example.com, besides those of this
    /// machine; * for any
    #[arg(long = "origin", value_name = "ORIGIN", help_heading = "Who may ask")]
    origins: Vec<String>,
    /// Allow an address that other machines can reach, although clients are not authenticated
    #[arg(long, help_heading = "Who may ask")]
    anonymous: bool,
    /// Let pages of the allowed origins read the answers (CORS)
    #[arg(long, help_heading = "Who may ask")]
    cors: bool,
    /// The certificate chain for https: and wss:, in PEM
    #[arg(long, value_name = "FILE", requires = "key", help_heading = "TLS")]
    certificate: Option<PathBuf>,
    /// The certificate's key, in PEM
    #[arg(
        long,
        value_name = "FILE",
        requires = "certificate",
        help_heading = "TLS"
    )]
    key: Option<PathBuf>,
    /// The most connections at a time; ones with an unfinished handshake are closed first
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 65_536,
        help_heading = "Limits"
    )]
    max_connections: usize,
    /// The most connections of one address; three quarters of all by default
    #[arg(long, value_name = "COUNT", help_heading = "Limits")]
    max_connections_per_peer: Option<usize>,
    /// The most sessions at a time, for clients of the revisions with a handshake on HTTP
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 10_000,
        help_heading = "Limits"
    )]
    max_sessions: usize,
    /// The most sessions of one client; three quarters of all by default
    #[arg(long, value_name = "COUNT", help_heading = "Limits")]
    max_sessions_per_peer: Option<usize>,
    /// A proxy, or a network of proxies, whose Forwarded or X-Forwarded-For header is trusted
    #[arg(long, value_name = "ADDRESS", help_heading = "Limits")]
    trusted_proxy: Vec<Network>,
    /// Longest message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20, help_heading = "Limits")]
    max_message: usize,
    /// How long calls in flight may take at shutdown, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 5,
        help_heading = "Limits"
    )]
    grace: u64,
    /// Serve with several processes, which share the address; one that ends is started again
    ///
    /// SIGHUP replaces them one by one: over HTTP, a request without a session is answered if it takes at most 5 s and the --grace, and
    /// sessions begin anew unless there is a --store. A request of a session of one process that comes to another is passed on to its
    /// owner. The bounds above are those of each process.
    #[arg(long, value_name = "COUNT", help_heading = "Processes", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub workers: Option<usize>,
    /// Give each process a socket of its own (SO_REUSEPORT): the system distributes connections by a hash
    ///
    /// A connection then waits for its process, also while others are idle. The first process keeps the sockets open: the
    /// system would reset connections that wait at one that is closed.
    #[arg(long, requires = "workers", help_heading = "Processes")]
    pub reuse_port: bool,
    /// Where to answer /healthz and /readyz, such as http://127.0.0.1:9090, for supervisors and load balancers
    #[arg(long, value_name = "ADDRESS", help_heading = "Processes")]
    pub health: Option<Address>,
    #[command(flatten)]
    pub store: Store,
    /// Threads for network I/O, besides those for tools; without it all sockets share one
    #[arg(long, value_name = "COUNT", help_heading = "Limits")]
    threads: Option<usize>,
}

impl Carrier {
    /// How long calls in flight may take at shutdown.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.grace)
    }

    pub fn options(&self) -> ServeOptions {
        let mut options = ServeOptions {
            threads: self.threads,
            max_connections: self.max_connections,
            max_connections_per_peer: self.max_connections_per_peer,
            ..ServeOptions::default()
        };
        let http = &mut options.http;
        http.hosts.extend(self.hosts.iter().cloned());
        http.origins.extend(self.origins.iter().cloned());
        http.anonymous = self.anonymous;
        http.cors = self.cors;
        http.max_sessions = self.max_sessions;
        http.max_sessions_per_peer = self.max_sessions_per_peer;
        http.trusted_proxies.clone_from(&self.trusted_proxy);
        http.limits.max_message_bytes = self.max_message;
        http.grace = self.grace();
        options.stdio.grace = http.grace;
        // `watch` takes them, also while child processes end, which would outlive this one.
        options.stdio.signals = !cfg!(unix);
        if let (Some(certificate), Some(key)) = (self.certificate.clone(), self.key.clone()) {
            options.tls = Some(TlsOptions {
                certificate,
                key,
                clients: None,
            });
        }
        options
    }
}

/// Serves until Ctrl-C or SIGTERM; on stdio:, until the end of stdin.
pub fn run(serving: &Serving, address: &Address, state: &ServerState) -> Result<u8> {
    // Before the address is printed: whoever reads it may ask for the health, or send a signal, at once.
    watch(serving, state)?;
    state.is_ready();
    if !matches!(address, Address::Stdio(_)) && !state.is_worker {
        shown::print(&format!("{}\n", serving.address()))?;
    }
    serving.wait();
    state.is_draining();
    tell(serving);
    Ok(0)
}

/// Logs the counters.
fn tell(serving: &Serving) {
    let counts = serving.metrics().counts();
    info!(?counts, "metrics");
}

/// Stops the server at the first signal, and the process at the second. Logs the counters at SIGUSR1.
#[cfg(unix)]
fn watch(serving: &Serving, state: &ServerState) -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGUSR1])?;
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    let (stopper, metrics, state) = (serving.stopper(), serving.metrics().clone(), state.clone());
    std::thread::spawn(move || {
        let mut stopping = false;
        for signal in signals.forever() {
            if signal == SIGUSR1 {
                info!(counts = ?metrics.counts(), "metrics");
            } else if std::mem::replace(&mut stopping, true) {
                std::process::exit(128 + signal);
            } else {
                info!(signal, "asked to end");
                state.is_draining();
                stopper.stop();
            }
        }
    });
    Ok(())
}

/// Whether this process was started to ignore a signal, as by `nohup`. Known on Linux alone.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (signal - 1) != 0)
}

/// On other systems Ctrl-C ends the process.
#[cfg(not(unix))]
fn watch(_: &Serving, _: &ServerState) -> Result<()> {
    Ok(())
}
