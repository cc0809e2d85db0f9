//! A server at an address: sockets, HTTP and WebSocket, on threads of the engine.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpbolt::io::{Address, Counts, ServeOptions, Serving, serve};
use mcpbolt::settings::{Milliseconds, ServeSettings};
use napi::bindgen_prelude::Function;
use napi_derive::napi;
use serde_json::json;

use crate::entries::Entries;
use crate::error::{Result, misuse};
use crate::hosting::{Host, traced};
use crate::inbox::{Event, Inbox};
use crate::json::read;
use crate::kinds::Inbound;
use crate::link::{Link, Side};
use crate::panics::{self, caught};
use crate::serve::NOTICE;
use crate::signals::Hearing;
use crate::threads::spawn;

/// A server from before it listens until it has ended.
#[derive(Default)]
struct Running {
    serving: OnceLock<Serving>,
    stopped: AtomicBool,
    /// The signal that stopped it; 0 if none did.
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
        let address = json!(serving.address().to_string()).to_string();
        inbox.push(Event::text(Inbound::Opened, address));
        serving.wait();
    }

    fn counts(&self) -> Counts {
        let serving = self.serving.get();
        serving.map_or_else(Counts::default, |serving| serving.metrics().counts())
    }

    fn report(&self) -> String {
        match self.signal.load(Ordering::SeqCst) {
            // Only stdin ends by itself.
            0 if !self.stopped.load(Ordering::SeqCst) => json!({ "reason": "end of input" }),
            0 => json!({ "reason": "stopped" }),
            number => json!({ "reason": "signal", "signal": number }),
        }
        .to_string()
    }

    /// Reports the end to JavaScript. A process that exists only to serve, and was asked by a signal to end,
    /// exits even if a handler blocks JavaScript's thread.
    fn end(&self, inbox: &Inbox, patience: Duration, owns_process: bool) {
        inbox.push(Event::text(Inbound::Ended, self.report()));
        let is_asked = self.signal.load(Ordering::SeqCst) != 0;
        if owns_process && is_asked && !inbox.wait_drained(patience) {
            signal_hook::low_level::exit(1);
        }
    }
}

/// Serves at an address. With `signals`, shuts down gracefully on a termination signal. With `owns_process`,
/// the process exists only to serve, and exits on a signal even if JavaScript does not.
#[napi(catch_unwind)]
pub fn serve_address(
    entries: &mut Entries,
    address: String,
    options: String,
    signals: bool,
    owns_process: bool,
    trace: bool,
    wake: Function<'_, (), ()>,
) -> Result<Link> {
    let place = Place::read(&address, &options)?;
    let served = entries.serve()?;
    let inbox = Arc::new(Inbox::new(&wake)?);
    let side = Side::Server(served.live.clone());
    let hosting = Arc::new(Host::new(served, inbox.clone()));
    let hosting = traced(hosting, trace, &inbox);
    let own = (signals, owns_process);
    serving(inbox, side, place, own, move |address, options| {
        serve(hosting, address, options)
    })
}

/// Where to serve.
pub struct Place {
    address: Address,
    pub options: ServeOptions,
}

impl Place {
    /// `options` is JSON.
    pub fn read(address: &str, options: &str) -> Result<Self> {
        let options: ServeSettings<Milliseconds> = read(options)?;
        Ok(Self {
            address: address.parse().map_err(misuse)?,
            options: options.serve().map_err(misuse)?,
        })
    }
}

/// Begins to serve by `start`, on a thread of the engine.
pub fn serving(
    inbox: Arc<Inbox>,
    side: Side,
    place: Place,
    (signals, owns_process): (bool, bool),
    start: impl FnOnce(&Address, ServeOptions) -> io::Result<Serving> + Send + 'static,
) -> Result<Link> {
    let Place { address, options } = place;
    let grace = options.http.grace;
    let running = Arc::new(Running::default());
    let (stopping, counting) = (running.clone(), running.clone());
    let link = Link::new(inbox.clone(), side, move || stopping.stop());
    let link = link.counting(move || counting.counts());
    let hearing = match signals {
        true => Some(hear(running.clone(), inbox.clone(), owns_process)?),
        false => None,
    };
    spawn("mcpbolt-serve", move || {
        let served = caught(|| {
            panics::point("serve");
            start(&address, options).map(|serving| running.run(serving, &inbox))
        });
        match served.unwrap_or_else(|panic| Err(panic.into())) {
            Ok(()) => running.end(&inbox, grace.max(NOTICE), owns_process),
            Err(why) => {
                let failed = json!({ "error": why.to_string() }).to_string();
                inbox.push(Event::text(Inbound::Ended, failed));
            }
        }
        drop(hearing);
    })?;
    Ok(link)
}

/// The first signal shuts the server down gracefully. The second ends the process: by the default handler or,
/// in a process that exists only to serve, with status 1 if JavaScript does not react within [`NOTICE`].
fn hear(running: Arc<Running>, inbox: Arc<Inbox>, owns_process: bool) -> Result<Hearing> {
    Hearing::new(
        move |number| match running.signal.swap(number, Ordering::SeqCst) {
            0 => running.stop(),
            _ if owns_process => running.end(&inbox, NOTICE, true),
            // If even that fails, the first signal is being handled.
            _ => drop(signal_hook::low_level::emulate_default_handler(number)),
        },
    )
}
