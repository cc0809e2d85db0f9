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
use crate::sockets::{Place, Role, serving};
use crate::telemetry::Telemetry;

/// Serves a chain at an address, stdin and stdout included. No message passes through JavaScript, except to middleware of
/// the program.
#[napi(catch_unwind)]
pub fn serve_front(
    front: &Front,
    address: String,
    options: String,
    role: Role,
    wake: Function<'_, (), ()>,
) -> Result<Link> {
    let mut place = Place::read(&address, &options, role)?;
    place.options.stdio.grace = place.options.http.grace;
    // They are heard for every address in the same way.
    place.options.stdio.signals = false;
    let inbox = Arc::new(Inbox::new(&wake)?);
    let (front, told) = (front.own.clone(), inbox.clone());
    serving(inbox, Side::Front, place, move |address, options| {
        let hosting = |spawner| traced(front.hosting(spawner), role.is_traced, &told);
        serve_with(hosting, address, options)
    })
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
