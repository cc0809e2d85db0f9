//! A whole `main`: where to serve, and when to end.

use std::env;
use std::io;

use crate::io::address::Address;
use crate::server::Server;

/// The environment variable with the address at which [`Server::run`] serves.
const ADDRESS_VARIABLE: &str = "MCPBOLT_ADDRESS";

impl Server {
    /// Serves as the `main` of a program: at the address that is its first argument or else the value of
    /// `MCPBOLT_ADDRESS`, or on stdin and stdout. Ends after SIGINT or SIGTERM, when requests in flight are
    /// answered, and on stdio with its client. Blocks. With the feature `tokio`, handlers may use tokio.
    ///
    /// ```no_run
    /// use mcpbolt::server::{Arguments, Server, Tool};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let server = Server::builder("greeter", "1.0.0")
    ///         .tool(Tool::new("greet"), |_: Arguments, _| async { "hello" })
    ///         .build()?;
    ///     Ok(server.run()?)
    /// }
    /// ```
    ///
    /// # Errors
    /// - [`InvalidInput`](io::ErrorKind::InvalidInput) when the text is not an address. `--help` and `-h`
    ///   print the usage instead, and end the process.
    /// - [`Unsupported`](io::ErrorKind::Unsupported) for an address other than `stdio:` without the feature
    ///   `http`.
    /// - As [`Serve::wait`](crate::io::Serve::wait).
    #[expect(clippy::print_stdout, reason = "usage is what stdout is for")]
    pub fn run(&self) -> io::Result<()> {
        let argument = env::args().nth(1);
        if matches!(argument.as_deref(), Some("-h" | "--help")) {
            let program = env::args().next().unwrap_or_default();
            println!("Usage: {program} [ADDRESS]\n\n{ADDRESSES}");
            std::process::exit(0);
        }
        let text = argument.or_else(|| env::var(ADDRESS_VARIABLE).ok());
        self.run_at(text.as_deref().unwrap_or("stdio:"))
    }

    /// Serves as the `main` of a program, as [`run`](Self::run) does, at this address.
    ///
    /// ```no_run
    /// use mcpbolt::server::Server;
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let server = Server::builder("greeter", "1.0.0").build()?;
    ///     let address = std::env::args().nth(1);
    ///     Ok(server.run_at(address.as_deref().unwrap_or("http://127.0.0.1:8000/mcp"))?)
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_at(&self, address: &str) -> io::Result<()> {
        match address.parse::<Address>()? {
            Address::Stdio(words) if words.is_empty() => self.serve_stdio().wait().map(drop),
            address => self.run_on_sockets(address),
        }
    }

    #[cfg(not(feature = "http"))]
    #[expect(clippy::unused_self, reason = "the same call as with the feature")]
    fn run_on_sockets(&self, address: Address) -> io::Result<()> {
        let why = format!(
            "{address}: this program serves only stdio:, for want of the feature `http` of mcpbolt"
        );
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    #[cfg(feature = "http")]
    fn run_on_sockets(&self, address: Address) -> io::Result<()> {
        let serving = self.serve(address).shutdown(signal()).start()?;
        eprintln!("listening on {}", serving.address());
        serving.wait();
        Ok(())
    }
}

const ADDRESSES: &str = "Serves MCP at ADDRESS, or at the address in MCPBOLT_ADDRESS, or on stdin and stdout.
ADDRESS is stdio:, unix:/path, tcp:host:port, or http://host:port/path (with WebSocket at ws:// of the same).";

/// Completes at the first SIGINT or SIGTERM, after which the next one ends the process.
#[cfg(feature = "http")]
async fn signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut interrupt), Ok(mut end)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        ) {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = end.recv() => {}
            }
            tokio::spawn(async move {
                tokio::select! {
                    _ = interrupt.recv() => std::process::exit(130),
                    _ = end.recv() => std::process::exit(143),
                }
            });
            return;
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
