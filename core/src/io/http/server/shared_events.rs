//! Streams of sessions that any process goes on with: their events in the store (R-SSE-04).
//!
//! ```text
//!   the stream's process                          the process where its client resumes
//!   message log ─▶ writer ─▶ log of the stream ─▶ follower ─▶ response
//!   its reader leaves ◀── log of the process ◀──────╯
//! ```
//!
//! The number of an event is that of its message in the message log, wherever it is read. So the store may have a message
//! later than a client, or twice: a follower waits for the next number and skips those that the client has.
//!
//! An entry of a stream's log is a batch of messages:
//!
//! | bytes | |
//! |---|---|
//! | 1 | the version of this format |
//! | 1 | what comes after the batch: 0 more, 1 nothing, 2 messages that are lost |
//! | 8 | the number of the stream's process |
//! | 8 | how many messages of the stream come before the batch |
//! | 4, and as many as these say | a message; any number of them |

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, Bytes};
use smallvec::smallvec;
use tokio::sync::{OnceCell, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::absences::{ALIVE, Absences};
use super::message_log::{MessageLog, Rest, Unstored};
use super::options::HttpOptions;
use super::session::HttpSession;
use super::session_logs::LogReader;
use super::shared_sessions::{SharedSessions, digest};
use super::sse::{SseEncoder, SseSource, StreamPosition};
use crate::store::{
    LogBounds, LogPage, MAX_KEEP, MAX_LOG_BYTES, MAX_LOG_ENTRIES, SealedStore, SharedStore,
    StoreError, StoreFault, StoreKeys, Subscription, When,
};
use crate::sync::lock;

/// The version of the format of entries.
const VERSION: u8 = 1;
/// Most batches in the log of a stream.
const MAX_BATCHES: u32 = 4_096;
/// How long the log of a stream is kept after its end.
const KEPT_AFTER_END: Duration = Duration::from_secs(60);
/// How often a process says that it is alive, and a follower that hears nothing looks again.
const RENEWAL: Duration = Duration::from_secs(2);
/// The pause after the first failure to write. It doubles with each further one, up to [`LONGEST_RETRY`].
const RETRY: Duration = Duration::from_millis(250);
/// Longest pause between two attempts to write.
const LONGEST_RETRY: Duration = Duration::from_secs(4);
/// How many attempts to write the rest of a finished stream are made, or of a stream whose session is gone.
const LAST_TRIES: u32 = 5;
/// Most batches that are read at a time.
const PAGE: usize = 64;
/// Most messages that wait for the response of a follower.
const AHEAD: usize = 16;
/// Most entries of the log in which a process is told of streams that are resumed elsewhere.
const MAX_RESUMED: u32 = 1_000;

/// Writes the streams of this process to the store, and follows those of others.
pub struct SharedEvents {
    store: Arc<dyn SharedStore>,
    /// The number of this process.
    process: u64,
    replay_bytes: usize,
    keep: Duration,
    /// Is begun with the first stream.
    life: OnceCell<Task>,
    /// A failure to write has been reported, and nothing was written since.
    is_failing: Arc<AtomicBool>,
    absences: Arc<Absences>,
    readers: Arc<RemoteReaders>,
}

/// The tasks of remote readers, by the names of the logs that they follow.
type RemoteReaders = Mutex<HashMap<String, AbortHandle>>;

/// A task that ends with this value.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Batch {
    process: u64,
    before: u64,
    messages: Vec<Bytes>,
    rest: Rest,
}

impl Batch {
    fn encode(process: u64, unstored: &Unstored) -> Vec<u8> {
        let mut entry = vec![VERSION, unstored.rest as u8];
        entry.put_u64(process);
        entry.put_u64(unstored.before);
        for message in &unstored.messages {
            entry.put_u32(message.iter().map(Bytes::len).sum::<usize>() as u32);
            message.iter().for_each(|piece| entry.put_slice(piece));
        }
        entry
    }

    fn decode(mut entry: Bytes) -> Option<Self> {
        let version = entry.try_get_u8().ok().filter(|it| *it == VERSION);
        version?;
        let rest = match entry.try_get_u8().ok()? {
            0 => Rest::Follows,
            1 => Rest::Ends,
            _ => Rest::IsLost,
        };
        let (process, before) = (entry.try_get_u64().ok()?, entry.try_get_u64().ok()?);
        let mut messages = Vec::new();
        while let Ok(len) = entry.try_get_u32() {
            let len = usize::try_from(len).ok().filter(|len| *len <= entry.len());
            messages.push(entry.split_to(len?));
        }
        Some(Self {
            process,
            before,
            messages,
            rest,
        })
    }
}

impl SharedEvents {
    /// `None` when the system provides no randomness: then streams stay with their process.
    pub fn new(shared: &SharedSessions, options: &HttpOptions) -> Option<Self> {
        let mut process = [0; 8];
        getrandom::fill(&mut process).ok()?;
        Some(Self {
            store: Arc::new(SealedStore::new(shared.store.clone(), shared.keys.clone())),
            process: u64::from_be_bytes(process),
            replay_bytes: options.replay_bytes,
            keep: options.session_ttl.clamp(KEPT_AFTER_END, MAX_KEEP),
            life: OnceCell::new(),
            is_failing: Arc::default(),
            absences: Arc::default(),
            readers: Arc::default(),
        })
    }

    /// Writes the stream of a reader to the store from now on. Completes when the store knows of the stream, or an attempt to
    /// tell it has failed: before, no client may know of the stream. `left` is called with the session and the stream that a
    /// client resumes elsewhere, until it returns `false`.
    pub async fn share(
        &self,
        session: &Arc<HttpSession>,
        reader: LogReader,
        left: impl FnMut(&str, u64) -> bool + Send + 'static,
    ) {
        self.life.get_or_init(|| self.begin(left)).await;
        session.with_log(reader.stream, MessageLog::share);
        let (first, is_tried) = oneshot::channel();
        let writer = Writer {
            store: self.store.clone(),
            process: self.process,
            replay_bytes: self.replay_bytes,
            keep: self.keep,
            name: name(session.id(), session.position(reader.stream, 0).stream),
            session: Arc::downgrade(session),
            stream: reader.stream,
            is_failing: self.is_failing.clone(),
        };
        drop(tokio::spawn(writer.write(first)));
        let _ = is_tried.await;
    }

    /// Has this process known as alive.
    async fn begin(&self, mut left: impl FnMut(&str, u64) -> bool + Send + 'static) -> Task {
        let (store, process) = (self.store.clone(), self.process);
        let absences = self.absences.clone();
        let _ = store.put(&alive(process), b"", ALIVE, When::Always).await;
        let live = async move {
            let (mut hints, mut after, mut is_failing) = (None, None, false);
            loop {
                match live(&*store, process, &mut hints, &mut after, &mut left).await {
                    Ok(true) => is_failing = false,
                    Ok(false) => return,
                    Err(why) => {
                        absences.forget();
                        if !is_failing {
                            event!(warn, %why, "clients cannot resume streams of this process elsewhere while the store is away");
                        }
                        let _ = why;
                        is_failing = true;
                        sleep(RETRY).await;
                    }
                }
            }
        };
        Task(tokio::spawn(live).abort_handle())
    }

    /// Follows a stream of another process after a position, and displaces the reader that does so at this process. `None` if
    /// its events after that position are not kept.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn resume(
        &self,
        session: &str,
        at: StreamPosition,
    ) -> Result<Option<RemoteReader>, StoreError> {
        let name = name(session, at.stream);
        let mut follower = Follower {
            hints: self.store.subscribe(&name).await?,
            store: self.store.clone(),
            absences: self.absences.clone(),
            name,
            after: None,
            read: at.read,
            process: None,
        };
        let first = follower.step().await?;
        let is_over = !matches!(first.rest, Rest::Follows);
        if first.messages.is_empty()
            && (matches!(first.rest, Rest::IsLost) || !is_over && follower.is_dead().await?)
        {
            return Ok(None);
        }
        if let Some(process) = follower.process.filter(|_| !is_over) {
            let bounds = LogBounds {
                entries: MAX_RESUMED,
                bytes: 1 << 20,
                keep: KEPT_AFTER_END,
            };
            let entry = format!("{} {session}", at.stream);
            self.store
                .append(&resumed(process), entry.as_bytes(), bounds, 0)
                .await?;
        }
        let (ahead, messages) = mpsc::channel(AHEAD);
        let name = follower.name.clone();
        let task = tokio::spawn(follower.follow(first, ahead)).abort_handle();
        let displaced = lock(&self.readers).insert(name.clone(), task.clone());
        if let Some(displaced) = displaced {
            displaced.abort();
        }
        Ok(Some(RemoteReader {
            at,
            messages,
            task,
            name,
            readers: self.readers.clone(),
        }))
    }
}

/// One round of a process's life: says that it is alive, and hears which streams are resumed elsewhere.
async fn live(
    store: &dyn SharedStore,
    process: u64,
    hints: &mut Option<Subscription>,
    after: &mut Option<u64>,
    left: &mut impl FnMut(&str, u64) -> bool,
) -> Result<bool, StoreError> {
    let name = resumed(process);
    store.put(&alive(process), b"", ALIVE, When::Always).await?;
    if hints.is_none() {
        *hints = Some(store.subscribe(&name).await?);
    }
    let page = store.read(&name, *after, PAGE).await?;
    for entry in &page.entries {
        *after = Some(entry.id);
        let entry = std::str::from_utf8(&entry.bytes).ok();
        let told = entry.and_then(|entry| entry.split_once(' '));
        if let Some((stream, session)) = told
            && let Ok(stream) = stream.parse()
            && !left(session, stream)
        {
            return Ok(false);
        }
    }
    if let Some(hints) = hints
        && page.entries.is_empty()
    {
        let _ = timeout(RENEWAL, hints.hinted()).await;
    }
    Ok(true)
}

/// The name of the log of a stream.
fn name(session: &str, stream: u64) -> String {
    format!("events {} {stream:x}", digest(session))
}

/// The name of what says that a process is alive.
fn alive(process: u64) -> String {
    format!("alive {process:016x}")
}

/// The name of the log of streams of a process that are resumed elsewhere.
fn resumed(process: u64) -> String {
    format!("resumed {process:016x}")
}

/// Writes one stream to the store.
struct Writer {
    store: Arc<dyn SharedStore>,
    process: u64,
    replay_bytes: usize,
    keep: Duration,
    name: String,
    session: Weak<HttpSession>,
    stream: u64,
    is_failing: Arc<AtomicBool>,
}

impl Writer {
    async fn write(self, first: oneshot::Sender<()>) {
        let (mut first, mut is_told) = (Some(first), false);
        let (mut pause, mut last_tries, mut count) = (RETRY, 0, 0);
        loop {
            let unstored = poll_fn(|cx| match self.poll_next(cx) {
                // The store is to know of the stream before there are messages.
                Poll::Pending if !is_told => Poll::Ready(Unstored::default()),
                next => next,
            });
            let unstored = timeout(self.keep / 2, unstored).await;
            // The log of a silent stream would expire, although the stream lives.
            let mut unstored = unstored.unwrap_or_else(|_| Unstored {
                before: count,
                ..Unstored::default()
            });
            let mut outcome = self.append(&unstored).await;
            if let Err(why) = &outcome
                && why.fault() == StoreFault::Misuse
            {
                // Longer than anything that the store takes.
                unstored.messages.clear();
                unstored.rest = Rest::IsLost;
                outcome = self.append(&unstored).await;
            }
            if let Some(first) = first.take() {
                let _ = first.send(());
            }
            let after = unstored.before + unstored.messages.len() as u64;
            let mut stored = matches!(unstored.rest, Rest::Follows).then_some(after);
            match outcome {
                Ok(()) => {
                    self.is_failing.store(false, Relaxed);
                    (is_told, pause, last_tries, count) = (true, RETRY, 0, after);
                }
                Err(why) => {
                    if !self.is_failing.swap(true, Relaxed) {
                        event!(warn, %why, "the events of streams are not in the store");
                    }
                    last_tries += u32::from(self.is_over());
                    if !Self::gives_up(last_tries, why.fault()) {
                        sleep(pause).await;
                        pause = (pause * 2).min(LONGEST_RETRY);
                        continue;
                    }
                    stored = None;
                }
            }
            if let Some(session) = self.session.upgrade() {
                session.with_log(self.stream, |log| log.stored(stored));
            }
            if stored.is_none() {
                return;
            }
        }
    }

    /// Whether no more messages come: the stream is finished, or its session is gone.
    fn is_over(&self) -> bool {
        let session = self.session.upgrade();
        let is_over =
            session.and_then(|session| session.with_log(self.stream, |log| log.stream.is_none()));
        is_over.unwrap_or(true)
    }

    /// Whether the rest of a stream stays out of the store, after that many attempts since the stream was over.
    fn gives_up(last_tries: u32, fault: StoreFault) -> bool {
        let is_refused = matches!(fault, StoreFault::Refused | StoreFault::Full);
        last_tries >= LAST_TRIES || last_tries > 0 && is_refused
    }

    fn poll_next(&self, cx: &Context<'_>) -> Poll<Unstored> {
        let session = self.session.upgrade();
        let next =
            session.and_then(|session| session.with_log(self.stream, |log| log.poll_unstored(cx)));
        next.unwrap_or_else(|| Poll::Ready(Unstored::lost()))
    }

    async fn append(&self, unstored: &Unstored) -> Result<(), StoreError> {
        let entry = Batch::encode(self.process, unstored);
        // One batch is kept in any case: the last is usually the answer. One without messages displaces none.
        let bytes = (entry.len() + StoreKeys::OVERHEAD).max(self.replay_bytes);
        let (entries, bytes) = match unstored.messages.is_empty() {
            true => (MAX_LOG_ENTRIES, MAX_LOG_BYTES),
            false => (MAX_BATCHES, bytes.min(MAX_LOG_BYTES)),
        };
        let bounds = LogBounds {
            entries,
            bytes,
            keep: match unstored.rest {
                Rest::Follows => self.keep,
                Rest::Ends | Rest::IsLost => KEPT_AFTER_END,
            },
        };
        self.store.append(&self.name, &entry, bounds, 0).await?;
        Ok(())
    }
}

/// What a follower has found.
struct Step {
    messages: Vec<Bytes>,
    rest: Rest,
}

/// Reads one stream from the store.
struct Follower {
    store: Arc<dyn SharedStore>,
    absences: Arc<Absences>,
    name: String,
    hints: Subscription,
    /// The id of the last entry read.
    after: Option<u64>,
    /// How many messages the client has.
    read: u64,
    /// The stream's process.
    process: Option<u64>,
}

impl Follower {
    /// Reads what is there.
    async fn step(&mut self) -> Result<Step, StoreError> {
        let mut step = Step {
            messages: Vec::new(),
            rest: Rest::Follows,
        };
        loop {
            let page = self.store.read(&self.name, self.after, PAGE).await?;
            if page.entries.is_empty() {
                // The log was forgotten, or another one has begun.
                if page.last == 0 || page.has_gap {
                    step.rest = Rest::IsLost;
                }
                return Ok(step);
            }
            self.take(page, &mut step)?;
            if !matches!(step.rest, Rest::Follows) || !step.messages.is_empty() {
                return Ok(step);
            }
        }
    }

    fn take(&mut self, page: LogPage, step: &mut Step) -> Result<(), StoreError> {
        for entry in page.entries {
            self.after = Some(entry.id);
            let batch = Batch::decode(entry.bytes).ok_or_else(|| {
                let why = "an entry of the store is not one that this version knows";
                StoreError::new(StoreFault::Unreadable, why)
            })?;
            self.process = Some(batch.process);
            let messages = (batch.before + 1..).zip(batch.messages);
            for (number, message) in messages {
                match number {
                    number if number <= self.read => {}
                    number if number == self.read + 1 => {
                        self.read = number;
                        step.messages.push(message);
                    }
                    _ => {
                        step.rest = Rest::IsLost;
                        return Ok(());
                    }
                }
            }
            if !matches!(batch.rest, Rest::Follows) {
                step.rest = batch.rest;
                return Ok(());
            }
        }
        Ok(())
    }

    async fn is_dead(&self) -> Result<bool, StoreError> {
        let Some(process) = self.process else {
            return Ok(true);
        };
        let mark = self.store.get(&alive(process)).await;
        if mark.is_err() {
            self.absences.forget();
        }
        Ok(self.absences.note(process, mark?.is_none(), Instant::now()))
    }

    /// Hands on what it finds, until the stream is over, its process is dead, or the store is away.
    async fn follow(mut self, mut step: Step, ahead: mpsc::Sender<Bytes>) {
        loop {
            for message in step.messages {
                if ahead.send(message).await.is_err() {
                    return;
                }
            }
            if !matches!(step.rest, Rest::Follows) {
                return;
            }
            let mut is_dead = false;
            step = match self.step().await {
                Ok(next) if next.messages.is_empty() && matches!(next.rest, Rest::Follows) => {
                    if timeout(RENEWAL, self.hints.hinted()).await.is_err() {
                        // An error says nothing of the process. The next step meets it as well, or it is over.
                        is_dead = self.is_dead().await.unwrap_or(false);
                    }
                    match self.step().await {
                        Ok(next) if !is_dead || !next.messages.is_empty() => next,
                        _ => return,
                    }
                }
                Ok(next) => next,
                Err(why) => {
                    event!(warn, %why, "a stream of another process breaks off");
                    let _ = why;
                    return;
                }
            };
        }
    }
}

/// The events of a stream of another process. Its task ends with this value.
pub struct RemoteReader {
    at: StreamPosition,
    messages: mpsc::Receiver<Bytes>,
    task: AbortHandle,
    name: String,
    readers: Arc<RemoteReaders>,
}

impl Drop for RemoteReader {
    fn drop(&mut self) {
        self.task.abort();
        let mut readers = lock(&self.readers);
        let own = readers.get(&self.name).map(AbortHandle::id);
        if own == Some(self.task.id()) {
            readers.remove(&self.name);
        }
    }
}

impl SseSource for RemoteReader {
    fn poll_events(&mut self, encoder: &mut SseEncoder, cx: &mut Context<'_>) -> Poll<()> {
        while !encoder.is_full() {
            let Some(message) = std::task::ready!(self.messages.poll_recv(cx)) else {
                return Poll::Ready(());
            };
            self.at.read += 1;
            encoder.event(Some(self.at), &smallvec![message]);
        }
        Poll::Pending
    }
}
