//! What the engine's thread has for JavaScript's: one queue, one wake-up for all that is in it.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use mcpbolt::client::Client;
use mcpbolt::connection::{Direction, Trace};
use mcpbolt::error::ConnectionError;
use mcpbolt::message::Message;
use napi::Status;
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use tokio::runtime::Handle;
use tokio::task::yield_now;

use crate::caller::{CallId, Caller};
use crate::calls::Arrived;
use crate::error::{Result, error};
use crate::questions::Topic;

/// Something that JavaScript is told besides calls.
#[derive(Debug)]
pub enum Event {
    /// A call was given up by the peer.
    Cancelled(CallId, Option<Box<str>>),
    /// A client has finished the handshake.
    Initialized(Caller),
    /// A client's roots are others now.
    RootsChanged(Caller),
    /// A client's connection has ended.
    Left(Caller, ConnectionError),
    /// The connection is open; what the peer said of itself, as JSON.
    Opened(String),
    /// Look at request `n` of this side: its answer may be there.
    Ready(u32),
    /// The answer to request `n` of this side is there, and nothing said before it waits.
    Answered(u32),
    /// Progress on request `n` of this side, as JSON.
    Progress(u32, String),
    /// A part of the answer to request `n` of this side, as JSON.
    Partial(u32, String),
    /// Stream `n` is open; the id by which the server tells on it.
    Listening(u32, u64),
    /// The server asks something.
    Asked(u32, Topic, String),
    /// It does not ask question `n` any more.
    Withdrawn(u32),
    /// A notification of the peer, as JSON.
    Notification(String),
    /// One that says what is not to be missed: what changed, or is done.
    Change(Arc<str>),
    /// A line of a child's stderr.
    Line(String),
    /// A frame, with its secrets masked, for who traces the wire.
    Traced(Direction, String),
    /// This client's connection has ended.
    Closed(ConnectionError),
    /// The status and the headers of the answer to HTTP request `n`: names and values in turn, as
    /// JSON.
    Head(u32, u16, String),
    /// A piece of its body, and whether it is the last.
    Piece(u32, String, bool),
    /// A message on a wire; over HTTP, the number of the one that it belongs to, or 0.
    Frame(u32, Box<Message>),
    /// What is no message; why.
    Bad(String),
    /// The stream of a message of this side has been read up to there.
    Position(u32, String),
    /// The name of the session over HTTP.
    Session(String),
    /// Nothing more comes of a message of this side; why, as JSON, if it was not carried.
    Done(u32, String),
    /// There is room again for what is to be written.
    Room,
    /// The engine's thread has ended; why, as JSON.
    Ended(String),
}

impl Event {
    /// What can be left out when JavaScript does not keep up.
    fn is_news(&self) -> bool {
        matches!(
            self,
            Self::Progress(..) | Self::Notification(_) | Self::Line(_) | Self::Traced(..)
        )
    }
}

/// Events that wait before those that are only news are left out.
const MAX_NEWS: usize = 8192;

/// Bytes of calls that are handed over in one drain, unless the first is longer.
const DRAIN_BYTES: usize = 1 << 20;

type Tell = ThreadsafeFunction<(), (), (), Status, false, true, 0>;

/// The queue between the two threads.
pub struct Inbox {
    state: Mutex<State>,
    drained: Condvar,
    tell: Arc<Tell>,
    /// What drives the connections, where that is a runtime.
    runtime: OnceLock<Handle>,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    /// Calls in order.
    calls: VecDeque<Arrived>,
    /// Calls cancelled since it was last looked whether they wait here.
    cancelled: usize,
    /// JavaScript knows that something waits.
    told: bool,
    /// Changes behind [`MAX_NEWS`] events: each is told once.
    late: HashSet<Arc<str>>,
}

impl Inbox {
    /// An inbox that wakes JavaScript by calling `wake`, which does not keep the process alive.
    pub fn new(wake: &Function<'_, (), ()>) -> Result<Self> {
        let tell = wake
            .build_threadsafe_function::<()>()
            .weak::<true>()
            .build()
            .map_err(|why| error("ERR_MCP_INTERNAL", why.reason))?;
        Ok(Self {
            state: Mutex::default(),
            drained: Condvar::new(),
            tell: Arc::new(tell),
            runtime: OnceLock::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every critical section leaves the queues whole, also when it panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes JavaScript, unless it knows. A runtime first goes on for as long as there is something
    /// to be done, so that one wake-up is for all that its sockets had.
    fn tell(&self, mut state: MutexGuard<'_, State>) {
        if std::mem::replace(&mut state.told, true) {
            return;
        }
        drop(state);
        let Ok(runtime) = Handle::try_current() else {
            return drop(Telling(self.tell.clone()));
        };
        let telling = Telling(self.tell.clone());
        self.runtime.get_or_init(|| runtime).spawn(async move {
            yield_now().await;
            drop(telling);
        });
    }

    /// What drives the connections of the calls that came, where that is a runtime.
    pub fn runtime(&self) -> Option<&Handle> {
        self.runtime.get()
    }

    /// Adds an event.
    pub fn push(&self, event: Event) {
        let mut state = self.lock();
        if state.events.len() >= MAX_NEWS {
            match &event {
                Event::Change(json) if !state.late.insert(json.clone()) => return,
                news if news.is_news() => return,
                _ => {}
            }
        }
        state.events.push_back(event);
        self.tell(state);
    }

    /// Adds the calls of one turn.
    pub fn push_calls(&self, calls: impl Iterator<Item = Arrived>) {
        let mut state = self.lock();
        state.calls.extend(calls);
        self.tell(state);
    }

    /// Tells of a call that was given up, in case it is under way. Those that still wait are
    /// forgotten, from time to time.
    pub fn cancel(&self, call: CallId, reason: Option<&str>) {
        let mut state = self.lock();
        state.cancelled += 1;
        if state.cancelled > state.calls.len() / 2 {
            state.calls.retain(|arrived| !arrived.is_cancelled());
            state.cancelled = 0;
        }
        let reason = reason.map(Box::from);
        state.events.push_back(Event::Cancelled(call, reason));
        self.tell(state);
    }

    /// Moves at most `max` things out, events first. Returns whether more wait; if not, the next
    /// one wakes JavaScript again.
    pub fn take(&self, max: usize, events: &mut Vec<Event>, calls: &mut Vec<Arrived>) -> bool {
        let mut state = self.lock();
        let many = state.events.len().min(max);
        events.extend(state.events.drain(..many));
        state.late.clear();
        let mut bytes = 0;
        while events.len() + calls.len() < max && bytes < DRAIN_BYTES {
            match state.calls.pop_front() {
                Some(arrived) if arrived.is_cancelled() => {}
                Some(arrived) => {
                    bytes += arrived.call.message.bytes().len();
                    calls.push(arrived);
                }
                None => break,
            }
        }
        state.told = !state.events.is_empty() || !state.calls.is_empty();
        if !state.told {
            self.drained.notify_all();
        }
        state.told
    }

    /// What shows JavaScript each frame of a connection.
    pub fn trace(self: &Arc<Self>) -> Trace {
        let inbox = self.clone();
        Trace::new(move |direction, frame| {
            inbox.push(Event::Traced(direction, frame.to_owned()));
        })
    }

    /// Waits until JavaScript has taken everything; `false` when it has not by then.
    pub fn wait_drained(&self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut state = self.lock();
        while state.told {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.drained.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Wakes JavaScript when it is dropped: also with a runtime that ends.
struct Telling(Arc<Tell>);

impl Drop for Telling {
    fn drop(&mut self) {
        // Refused only when JavaScript's side is being torn down: nobody is left to tell.
        self.0.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }
}

/// Says that the engine's thread has ended, however it did, when it is dropped.
pub struct Farewell {
    inbox: Arc<Inbox>,
    json: String,
    /// Nothing is said unless this was opened.
    opened: Option<Arc<OnceLock<Client>>>,
}

impl Farewell {
    pub fn new(inbox: &Arc<Inbox>) -> Self {
        Self {
            inbox: inbox.clone(),
            json: String::new(),
            opened: None,
        }
    }

    /// One that says nothing of a client that never was open: somebody else does.
    pub fn of(inbox: &Arc<Inbox>, opened: &Arc<OnceLock<Client>>) -> Self {
        let mut farewell = Self::new(inbox);
        farewell.opened = Some(opened.clone());
        farewell
    }

    /// What is to be said, as JSON.
    pub fn say(&mut self, json: String) {
        self.json = json;
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        let json = std::mem::take(&mut self.json);
        if self
            .opened
            .as_ref()
            .is_none_or(|opened| opened.get().is_some())
        {
            self.inbox.push(Event::Ended(json));
        }
    }
}
