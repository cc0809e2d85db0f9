//! A server on an address: sockets, HTTP and WebSocket, on threads of the engine's.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpbolt::io::{Address, Counts, Serving, serve};
use napi::bindgen_prelude::Function;
use napi_derive::napi;

use crate::drain::quote;
use crate::endpoint::EndpointOptions;
use crate::error::{self, Result};
use crate::hosting::Host;
use crate::inbox::{Event, Inbox};
use crate::link::{Link, Side, spawn};
use crate::offer::Offer;
use crate::serve::NOTICE;
use crate::signals::Hearing;

/// A server from before it listens until it has ended.
#[derive(Default)]
struct Running {
    serving: OnceLock<Serving>,
    stopped: AtomicBool,
    /// The signal that stopped it; 0 when none did.
    signal: AtomicI32,
}

impl Running {
    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        if let Some(serving) = self.serving.get() {
            serving.stop();
        }
    }

    /// Serves until it is stopped.
    fn run(&self, serving: Serving, inbox: &Inbox) {
        let serving = self.serving.get_or_init(|| serving);
        if self.stopped.load(Ordering::SeqCst) {
            serving.stop();
        }
        let mut text = String::new();
        quote(&mut text, &serving.address().to_string());
        inbox.push(Event::Opened(text));
        serving.wait();
    }

    fn counts(&self) -> Counts {
        let serving = self.serving.get();
        serving.map_or_else(Counts::default, |serving| serving.metrics().counts())
    }

    fn report(&self) -> String {
        match self.signal.load(Ordering::SeqCst) {
            0 => "{\"reason\":\"stopped\"}".to_owned(),
            number => format!("{{\"reason\":\"signal\",\"signal\":{number}}}"),
        }
    }

    /// Tells JavaScript of the end. A process that was asked to end does so, also when a handler
    /// holds JavaScript's thread.
    fn end(&self, inbox: &Inbox, patience: Duration) {
        inbox.push(Event::Ended(self.report()));
        if self.signal.load(Ordering::SeqCst) != 0 && !inbox.wait_drained(patience) {
            signal_hook::low_level::exit(1);
        }
    }
}

/// Serves on an address. `signals`: ends in good order when the process is asked to end.
#[napi]
pub fn serve_address(
    offer: &mut Offer,
    address: String,
    options: EndpointOptions,
    signals: bool,
    trace: bool,
    wake: Function<'_, (), ()>,
) -> Result<Link> {
    let address: Address = address
        .parse()
        .map_err(|why| error::error("ERR_MCP_MISUSE", why))?;
    let options = options.serve()?;
    let grace = options.http.grace;
    let served = offer.serve()?;
    let inbox = Arc::new(Inbox::new(&wake)?);
    let running = Arc::new(Running::default());
    let (stopping, counting) = (running.clone(), running.clone());
    let side = Side::Server(served.live.clone());
    let link = Link::new(inbox.clone(), side, move || stopping.stop());
    let link = link.counting(move || counting.counts());
    let hosting = Arc::new(Host::new(served, inbox.clone(), trace));
    let hearing = match signals {
        true => Some(hear(running.clone(), inbox.clone())?),
        false => None,
    };
    spawn("mcpbolt-serve", move || {
        match serve(hosting, &address, options) {
            Ok(serving) => {
                running.run(serving, &inbox);
                running.end(&inbox, grace.max(NOTICE));
            }
            Err(why) => inbox.push(Event::Ended(error::failure_json(&why))),
        }
        drop(hearing);
    })?;
    Ok(link)
}

/// The first signal ends the server in good order, the second at once.
fn hear(running: Arc<Running>, inbox: Arc<Inbox>) -> Result<Hearing> {
    Hearing::new(
        move |number| match running.signal.swap(number, Ordering::SeqCst) {
            0 => running.stop(),
            _ => running.end(&inbox, NOTICE),
        },
    )
}
