//! `mcpbolt serve`: the server for the conformance suite, at any address.

use anyhow::{Result, anyhow};
use mcpbolt::io::Address;

use crate::carrier::{self, Carrier};
use crate::role::{self, Role};
use crate::watched::Watched;

#[allow(dead_code, reason = "it is a module of an example, too")]
#[path = "../../core/examples/conformance/server.rs"]
mod conformance;

/// The address, access rules and bounds of the server.
#[derive(clap::Args)]
pub struct Serve {
    /// Where to serve: http://127.0.0.1:8000/mcp, https://…, ws://…, tcp:HOST:PORT,
    /// unix:/PATH or stdio:
    ///
    /// With port 0 the system chooses a port; the address is printed when the server is ready. The path of an
    /// http address also serves WebSocket. With tcp: and unix:, ?framing=length puts a length of four bytes
    /// before each message instead of a line end after it.
    #[arg(default_value = "http://127.0.0.1:8000/mcp")]
    address: Address,
    /// Also serve the action dialect
    #[arg(long, help_heading = "Who may ask")]
    actions: bool,
    #[command(flatten)]
    watched: Watched,
    #[command(flatten)]
    carrier: Carrier,
}

/// Serves until Ctrl-C or SIGTERM; on stdio:, until the end of stdin.
pub fn serve(args: &Serve) -> Result<u8> {
    args.watched.check(args.carrier.workers)?;
    let (options, state) = match role::take(&args.carrier, &args.address)? {
        Role::Serve(options, state) => (*options, state),
        Role::Done(status) => return Ok(status),
    };
    let server = conformance::server(args.actions).map_err(|error| anyhow!(error))?;
    let watch = args.watched.begin(false)?;
    let server = match watch.observer() {
        Some(observer) => server.observer(observer),
        None => server,
    };
    let serving = server.serve(&args.address).options(options).start()?;
    args.watched.show(&watch, &serving)?;
    carrier::run(&serving, &args.address, &state)
}
