//! A client and a server in one process, joined without a descriptor: for users' own tests.

use std::sync::Arc;
use std::time::Instant;

use mcpbolt::connection::Connection;
use mcpbolt::io;
use mcpbolt::server::ServerHost;
use napi::bindgen_prelude::Function;
use napi_derive::napi;

use crate::client::ClientOptions;
use crate::error::{self, Result};
use crate::executor::Handlers;
use crate::inbox::{Farewell, Inbox};
use crate::link::Link;
use crate::offer::Offer;

/// Connects a client with a server of `offer`. Gives the server's link, then the client's.
#[napi]
pub fn pair(
    offer: &mut Offer,
    wake_server: Function<'_, (), ()>,
    options: ClientOptions,
    wake_client: Function<'_, (), ()>,
) -> Result<Vec<Link>> {
    let served = offer.serve();
    let (inbox, client_inbox) = (
        Arc::new(Inbox::new(&wake_server)?),
        Arc::new(Inbox::new(&wake_client)?),
    );
    let config = io::traced(served.config.clone()).map_err(|why| error::io(&why))?;
    let made = options.prepare(&client_inbox)?;
    let server = Connection::new(config, Instant::now());
    let client = Connection::new(made.config.clone(), Instant::now());
    let farewell = Some(Farewell::new(&client_inbox));
    let (caller, client_host, questions) =
        made.connect(client_inbox.clone(), client.handle(), farewell);
    let links = vec![
        Link::new(inbox.clone(), server.handle(), None).of_server(served.live.clone()),
        Link::new(client_inbox, client.handle(), None).of_client(caller, questions),
    ];
    let farewell = Some(Farewell::new(&inbox));
    let handlers = Handlers::new(&served, server.handle(), inbox, farewell);
    let server_host = ServerHost::live(served.live, server.handle(), handlers);
    io::join((server, server_host), (client, client_host)).map_err(|why| error::io(&why))?;
    Ok(links)
}
