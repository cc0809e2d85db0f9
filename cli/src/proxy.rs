//! `mcpbolt proxy`: another server at an address of this one.

use anyhow::Result;
use mcpbolt::chain::Front;
use mcpbolt::io::{Address, wait_for_clients};
use mcpbolt::mcp::Revision;

use crate::carrier::{self, Carrier};
use crate::role::{self, Role};
use crate::session::{FAREWELL, Start};
use crate::watched::Watched;

/// Where to serve, and which server.
#[derive(clap::Args)]
pub struct Proxy {
    /// Where to serve: stdio:, http://127.0.0.1:8000/mcp, https://…, ws://…, tcp:HOST:PORT or unix:/PATH
    ///
    /// With port 0 the system chooses a port; the address is printed when the proxy is ready.
    address: Address,
    /// A revision to speak with the server, such as 2025-11-25; may be given several times. All by default
    #[arg(long = "revision", value_name = "REVISION")]
    revisions: Vec<Revision>,
    #[command(flatten)]
    start: Start,
    #[command(flatten)]
    watched: Watched,
    #[command(flatten)]
    carrier: Carrier,
}

/// Serves until Ctrl-C or SIGTERM; on stdio:, until the end of stdin.
pub fn proxy(args: Proxy) -> Result<u8> {
    args.watched.check(args.carrier.workers)?;
    let (options, state) = match role::take(&args.carrier, &args.address)? {
        Role::Serve(options, state) => (*options, state),
        Role::Done(status) => return Ok(status),
    };
    let mut external = args.start.external()?;
    if !args.revisions.is_empty() {
        external = external.revisions(args.revisions.iter().copied().collect());
    }
    let watch = args.watched.begin(false)?;
    let mut front = Front::new(external);
    if let Some(observer) = watch.observer() {
        front = front.observer(observer);
    }
    let serving = front.serve(&args.address, options)?;
    args.watched.show(&watch, &serving)?;
    let done = carrier::run(&serving, &args.address, &state);
    drop((serving, front));
    wait_for_clients(FAREWELL);
    done
}
