//! An endpoint within somebody else's HTTP server: requests in, answers out.
//!
//! ```text
//!   JavaScript ─▶ a request, pieces of its body ─▶ the engine's HttpService, on a thread of its own
//!   JavaScript ◀─ inbox ◀─ status and headers, a piece of the body for each demand ◀─╯
//! ```

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request};
use mcpbolt::io::http::HttpService;
use napi::bindgen_prelude::{Function, Uint8Array};
use napi_derive::napi;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, channel, unbounded_channel};
use tokio::task::AbortHandle;

use crate::arriving::Arriving;
use crate::endpoint::EndpointOptions;
use crate::error::{self, Result};
use crate::hosting::Host;
use crate::inbox::{Event, Inbox};
use crate::leaving::leave;
use crate::link::{Link, Side};
use crate::offer::Offer;

/// The endpoint, and the requests that are under way.
#[napi]
pub struct Mount {
    shared: Arc<Shared>,
    threads: Arc<Threads>,
    link: Option<Link>,
    open: HashMap<u32, Open>,
    last: u32,
}

/// What drives all endpoints of the process, for as long as there is one: a program may have one for each
/// session.
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
    /// Each request holds the one end while it is under way; the other hears when none does. Gone
    /// once the endpoint was asked to end.
    under_way: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

struct Open {
    /// Gone once the body has come to its end.
    body: Option<UnboundedSender<Bytes>>,
    /// Pieces of the answer that are welcome.
    demand: Arc<Semaphore>,
    task: AbortHandle,
}

/// Makes an endpoint.
#[napi]
pub fn mount(
    offer: &mut Offer,
    options: EndpointOptions,
    trace: bool,
    wake: Function<'_, (), ()>,
) -> Result<Mount> {
    let mut options = options.http()?;
    // Whoever hands requests on has decided where they belong.
    "*".clone_into(&mut options.path);
    let served = offer.serve()?;
    let side = Side::Server(served.live.clone());
    let inbox = Arc::new(Inbox::new(&wake)?);
    let grace = options.grace;
    let hosting = Arc::new(Host::new(served, inbox.clone(), trace));
    let service = HttpService::hosting(hosting, options).map_err(|why| error::io(&why))?;
    let threads = Threads::get().map_err(|why| error::io(&why))?;
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
    /// Streams end in good order; when all requests are over, or the grace period is, JavaScript
    /// is told.
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
            shared
                .inbox
                .push(Event::Ended("{\"reason\":\"stopped\"}".to_owned()));
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
    /// What calls come by; only once.
    #[napi]
    pub fn link(&mut self) -> Option<Link> {
        self.link.take()
    }

    /// A request, its headers as names and values in turn, whose body is to come. Gives the number
    /// under which the answer will come; nothing when the endpoint has ended.
    #[napi]
    pub fn begin(&mut self, method: String, uri: String, headers: Vec<String>) -> Option<u32> {
        let (runtime, held) = self.threads.handle().zip(self.shared.begin())?;
        let (body, pieces) = unbounded_channel();
        let request = request(&method, &uri, &headers, Arriving(pieces));
        self.last = (self.last + 1) & (i32::MAX as u32);
        let number = self.last;
        let (shared, demand) = (self.shared.clone(), Arc::new(Semaphore::new(1)));
        let welcome = demand.clone();
        let task = runtime.spawn(async move {
            let answer = shared.service.respond(request).await;
            leave(number, answer, &shared.inbox, &welcome).await;
            drop(held);
        });
        let open = Open {
            body: Some(body),
            demand,
            task: task.abort_handle(),
        };
        self.open.insert(number, open);
        Some(number)
    }

    /// A piece of the body.
    #[napi]
    pub fn body(&self, number: u32, piece: Uint8Array) {
        let body = self.open.get(&number).and_then(|open| open.body.as_ref());
        if let Some(body) = body {
            // Refused when the answer does not depend on it any more.
            let _ = body.send(Bytes::copy_from_slice(&piece));
        }
    }

    /// The body has come to its end.
    #[napi]
    pub fn body_end(&mut self, number: u32) {
        if let Some(open) = self.open.get_mut(&number) {
            open.body = None;
        }
    }

    /// A further piece of the answer is welcome.
    #[napi]
    pub fn more(&self, number: u32) {
        if let Some(open) = self.open.get(&number) {
            open.demand.add_permits(1);
        }
    }

    /// All of the answer was taken, or nobody wants it any more.
    #[napi]
    pub fn end(&mut self, number: u32) {
        if let Some(open) = self.open.remove(&number) {
            open.task.abort();
        }
    }
}

/// As the engine takes it. What cannot be said in HTTP is left out; a method of that kind is none
/// that is known.
fn request(method: &str, uri: &str, headers: &[String], body: Arriving) -> Request<Arriving> {
    let mut request = Request::new(body);
    *request.method_mut() = method.parse().unwrap_or(Method::TRACE);
    *request.uri_mut() = uri.parse().unwrap_or_default();
    for pair in headers.chunks_exact(2) {
        if let [name, value] = pair
            && let Ok(name) = HeaderName::from_bytes(name.as_bytes())
            && let Ok(value) = HeaderValue::from_bytes(value.as_bytes())
        {
            request.headers_mut().append(name, value);
        }
    }
    request
}

impl Drop for Mount {
    fn drop(&mut self) {
        for open in self.open.values() {
            open.task.abort();
        }
    }
}
