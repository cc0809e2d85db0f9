//! Streams of actions: what was written on each is numbered and kept for a while, for a client whose
//! connection broke off (R-ACT-26). The action runs on meanwhile; it never runs twice.
//!
//! ```text
//!   POST, GET ───▶ exchange ─▶ log ─▶ reader ─▶ events, `id: NAME_1`, `id: NAME_2`, …
//!                               ▲
//!   GET, Last-Event-ID: NAME_1 ─┴───▶ reader behind the first
//! ```
//!
//! Who reads drives the exchange. Where nobody reads a task does, until somebody comes back or the time
//! for that is over, which ends the action.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::sleep;

use super::events::{Encoder, Message, Source};
use super::exchange::{Answering, Moved};
use super::log::Log;
use super::options::HttpOptions;
use crate::connection::{Principal, StreamId};
use crate::limits::MAX_LEFT_BYTES;
use crate::unguessable;

/// The streams of one endpoint that a client may come back to.
pub struct Running {
    live: Mutex<HashMap<Arc<str>, Arc<Stream>>>,
    /// Bytes in the logs of all.
    bytes: Arc<AtomicUsize>,
    max: usize,
    ttl: Duration,
    replay_bytes: usize,
}

/// That of one action.
struct Stream {
    name: Arc<str>,
    principal: Option<Principal>,
    state: Mutex<State>,
    replay_bytes: usize,
    total: Arc<AtomicUsize>,
}

struct State {
    /// Until everything is in the log.
    answering: Option<Answering>,
    log: Log,
    /// How many readers there were.
    readers: u64,
    /// What `total` holds of the log.
    counted: usize,
}

/// Leaves when it is dropped.
pub struct Reader {
    running: Arc<Running>,
    stream: Arc<Stream>,
    number: u64,
}

/// What there is for who comes back.
pub enum Resumed {
    Reader(Reader),
    /// Everything was read.
    AtEnd,
    /// There is no such stream, or what follows is not kept any more.
    Gone,
}

impl Running {
    pub fn new(options: &HttpOptions) -> Arc<Self> {
        Arc::new(Self {
            live: Mutex::default(),
            bytes: Arc::default(),
            max: options.max_sessions,
            ttl: options.action_ttl,
            replay_bytes: options.replay_bytes,
        })
    }

    fn live(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Stream>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream of an action of that principal's, which has begun with these messages. There is
    /// no coming back to it where no name can be had, or too many streams are read as it is.
    pub fn begin(
        self: &Arc<Self>,
        begun: impl IntoIterator<Item = Message>,
        answering: Option<Answering>,
        principal: Option<&Principal>,
    ) -> Reader {
        let mut log = Log::of(StreamId::FIRST);
        begun.into_iter().for_each(|message| log.push(message));
        if answering.is_none() {
            log.stream = None;
        }
        let stream = Arc::new(Stream {
            name: unguessable::name().unwrap_or_default(),
            principal: principal.cloned(),
            state: Mutex::new(State {
                answering,
                log,
                readers: 0,
                counted: 0,
            }),
            replay_bytes: self.replay_bytes,
            total: self.bytes.clone(),
        });
        if !stream.name.is_empty() && !self.ttl.is_zero() {
            let mut live = self.live();
            if live.len() >= self.max {
                // Those who have it all will hardly come back.
                live.retain(|_, stream| !stream.dismissed());
            }
            if live.len() < self.max {
                live.insert(stream.name.clone(), stream.clone());
            }
        }
        let number = stream.read(None).unwrap_or_default();
        self.reader(stream, number)
    }

    fn reader(self: &Arc<Self>, stream: Arc<Stream>, number: u64) -> Reader {
        Reader {
            running: self.clone(),
            stream,
            number,
        }
    }

    /// Goes on behind the event of that id; who still reads there is sent away.
    pub fn resume(self: &Arc<Self>, id: &str, principal: Option<&Principal>) -> Resumed {
        let found = id.rsplit_once('_').and_then(|(name, read)| {
            let digits = read.bytes().all(|byte| byte.is_ascii_digit());
            let read: u64 = read.parse().ok().filter(|_| digits)?;
            let stream = self.live().get(name).cloned()?;
            let own = stream.principal.as_ref().map(Principal::as_str);
            (own == principal.map(Principal::as_str)).then_some((stream, read))
        });
        let Some((stream, read)) = found else {
            return Resumed::Gone;
        };
        let Some(number) = stream.read(Some(read)) else {
            return Resumed::Gone;
        };
        let over = stream.state().log.is_at_end();
        let reader = self.reader(stream, number);
        match over {
            true => Resumed::AtEnd,
            false => Resumed::Reader(reader),
        }
    }

    fn forget(&self, name: &str) {
        let gone = self.live().remove(name);
        // What it ends may be much.
        drop(gone);
    }
}

impl Stream {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a reader who goes on there, if what follows is kept.
    fn read(&self, behind: Option<u64>) -> Option<u64> {
        let mut state = self.state();
        let number = state.readers + 1;
        state.log.begin(number, behind).then(|| {
            state.readers = number;
            number
        })
    }

    /// Lets go of it where it is over and nobody reads it. Whether it was so.
    fn dismissed(&self) -> bool {
        let mut state = self.state();
        let idle = state.answering.is_none() && !state.log.is_read();
        if idle {
            // Whoever waits for somebody to come back is done.
            state.readers += 1;
            state.log.wake();
        }
        idle
    }

    /// Drives it until its time is over. Whether nobody has come back by then; `left` is the last
    /// who was there.
    async fn wait(&self, ttl: Duration, left: u64) -> bool {
        let mut over = pin!(sleep(ttl));
        poll_fn(|cx| {
            let mut state = self.state();
            if state.readers != left {
                return Poll::Ready(false);
            }
            // What has no room waits in the engine.
            while state.log.bytes() <= self.replay_bytes
                && matches!(state.advance(cx), Poll::Ready(Moved::On))
            {}
            self.count(&mut state);
            state.log.watch(cx.waker());
            over.as_mut().poll(cx).map(|()| true)
        })
        .await
    }

    /// Forgets what was read and has no room; the last stays, which most often is the answer.
    fn count(&self, state: &mut State) {
        while state.log.bytes() > self.replay_bytes
            && !state.log.is_last()
            && state.log.forget(false).is_some()
        {}
        let bytes = state.log.bytes();
        self.total.fetch_add(bytes, Ordering::Relaxed);
        self.total.fetch_sub(state.counted, Ordering::Relaxed);
        state.counted = bytes;
    }
}

impl State {
    /// Takes over what was written since.
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

impl Source for Reader {
    fn poll_events(&mut self, encoder: &mut Encoder, cx: &mut Context<'_>) -> Poll<()> {
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

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.stream.state();
        if !state.log.is_read_by(self.number) {
            return;
        }
        state.log.leave();
        drop(state);
        let (running, stream, left) = (self.running.clone(), self.stream.clone(), self.number);
        let kept = running.live().contains_key(&stream.name)
            && running.bytes.load(Ordering::Relaxed) <= MAX_LEFT_BYTES;
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if kept => drop(runtime.spawn(async move {
                if stream.wait(running.ttl, left).await {
                    running.forget(&stream.name);
                }
            })),
            _ => running.forget(&stream.name),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let counted = self.state().counted;
        self.total.fetch_sub(counted, Ordering::Relaxed);
    }
}
