//! Chains that are served at an address, or that a client of this process is connected to.

use std::sync::Arc;

use mcpbolt::io::{Workers, WorkersConfig, serve_with};
use napi::bindgen_prelude::{ClassInstance, Function};
use napi_derive::napi;

use super::front::Front;
use crate::error::Result;
use crate::hosting::traced;
use crate::inbox::Inbox;
use crate::link::{Link, Side};
use crate::mount::{Mount, http_options, mounting};
use crate::open::opening;
use crate::sockets::{Place, serving};
use crate::telemetry::Telemetry;

/// Serves a chain at an address, stdin and stdout included. No message passes through JavaScript, except to middleware of
/// the program. `signals` and `owns_process` are as for a server.
#[napi(catch_unwind)]
pub fn serve_front(
    front: &Front,
    address: String,
    options: String,
    signals: bool,
    owns_process: bool,
    trace: bool,
    wake: Function<'_, (), ()>,
) -> Result<Link> {
    let mut place = Place::read(&address, &options)?;
    place.options.stdio.grace = place.options.http.grace;
    // They are heard for every address in the same way.
    place.options.stdio.signals = false;
    let inbox = Arc::new(Inbox::new(&wake)?);
    let (front, told) = (front.own.clone(), inbox.clone());
    serving(
        inbox,
        Side::Front,
        place,
        (signals, owns_process),
        move |address, options| {
            let hosting = |spawner| traced(front.hosting(spawner), trace, &told);
            serve_with(hosting, address, options)
        },
    )
}

/// Creates an endpoint of a chain.
#[napi(catch_unwind)]
pub fn mount_front(
    front: &Front,
    options: String,
    trace: bool,
    wake: Function<'_, (), ()>,
) -> Result<Mount> {
    let options = http_options(&options)?;
    let inbox = Arc::new(Inbox::new(&wake)?);
    let workers = Arc::new(Workers::new(WorkersConfig::default()));
    let hosting = front.own.hosting(workers);
    mounting(inbox, Side::Front, options, trace, hosting)
}

/// Connects a client to a chain of this process.
#[napi(catch_unwind)]
pub fn connect_front(
    settings: String,
    trace: bool,
    telemetry: Option<ClassInstance<'_, Telemetry>>,
    front: &Front,
    wake: Function<'_, (), ()>,
) -> Result<Link> {
    let workers = Arc::new(Workers::new(WorkersConfig::default()));
    let hosting = front.own.hosting(workers);
    let hosted = hosting.clone();
    let link = opening(
        &settings,
        trace,
        telemetry.as_deref(),
        &wake,
        async move |builder| builder.connect_hosted(&*hosted).await,
    );
    // When it ends, so do calls that wait for the client.
    Ok(link?.holding(hosting))
}
