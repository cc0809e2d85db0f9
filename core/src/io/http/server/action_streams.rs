//! Streams of actions. Each stream's messages are numbered and kept for a while, for a client whose
//! connection broke off (R-ACT-26). The action runs on in the meantime; it never runs twice.
//!
//! ```text
//!   POST, GET ───▶ exchange ─▶ log ─▶ reader ─▶ events, `id: NAME_1`, `id: NAME_2`, …
//!                               ▲
//!   GET, Last-Event-ID: NAME_1 ─┴───▶ reader behind the first
//! ```
//!
//! The reader drives the exchange. Without a reader, a task drives it until a client reconnects or the
//! time for that is over, which ends the action.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::sleep;

use super::exchange::{Answering, Moved};
use super::message_log::{MessageLog, Which};
use super::options::HttpOptions;
use super::refusal::{ACTION_EVENTS_GONE, HttpRefusal};
use super::session_name::name;
use super::sse::{SseEncoder, SseSource, parse_id};
use crate::connection::{Budget, Held, Principal, StreamId};
use crate::io::http::message_bytes::MessageBytes;
use crate::json::string;
use crate::limits::MAX_LEFT_BYTES;

/// The streams of one endpoint that a client may reconnect to.
pub struct ActionStreams {
    live: Mutex<HashMap<Arc<str>, Arc<ActionStream>>>,
    /// Bytes in all logs.
    bytes: Arc<AtomicUsize>,
    max: usize,
    ttl: Duration,
    replay_bytes: usize,
    budget: Arc<Budget>,
    worker: Option<u64>,
}

/// The stream of one action.
struct ActionStream {
    name: Arc<str>,
    principal: Option<Principal>,
    state: Mutex<State>,
    replay_bytes: usize,
    total: Arc<AtomicUsize>,
}

struct State {
    /// `None` once everything is in the log.
    answering: Option<Answering>,
    log: MessageLog,
    /// How many readers there have been.
    readers: u64,
    /// Accounts for the log in the memory budget; `total` includes the same bytes.
    held: Held,
}

/// Detaches itself when dropped.
pub struct ActionReader {
    streams: Arc<ActionStreams>,
    stream: Arc<ActionStream>,
    number: u64,
}

impl ActionStreams {
    pub fn new(options: &HttpOptions, budget: &Arc<Budget>, worker: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            live: Mutex::default(),
            bytes: Arc::default(),
            max: options.max_sessions,
            ttl: options.action_ttl,
            replay_bytes: options.replay_bytes,
            budget: budget.clone(),
            worker,
        })
    }

    fn live(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<ActionStream>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the stream of an action of `principal` with the messages written so far. The client
    /// cannot reconnect to it if no name can be generated, or if too many streams are kept already.
    pub fn begin(
        self: &Arc<Self>,
        begun: impl IntoIterator<Item = MessageBytes>,
        answering: Option<Answering>,
        principal: Option<&Principal>,
    ) -> ActionReader {
        let mut log = MessageLog::of(StreamId::FIRST);
        begun.into_iter().for_each(|message| log.push(message));
        if answering.is_none() {
            log.stream = None;
        }
        let stream = Arc::new(ActionStream {
            name: name(self.worker).unwrap_or_default(),
            principal: principal.cloned(),
            state: Mutex::new(State {
                answering,
                log,
                readers: 0,
                held: Held::of(&self.budget),
            }),
            replay_bytes: self.replay_bytes,
            total: self.bytes.clone(),
        });
        if !stream.name.is_empty() && !self.ttl.is_zero() {
            let mut live = self.live();
            if live.len() >= self.max {
                // Clients that have read everything are unlikely to reconnect.
                live.retain(|_, stream| !stream.dismissed());
            }
            if live.len() < self.max {
                live.insert(stream.name.clone(), stream.clone());
            }
        }
        let number = stream.read(None).unwrap_or_default();
        self.reader(stream, number)
    }

    fn reader(self: &Arc<Self>, stream: Arc<ActionStream>, number: u64) -> ActionReader {
        ActionReader {
            streams: self.clone(),
            stream,
            number,
        }
    }

    /// Continues after the event of that id; a current reader is displaced. `None` when everything was
    /// read already.
    ///
    /// # Errors
    /// When there is no such stream, or the events that follow are no longer kept.
    pub fn resume(
        self: &Arc<Self>,
        id: &str,
        principal: Option<&Principal>,
    ) -> Result<Option<ActionReader>, HttpRefusal> {
        let found = parse_id(id).and_then(|(name, read)| {
            let stream = self.live().get(name).cloned()?;
            let is_own = stream.principal.as_ref() == principal;
            let number = is_own.then(|| stream.read(Some(read))).flatten()?;
            Some((stream, number))
        });
        let Some((stream, number)) = found else {
            let mut details = b"{\"last_event_id\":".to_vec();
            string::append(&mut details, id);
            details.push(b'}');
            return Err(HttpRefusal {
                details: String::from_utf8(details).ok(),
                ..ACTION_EVENTS_GONE
            });
        };
        let over = stream.state().log.is_at_end();
        let reader = self.reader(stream, number);
        Ok((!over).then_some(reader))
    }

    fn forget(&self, name: &str) {
        let gone = self.live().remove(name);
        // Dropped outside the lock: it may end a whole action.
        drop(gone);
    }
}

impl ActionStream {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attaches a new reader and returns its number, if the messages that follow are still kept.
    fn read(&self, behind: Option<u64>) -> Option<u64> {
        let mut state = self.state();
        let number = state.readers + 1;
        state.log.begin(number, behind).then(|| {
            state.readers = number;
            number
        })
    }

    /// Releases the stream if it is over and has no reader. Returns whether that was so.
    fn dismissed(&self) -> bool {
        let mut state = self.state();
        let idle = state.answering.is_none() && !state.log.is_read();
        if idle {
            // Ends the task that waits for a client to reconnect.
            state.readers += 1;
            state.log.wake();
        }
        idle
    }

    /// Drives the stream for at most `ttl`. Returns `true` if no client has reconnected by then; `left`
    /// is the number of the last reader.
    async fn wait(&self, ttl: Duration, left: u64) -> bool {
        let mut over = pin!(sleep(ttl));
        poll_fn(|cx| {
            let mut state = self.state();
            if state.readers != left {
                return Poll::Ready(false);
            }
            // Messages that have no room wait in the engine.
            while state.log.bytes() <= self.replay_bytes
                && matches!(state.advance(cx), Poll::Ready(Moved::On))
            {}
            self.count(&mut state);
            state.log.watch(cx.waker());
            over.as_mut().poll(cx).map(|()| true)
        })
        .await
    }

    /// Forgets read messages beyond the limit, except the last one, which is usually the answer; then
    /// accounts for the rest.
    fn count(&self, state: &mut State) {
        while state.log.bytes() > self.replay_bytes
            && !state.log.is_last()
            && state.log.forget(Which::Read).is_some()
        {}
        let bytes = state.log.bytes();
        self.total.fetch_add(bytes, Ordering::Relaxed);
        self.total.fetch_sub(state.held.bytes(), Ordering::Relaxed);
        state.held.keep(bytes);
    }
}

impl State {
    /// Moves messages written since the last call to the log.
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Moved> {
        let Self { answering, log, .. } = self;
        let Some(source) = answering else {
            return Poll::Ready(Moved::ToEnd);
        };
        let moved = source.poll_messages(cx, |message| log.push(message));
        if moved == Poll::Ready(Moved::ToEnd) {
            *answering = None;
            log.stream = None;
        }
        moved
    }
}

impl SseSource for ActionReader {
    fn poll_events(&mut self, encoder: &mut SseEncoder, cx: &mut Context<'_>) -> Poll<()> {
        let stream = &*self.stream;
        let mut state = stream.state();
        loop {
            if !state.log.is_read_by(self.number) {
                return Poll::Ready(());
            }
            while let Some((read, message)) = state.log.next() {
                encoder.message(Some((&stream.name, read)), &message);
                if encoder.is_full() {
                    stream.count(&mut state);
                    return Poll::Pending;
                }
            }
            let moved = state.advance(cx);
            stream.count(&mut state);
            match moved {
                _ if !state.log.has_room() => {}
                Poll::Ready(Moved::ToEnd) => return Poll::Ready(()),
                Poll::Ready(Moved::On) => {}
                Poll::Pending => {
                    state.log.watch(cx.waker());
                    return Poll::Pending;
                }
            }
        }
    }
}

impl Drop for ActionReader {
    fn drop(&mut self) {
        let mut state = self.stream.state();
        if !state.log.is_read_by(self.number) {
            return;
        }
        state.log.leave();
        drop(state);
        let (streams, stream, left) = (self.streams.clone(), self.stream.clone(), self.number);
        let kept = streams.live().contains_key(&stream.name)
            && streams.bytes.load(Ordering::Relaxed) <= MAX_LEFT_BYTES
            && !streams.budget.is_tight();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if kept => drop(runtime.spawn(async move {
                if stream.wait(streams.ttl, left).await {
                    streams.forget(&stream.name);
                }
            })),
            _ => streams.forget(&stream.name),
        }
    }
}

impl Drop for ActionStream {
    fn drop(&mut self) {
        let counted = self.state().held.bytes();
        self.total.fetch_sub(counted, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// A stream that breaks off is not kept while other such streams hold too many bytes.
    #[test]
    fn no_more_is_left_than_may_be() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().build().expect("a runtime");
        let _entered = runtime.enter();
        let budget = Arc::new(Budget::default());
        let streams = ActionStreams::new(&HttpOptions::default(), &budget, None);
        let part = Bytes::from(vec![b'x'; MAX_LEFT_BYTES / 4 - 1024]);
        let leave = || {
            let message: MessageBytes = [part.clone()].into_iter().collect();
            let mut reader = streams.begin([message], None, None);
            let mut encoder = SseEncoder::default();
            let waker = std::task::Waker::noop();
            let _ = reader.poll_events(&mut encoder, &mut Context::from_waker(waker));
        };
        for left in 1..=4 {
            leave();
            assert_eq!(streams.live().len(), left);
        }
        leave();
        leave();
        assert_eq!(streams.live().len(), 4, "there is no room for more");
        assert!(budget.bytes() > MAX_LEFT_BYTES / 2 && budget.bytes() <= MAX_LEFT_BYTES);
        drop(streams);
    }
}
