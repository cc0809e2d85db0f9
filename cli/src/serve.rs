//! `mcpbolt serve`: the server of the conformance suite, on any address.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow};
use mcpbolt::io::{Address, ServeOptions, Serving, TlsOptions};
use tracing::info;

#[allow(dead_code, reason = "it is a module of an example, too")]
#[path = "../../core/examples/conformance/server.rs"]
mod conformance;

/// How the server is reached, and its bounds.
#[derive(clap::Args)]
pub struct Serve {
    /// Where to serve: http://127.0.0.1:8000/mcp, https://…, ws://…, tcp:HOST:PORT,
    /// unix:/PATH or stdio:
    ///
    /// Port 0 lets the system choose; the address is printed when the server is ready. WebSocket is
    /// served at the path of http, too. Behind tcp: and unix:, ?framing=length puts a length of
    /// four bytes before each message in place of a line end behind it.
    #[arg(default_value = "http://127.0.0.1:8000/mcp")]
    address: Address,
    /// A further name that clients may reach it by, beside that of the address: other Host
    /// headers are refused; * for any
    #[arg(long = "host", value_name = "NAME", help_heading = "Who may ask")]
    hosts: Vec<String>,
    /// An origin whose pages may ask, such as https://example.com; those of this machine may
    #[arg(long = "origin", value_name = "ORIGIN", help_heading = "Who may ask")]
    origins: Vec<String>,
    /// Let pages of those origins read the answers, by CORS
    #[arg(long, help_heading = "Who may ask")]
    cors: bool,
    /// The certificate for https: and wss:, and those that vouch for it, in PEM
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
    /// Connections at a time; further ones wait
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 65_536,
        help_heading = "Limits"
    )]
    max_connections: usize,
    /// Sessions at a time, of clients of the handshake revisions on HTTP
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 10_000,
        help_heading = "Limits"
    )]
    max_sessions: usize,
    /// Longest message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20, help_heading = "Limits")]
    max_message: usize,
    /// How long what is in flight may take at the end, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 5,
        help_heading = "Limits"
    )]
    grace: u64,
    /// Threads for sockets, beside those for tools; without it they share one
    #[arg(long, value_name = "COUNT", help_heading = "Limits")]
    threads: Option<usize>,
}

impl Serve {
    fn options(&self) -> ServeOptions {
        let mut options = ServeOptions {
            threads: self.threads,
            max_connections: self.max_connections,
            ..ServeOptions::default()
        };
        let http = &mut options.http;
        http.hosts.extend(self.hosts.iter().cloned());
        http.origins.clone_from(&self.origins);
        http.cors = self.cors;
        http.max_sessions = self.max_sessions;
        http.limits.max_message_bytes = self.max_message;
        http.grace = Duration::from_secs(self.grace);
        options.stdio.grace = http.grace;
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

/// Serves until it is asked to end: Ctrl-C, SIGTERM; the end of stdin on stdio:.
pub fn serve(args: &Serve) -> Result<ExitCode> {
    let server = conformance::server().map_err(|error| anyhow!(error))?;
    let serving = server.serve(&args.address, args.options())?;
    if !matches!(args.address, Address::Stdio(_)) {
        println!("{}", serving.address());
        watch(&serving)?;
    }
    serving.wait();
    tell(&serving);
    Ok(ExitCode::SUCCESS)
}

/// Writes the counters down.
fn tell(serving: &Serving) {
    let counts = serving.metrics().counts();
    info!(?counts, "metrics");
}

/// Ends the server at the first signal, the process at the second; writes the counters down at
/// SIGUSR1.
#[cfg(unix)]
fn watch(serving: &Serving) -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM, SIGUSR1])?;
    let (stopper, metrics) = (serving.stopper(), serving.metrics().clone());
    std::thread::spawn(move || {
        let mut stopping = false;
        for signal in signals.forever() {
            if signal == SIGUSR1 {
                info!(counts = ?metrics.counts(), "metrics");
            } else if std::mem::replace(&mut stopping, true) {
                std::process::exit(128 + signal);
            } else {
                info!(signal, "asked to end");
                stopper.stop();
            }
        }
    });
    Ok(())
}

/// Elsewhere Ctrl-C ends the process.
#[cfg(not(unix))]
fn watch(_: &Serving) -> Result<()> {
    Ok(())
}
