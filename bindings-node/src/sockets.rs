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
use crate::supervise;
use crate::threads::spawn;

/// A server from before it listens until it has ended.
struct Running {
    role: Role,
    serving: OnceLock<Serving>,
    stopped: AtomicBool,
    /// The signal that stopped it; 0 if none did.
    signal: AtomicI32,
}

impl Running {
    fn new(role: Role) -> Self {
        Self {
            role,
            serving: OnceLock::new(),
            stopped: AtomicBool::default(),
            signal: AtomicI32::default(),
        }
    }

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
        // Only stdin ends by itself. A worker that is not stopped here is ended by its supervisor.
        let is_stopped = self.role.is_worker || self.stopped.load(Ordering::SeqCst);
        match self.signal.load(Ordering::SeqCst) {
            0 if !is_stopped => json!({ "reason": "end of input" }),
            0 => json!({ "reason": "stopped" }),
            number => json!({ "reason": "signal", "signal": number }),
        }
        .to_string()
    }

    /// Reports the end to JavaScript. A process that exists only to serve, and was asked by a signal or its supervisor to end,
    /// exits even if a handler blocks JavaScript's thread.
    fn end(&self, inbox: &Inbox, patience: Duration) {
        inbox.push(Event::text(Inbound::Ended, self.report()));
        let is_asked = self.role.is_worker || self.signal.load(Ordering::SeqCst) != 0;
        if self.role.owns_process && is_asked && !inbox.wait_drained(patience) {
            signal_hook::low_level::exit(1);
        }
    }
}

/// What a server is to its process.
#[napi(object)]
#[derive(Clone, Copy)]
pub struct Role {
    /// Shuts down gracefully on a termination signal.
    pub signals: bool,
    /// The process exists only to serve, and exits on a signal even if JavaScript does not.
    pub owns_process: bool,
    /// Serves as the worker of the process's supervisor.
    pub is_worker: bool,
    /// JavaScript is shown each message.
    pub is_traced: bool,
}

/// Serves at an address.
#[napi(catch_unwind)]
pub fn serve_address(
    entries: &mut Entries,
    address: String,
    options: String,
    role: Role,
    wake: Function<'_, (), ()>,
) -> Result<Link> {
    let place = Place::read(&address, &options, role)?;
    let served = entries.serve()?;
    let inbox = Arc::new(Inbox::new(&wake)?);
    let side = Side::Server(served.live.clone());
    let hosting = Arc::new(Host::new(served, inbox.clone()));
    let hosting = traced(hosting, role.is_traced, &inbox);
    serving(inbox, side, place, move |address, options| {
        serve(hosting, address, options)
    })
}

/// Checks options, which are JSON, for an address.
#[napi(catch_unwind)]
pub fn check_options(address: String, options: String) -> Result<()> {
    let options: ServeSettings<Milliseconds> = read(&options)?;
    let address = address.parse().map_err(misuse)?;
    options.serve(&address).map(drop).map_err(misuse)
}

/// Where to serve, and as what.
pub struct Place {
    address: Address,
    pub options: ServeOptions,
    role: Role,
}

impl Place {
    /// `options` is JSON.
    pub fn read(address: &str, options: &str, role: Role) -> Result<Self> {
        let options: ServeSettings<Milliseconds> = read(options)?;
        let address = address.parse().map_err(misuse)?;
        let mut options = options.serve(&address).map_err(misuse)?;
        if role.is_worker {
            supervise::take_place(&mut options)?;
        }
        Ok(Self {
            address,
            options,
            role,
        })
    }
}

/// Begins to serve by `start`, on a thread of the engine.
pub fn serving(
    inbox: Arc<Inbox>,
    side: Side,
    place: Place,
    start: impl FnOnce(&Address, ServeOptions) -> io::Result<Serving> + Send + 'static,
) -> Result<Link> {
    let Place {
        address,
        options,
        role,
    } = place;
    let grace = options.http.grace;
    let running = Arc::new(Running::new(role));
    let (stopping, counting) = (running.clone(), running.clone());
    let link = Link::new(inbox.clone(), side, move || stopping.stop());
    let link = link.counting(move || counting.counts());
    let hearing = match role.signals {
        true => Some(hear(running.clone(), inbox.clone())?),
        false => None,
    };
    spawn("mcpbolt-serve", move || {
        let served = caught(|| {
            panics::point("serve");
            start(&address, options).map(|serving| running.run(serving, &inbox))
        });
        match served.unwrap_or_else(|panic| Err(panic.into())) {
            Ok(()) => running.end(&inbox, grace.max(NOTICE)),
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
fn hear(running: Arc<Running>, inbox: Arc<Inbox>) -> Result<Hearing> {
    Hearing::new(
        move |number| match running.signal.swap(number, Ordering::SeqCst) {
            0 => running.stop(),
            _ if running.role.owns_process => running.end(&inbox, NOTICE),
            // If even that fails, the first signal is being handled.
            _ => drop(signal_hook::low_level::emulate_default_handler(number)),
        },
    )
}
