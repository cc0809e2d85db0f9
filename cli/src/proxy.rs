//! `mcpbolt proxy`: another server at an address of this one.

use anyhow::Result;
use mcpbolt::chain::Front;
use mcpbolt::io::{Address, wait_for_clients};

use crate::carrier::{self, Carrier};
use crate::session::{FAREWELL, Start};

/// Where to serve, and which server.
#[derive(clap::Args)]
pub struct Proxy {
    /// Where to serve: stdio:, http://127.0.0.1:8000/mcp, https://…, ws://…, tcp:HOST:PORT or unix:/PATH
    ///
    /// With port 0 the system chooses a port; the address is printed when the proxy is ready.
    address: Address,
    #[command(flatten)]
    start: Start,
    #[command(flatten)]
    carrier: Carrier,
}

/// Serves until Ctrl-C or SIGTERM; on stdio:, until the end of stdin.
pub fn proxy(args: Proxy) -> Result<u8> {
    let front = Front::new(args.start.external()?);
    let serving = front.serve(&args.address, args.carrier.options())?;
    let done = carrier::run(&serving, &args.address);
    drop((serving, front));
    wait_for_clients(FAREWELL);
    done
}
