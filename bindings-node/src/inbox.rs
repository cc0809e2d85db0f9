//! The queue from the engine's threads to JavaScript's, with one wake-up for everything in it.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use mcpbolt::connection::{Direction, Trace};
use mcpbolt::error::ConnectionError;
use mcpbolt::message::Message;
use napi::Status;
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use tokio::runtime::Handle;
use tokio::task::yield_now;

use crate::arrived::Arrived;
use crate::caller::{CallId, Caller};
use crate::error::{Result, internal};
use crate::kinds::Inbound;

/// An event for JavaScript, other than a call.
#[derive(Debug)]
pub enum Event {
    /// A row as JavaScript gets it.
    Row(Row),
    /// The peer cancelled a call.
    Cancelled(CallId, Option<Box<str>>),
    /// A client has finished the handshake.
    Initialized(Caller),
    /// A client's connection has ended.
    Left(Caller, ConnectionError),
    /// Check request `n` of this side: its answer may have arrived.
    Ready(u32),
    /// The answer to request `n` of this side has arrived, and every event before it has been taken.
    Answered(u32),
    /// A notification that must not be lost, as JSON: something changed, or is complete.
    Change(Arc<str>),
    /// A message on a wire; over HTTP, the number of the sent message that it belongs to, or 0.
    Frame(u32, Box<Message>),
}

/// A row of a drain; the kind says what its number, its target and its text are.
#[derive(Debug)]
pub struct Row {
    pub kind: Inbound,
    pub number: u32,
    pub target: u32,
    pub text: String,
}

impl Event {
    pub fn row(kind: Inbound, number: u32, target: u32, text: String) -> Self {
        Self::Row(Row {
            kind,
            number,
            target,
            text,
        })
    }

    /// A row that is only a text.
    pub fn text(kind: Inbound, text: String) -> Self {
        Self::row(kind, 0, 0, text)
    }

    /// The request of this side that it belongs to.
    pub fn request(&self) -> Option<u32> {
        use Inbound::{Listening, Partial, Progress};
        match self {
            Self::Ready(number) | Self::Answered(number) => Some(*number),
            Self::Row(Row {
                kind: Progress | Partial | Listening,
                number,
                ..
            }) => Some(*number),
            _ => None,
        }
    }

    /// Whether it may be dropped if JavaScript does not keep up.
    fn is_droppable(&self) -> bool {
        use Inbound::{Line, Notification, Progress, Traced};
        matches!(
            self,
            Self::Row(Row {
                kind: Progress | Notification | Line | Traced,
                ..
            })
        )
    }
}

/// Number of waiting events above which droppable ones are dropped.
const MAX_DROPPABLE: usize = 8192;

/// Bytes of calls that are passed in one drain, unless the first call is longer.
const DRAIN_BYTES: usize = 1 << 20;

type Tell = ThreadsafeFunction<(), (), (), Status, false, true, 0>;

/// The queue between the two threads.
pub struct Inbox {
    state: Mutex<State>,
    drained: Condvar,
    tell: Arc<Tell>,
    /// The runtime that drives the connections, if one does.
    runtime: OnceLock<Handle>,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    /// Calls in order.
    calls: VecDeque<Arrived>,
    /// The end of the input.
    end: Option<Event>,
    /// Cancellations since cancelled calls were last removed from the queue.
    cancelled: usize,
    /// Whether JavaScript has been woken.
    told: bool,
    /// Changes that were added beyond [`MAX_DROPPABLE`] events: each is added once.
    late: HashSet<Arc<str>>,
}

impl Inbox {
    /// An inbox that wakes JavaScript by calling `wake`, which does not keep the process alive.
    pub fn new(wake: &Function<'_, (), ()>) -> Result<Self> {
        let tell = wake
            .build_threadsafe_function::<()>()
            .weak::<true>()
            .build()
            .map_err(internal)?;
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

    /// Wakes JavaScript, unless it has been woken. A runtime first runs its other ready tasks, so that one
    /// wake-up covers everything that its sockets had.
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

    /// The runtime that drives the connections of the calls so far, if one does.
    pub fn runtime(&self) -> Option<&Handle> {
        self.runtime.get()
    }

    /// Adds an event.
    pub fn push(&self, event: Event) {
        let mut state = self.lock();
        if state.events.len() >= MAX_DROPPABLE {
            match &event {
                Event::Change(json) if !state.late.insert(json.clone()) => return,
                other if other.is_droppable() => return,
                _ => {}
            }
        }
        state.events.push_back(event);
        self.tell(state);
    }

    /// Adds the end of the input. It is taken by itself once everything before it has been taken, so that JavaScript has
    /// begun with every call by then.
    pub fn push_end(&self, end: Event) {
        let mut state = self.lock();
        state.end = Some(end);
        self.tell(state);
    }

    /// Adds the calls of one turn.
    pub fn push_calls(&self, calls: impl Iterator<Item = Arrived>) {
        let mut state = self.lock();
        state.calls.extend(calls);
        self.tell(state);
    }

    /// Reports a cancelled call, in case JavaScript is handling it. Cancelled calls that still wait are
    /// removed from time to time.
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

    /// Moves out at most `max` events and calls, events first. Returns whether more wait; if not, the next
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
        if events.is_empty() && calls.is_empty() {
            events.extend(state.end.take());
        }
        state.told = !state.events.is_empty() || !state.calls.is_empty() || state.end.is_some();
        if !state.told {
            self.drained.notify_all();
        }
        state.told
    }

    /// A trace that shows JavaScript each frame of a connection.
    pub fn trace(self: &Arc<Self>) -> Trace {
        let inbox = self.clone();
        Trace::new(move |direction, frame| {
            let target = u32::from(direction == Direction::Out);
            let traced = Event::row(Inbound::Traced, 0, target, frame.to_owned());
            inbox.push(traced);
        })
    }

    /// Waits until JavaScript has taken everything; returns `false` after `timeout`.
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

/// Wakes JavaScript when dropped, also if the runtime shuts down first.
struct Telling(Arc<Tell>);

impl Drop for Telling {
    fn drop(&mut self) {
        // Fails only while JavaScript's environment is torn down: then there is nothing to wake.
        self.0.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }
}

/// Reports, when dropped, that the engine's thread has ended, normally or by a panic.
pub struct EndReport {
    inbox: Arc<Inbox>,
    json: String,
    /// Whether there is anything to report.
    is_due: Box<dyn Fn() -> bool + Send>,
}

impl EndReport {
    pub fn new(inbox: &Arc<Inbox>) -> Self {
        Self::when(inbox, || true)
    }

    /// Reports nothing unless `is_due` returns `true` at the end.
    pub fn when(inbox: &Arc<Inbox>, is_due: impl Fn() -> bool + Send + 'static) -> Self {
        Self {
            inbox: inbox.clone(),
            json: String::new(),
            is_due: Box::new(is_due),
        }
    }

    /// Sets the report, as JSON.
    pub fn set(&mut self, json: String) {
        self.json = json;
    }
}

impl Drop for EndReport {
    fn drop(&mut self) {
        if (self.is_due)() {
            let json = std::mem::take(&mut self.json);
            self.inbox.push(Event::text(Inbound::Ended, json));
        }
    }
}
