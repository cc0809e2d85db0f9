//! Connects a client and a server in one process without a socket or pipe, for users' own tests.

use std::sync::Arc;
use std::time::Instant;

use mcpbolt::connection::Connection;
use mcpbolt::io;
use mcpbolt::server::ServerHost;
use napi::bindgen_prelude::{ClassInstance, Function};
use napi_derive::napi;

use crate::caller::Caller;
use crate::client::{Described, connect};
use crate::entries::Entries;
use crate::error::{self, Result};
use crate::executor::Handlers;
use crate::inbox::{EndReport, Inbox};
use crate::link::{Link, Side};
use crate::telemetry::Telemetry;

/// Connects a client to a server of `entries`. Returns the server's link, then the client's.
#[napi(catch_unwind, ts_return_type = "[Link, Link]")]
pub fn pair(
    entries: &mut Entries,
    wake_server: Function<'_, (), ()>,
    settings: String,
    trace: bool,
    telemetry: Option<ClassInstance<'_, Telemetry>>,
    wake_client: Function<'_, (), ()>,
) -> Result<Vec<Link>> {
    let served = entries.serve()?;
    let (inbox, client_inbox) = (
        Arc::new(Inbox::new(&wake_server)?),
        Arc::new(Inbox::new(&wake_client)?),
    );
    let config = io::traced(served.config.clone()).map_err(error::io)?;
    let report = |_: &_| Some(EndReport::new(&client_inbox));
    let (client_config, prepared, asker) = Described::new(
        &settings,
        trace,
        telemetry.as_deref(),
        &client_inbox,
        report,
    )?
    .prepare()?;
    let server = Connection::new(config, Instant::now());
    let client = Connection::new(client_config, Instant::now());
    let client_host = connect(prepared, client.handle());
    let side = Side::Server(served.live.clone());
    let (near, far) = (client.handle(), server.handle());
    let links = vec![
        Link::new(inbox.clone(), side, move || far.close()),
        Link::new(client_inbox, Side::Client(asker), move || near.close()),
    ];
    let caller = Caller::only(server.handle());
    let handlers = Handlers::new(&served, caller, inbox.clone()).with(EndReport::new(&inbox));
    let server_host = ServerHost::shared(served.live, server.handle(), Box::new(handlers));
    io::join((server, server_host), (client, client_host)).map_err(error::io)?;
    Ok(links)
}
