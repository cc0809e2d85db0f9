//! An endpoint mounted in an existing HTTP server: requests in, answers out.
//!
//! ```text
//!   JavaScript ─▶ a request, pieces of its body ─▶ the engine's HttpService, on a thread of its own
//!   JavaScript ◀─ inbox ◀─ status and headers, a piece of the body for each demand ◀─╯
//! ```

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request};
use mcpbolt::io::http::{HttpOptions, HttpService, PeerAddress};
use mcpbolt::server::Hosting;
use mcpbolt::settings::{Milliseconds, ServeSettings};
use napi::bindgen_prelude::{Function, Uint8Array};
use napi_derive::napi;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, channel, unbounded_channel};
use tokio::task::AbortHandle;

use crate::arriving::{Arriving, MAX_WAITING, PIECE_BYTES};
use crate::entries::Entries;
use crate::error::{self, Result, misuse};
use crate::hosting::{Host, traced};
use crate::inbox::{Event, Inbox};
use crate::json::read;
use crate::kinds::Inbound;
use crate::leaving::leave;
use crate::link::{Link, Side};
use crate::panics::quietly;

/// An endpoint, and its requests in progress.
#[napi]
pub struct Mount {
    shared: Arc<Shared>,
    threads: Arc<Threads>,
    link: Option<Link>,
    open: HashMap<u32, Open>,
    last: u32,
}

/// The runtime of all endpoints of the process, alive as long as there is one: a program may have an endpoint
/// for each session.
struct Threads(Option<Runtime>);

static THREADS: Mutex<Weak<Threads>> = Mutex::new(Weak::new());

impl Threads {
    fn get() -> io::Result<Arc<Self>> {
        let mut there = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(threads) = there.upgrade() {
            return Ok(threads);
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("mcpbolt-http")
            .enable_time()
            .build()?;
        let threads = Arc::new(Self(Some(runtime)));
        *there = Arc::downgrade(&threads);
        Ok(threads)
    }

    fn handle(&self) -> Option<&Handle> {
        self.0.as_ref().map(Runtime::handle)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

struct Shared {
    service: HttpService,
    grace: Duration,
    inbox: Arc<Inbox>,
    /// Each request holds a sender while it is in progress; the receiver learns when there is none. `None`
    /// once the endpoint was asked to end.
    under_way: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

struct Open {
    /// `None` once the body is complete.
    body: Option<UnboundedSender<Bytes>>,
    /// The memory of the pieces in the channel.
    waiting: Arc<AtomicUsize>,
    /// One permit for each piece of the answer that is wanted.
    demand: Arc<Semaphore>,
    task: AbortHandle,
}

pub fn http_options(json: &str) -> Result<HttpOptions> {
    let settings: ServeSettings<Milliseconds> = read(json)?;
    settings.http().map_err(misuse)
}

/// Creates an endpoint.
#[napi(catch_unwind)]
pub fn mount(
    entries: &mut Entries,
    options: String,
    trace: bool,
    wake: Function<'_, (), ()>,
) -> Result<Mount> {
    let options = http_options(&options)?;
    let served = entries.serve()?;
    let side = Side::Server(served.live.clone());
    let inbox = Arc::new(Inbox::new(&wake)?);
    let hosting = Arc::new(Host::new(served, inbox.clone()));
    mounting(inbox, side, options, trace, hosting)
}

/// Creates the endpoint of `hosting`.
pub fn mounting(
    inbox: Arc<Inbox>,
    side: Side,
    mut options: HttpOptions,
    trace: bool,
    hosting: Arc<dyn Hosting>,
) -> Result<Mount> {
    // The program that passes requests on has already routed them.
    "*".clone_into(&mut options.path);
    let grace = options.grace;
    let hosting = traced(hosting, trace, &inbox);
    let service = HttpService::hosting(hosting, options).map_err(error::io)?;
    let threads = Threads::get().map_err(error::io)?;
    let shared = Arc::new(Shared {
        service,
        grace,
        inbox: inbox.clone(),
        under_way: Mutex::new(Some(channel(1))),
    });
    let (stopping, tasks) = (shared.clone(), threads.clone());
    let link = Link::new(inbox, side, move || {
        if let Some(tasks) = tasks.handle() {
            stopping.stop(tasks);
        }
    });
    Ok(Mount {
        shared,
        threads,
        link: Some(link),
        open: HashMap::new(),
        last: 0,
    })
}

impl Shared {
    /// Ends streams gracefully; tells JavaScript when all requests or the grace period are over.
    fn stop(self: &Arc<Self>, tasks: &Handle) {
        let under_way = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some((own, mut others)) = under_way else {
            return;
        };
        drop(own);
        let shared = self.clone();
        tasks.spawn(async move {
            shared.service.stop();
            let _ = tokio::time::timeout(shared.grace, others.recv()).await;
            let report = "{\"reason\":\"stopped\"}".to_owned();
            shared.inbox.push(Event::text(Inbound::Ended, report));
        });
    }

    fn begin(&self) -> Option<Sender<()>> {
        let under_way = self
            .under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        under_way.as_ref().map(|(own, _)| own.clone())
    }
}

#[napi]
impl Mount {
    /// The link of its calls; returned only once.
    #[napi(catch_unwind)]
    pub fn link(&mut self) -> Option<Link> {
        self.link.take()
    }

    /// Begins a request whose body is to follow, with its headers as names and values in turn, from the
    /// address `peer`, if it is known. Returns the number under which the answer will come; `None` when the
    /// endpoint has ended.
    #[napi(catch_unwind)]
    pub fn begin(
        &mut self,
        method: String,
        uri: String,
        headers: Vec<String>,
        peer: Option<String>,
    ) -> Option<u32> {
        let (runtime, held) = self.threads.handle().zip(self.shared.begin())?;
        self.last = (self.last + 1) & (i32::MAX as u32);
        let number = self.last;
        let (body, pieces) = unbounded_channel();
        let waiting = Arc::<AtomicUsize>::default();
        let arriving = Arriving {
            pieces,
            waiting: waiting.clone(),
            number,
            inbox: self.shared.inbox.clone(),
        };
        let mut request = request(&method, &uri, &headers, arriving);
        if let Some(peer) = peer.and_then(|peer| peer.parse::<IpAddr>().ok()) {
            request
                .extensions_mut()
                .insert(PeerAddress((peer, 0).into()));
        }
        let (shared, demand) = (self.shared.clone(), Arc::new(Semaphore::new(1)));
        let welcome = demand.clone();
        let task = runtime.spawn(async move {
            let answer = shared.service.respond(request).await;
            leave(number, answer, &shared.inbox, &welcome).await;
            drop(held);
        });
        let open = Open {
            body: Some(body),
            waiting,
            demand,
            task: task.abort_handle(),
        };
        self.open.insert(number, open);
        Some(number)
    }

    /// Adds a piece of the body. Returns whether there is room for more. If not, [`Inbound::Room`] follows,
    /// unless the engine takes no more of the body.
    #[napi(catch_unwind)]
    pub fn body(&self, number: u32, piece: Uint8Array) -> bool {
        let Some(open) = self.open.get(&number) else {
            return false;
        };
        let Some(body) = &open.body else {
            return false;
        };
        let cost = piece.len() + PIECE_BYTES;
        let before = open.waiting.fetch_add(cost, Ordering::Relaxed);
        let sent = body.send(Bytes::copy_from_slice(&piece));
        sent.is_ok() && before + cost < MAX_WAITING
    }

    /// Marks the end of the body.
    #[napi(catch_unwind)]
    pub fn body_end(&mut self, number: u32) {
        if let Some(open) = self.open.get_mut(&number) {
            open.body = None;
        }
    }

    /// Asks for a further piece of the answer.
    #[napi(catch_unwind)]
    pub fn more(&self, number: u32) {
        if let Some(open) = self.open.get(&number) {
            quietly(|| open.demand.add_permits(1));
        }
    }

    /// Ends a request: its answer is complete, or no longer wanted.
    #[napi(catch_unwind)]
    pub fn end(&mut self, number: u32) {
        if let Some(open) = self.open.remove(&number) {
            open.task.abort();
        }
    }
}

/// Why a request is refused.
#[napi(object)]
pub struct Screened {
    /// The status.
    pub status: u16,
    /// A sentence.
    pub why: String,
}

/// Checks the source and the headers of a request, for a program that reads the request itself.
#[napi(catch_unwind)]
pub fn screen(options: String, method: String, headers: Vec<String>) -> Result<Option<Screened>> {
    let screened = http_options(&options)?.screen(&request(&method, "/", &headers, ()));
    Ok(screened.err().map(|(status, why)| Screened {
        status: status.as_u16(),
        why: why.into_owned(),
    }))
}

/// Converts a request for the engine. Headers with an invalid name are left out, an invalid value becomes
/// `?`, and an invalid method becomes one that is not supported.
fn request<B>(method: &str, uri: &str, headers: &[String], body: B) -> Request<B> {
    let mut request = Request::new(body);
    *request.method_mut() = method.parse().unwrap_or(Method::TRACE);
    *request.uri_mut() = uri.parse().unwrap_or_default();
    for pair in headers.chunks_exact(2) {
        if let [name, value] = pair
            && let Ok(name) = HeaderName::from_bytes(name.as_bytes())
        {
            let value = HeaderValue::from_bytes(value.as_bytes());
            let value = value.unwrap_or(HeaderValue::from_static("?"));
            request.headers_mut().append(name, value);
        }
    }
    request
}

impl Drop for Mount {
    fn drop(&mut self) {
        for open in self.open.values() {
            quietly(|| open.task.abort());
        }
    }
}
