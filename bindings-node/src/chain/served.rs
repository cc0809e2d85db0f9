//! Chains that are served at an address, or that a client of this process is connected to.

use std::sync::Arc;

use mcpbolt::io::{Workers, WorkersConfig};
use napi::bindgen_prelude::Function;
use napi_derive::napi;

use super::front::Front;
use crate::error::Result;
use crate::inbox::Inbox;
use crate::link::{Link, Side};
use crate::open::opening;
use crate::sockets::{Place, serving};

/// Serves a chain at an address, stdin and stdout included. No message passes through JavaScript, except to middleware of
/// the program. `signals` and `owns_process` are as for a server.
#[napi(catch_unwind)]
pub fn serve_front(
    front: &Front,
    address: String,
    options: String,
    signals: bool,
    owns_process: bool,
    wake: Function<'_, (), ()>,
) -> Result<Link> {
    let mut place = Place::read(&address, &options)?;
    place.options.stdio.grace = place.options.http.grace;
    // They are heard for every address in the same way.
    place.options.stdio.signals = false;
    let inbox = Arc::new(Inbox::new(&wake)?);
    let front = front.own.clone();
    serving(
        inbox,
        Side::Front,
        place,
        (signals, owns_process),
        move |address, options| front.serve(address, options),
    )
}

/// Connects a client to a chain of this process.
#[napi(catch_unwind)]
pub fn connect_front(
    settings: String,
    trace: bool,
    front: &Front,
    wake: Function<'_, (), ()>,
) -> Result<Link> {
    let workers = Arc::new(Workers::new(WorkersConfig::default()));
    let hosting = front.own.hosting(workers);
    opening(&settings, trace, &wake, async move |builder| {
        builder.connect_hosted(&*hosting).await
    })
}
