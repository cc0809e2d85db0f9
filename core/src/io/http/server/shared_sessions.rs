//! Sessions that all processes of a server accept: what is common to them.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac_sha256::Hash;
use tokio::time::timeout;

use super::session_facts::SessionFacts;
use super::session_name::without_worker;
use crate::buffer::Input;
use crate::connection::{Config, Principal};
use crate::store::{LogBounds, SharedStore, StoreError, StoreFault, StoreKeys, When};

/// The log of sessions that have been ended by their clients. Its entries are their ids, sealed.
const ENDED: &str = "sessions that ended";
/// What the mark of an ended session says once the log has it, so that a client that repeats itself displaces no other end.
const TOLD: &[u8] = b"told";
/// Most entries of that log. A process that is behind by more may go on with a session that has ended.
const MAX_ENDED: u32 = 10_000;
/// How often a process that hears nothing looks for sessions that have ended: its connection may be dead.
const LOOK: Duration = Duration::from_secs(30);

/// Has the sessions of the handshake era accepted by every process that has the same keys and store, whichever has begun them.
///
/// What a process has to know of a session is sealed in its id: the revision, what the client has said of itself, a digest of
/// its principal, and when the session began. So there is nothing to look up, and an idle session costs the store nothing. A process
/// that meets a session for the first time begins it again from its id; for the server it is a new session of that
/// client. What a client has done before stays with the process where it was done: its log level and subscriptions, requests in
/// flight and the questions that they ask the client, values that the program keeps for a session. So a client should reach one process as long as
/// this lives, as by a load balancer with sticky sessions, and goes on at another one without a handshake when it does not.
///
/// The stream of a request goes on at any process: its events are written to the store, sealed, and a client that comes with
/// `Last-Event-ID` to another process than the stream's gets the following ones from there, without gap or duplicate, also those that are
/// still to come. This costs one append when a stream begins and one for each batch of its events; an answer that is one message
/// costs nothing. A log keeps [`replay_bytes`](super::HttpOptions::replay_bytes), at least its last batch, as long as its stream lives, and
/// for a minute after its end, or for [`session_ttl`](super::HttpOptions::session_ttl) if its process dies. What a process has not
/// written when it dies is lost, and within 15 s its streams end at the others. The standing stream of a session (GET without
/// `Last-Event-ID`) belongs to each process, as do streams of actions.
///
/// When a client ends its session, the store gets a mark that lasts for `max_age`, and the other processes are told. They are also told
/// when the program changes a list or says that a resource has changed, and notify their clients, in every revision.
///
/// | while the store is away | |
/// |---|---|
/// | requests of sessions | are served |
/// | a session that a process meets for the first time | is accepted, even if its client has ended it meanwhile (fails open: an id is no proof of identity) |
/// | the stream of a request | goes on at its process, after one attempt to tell the store (fails open); what the store has missed is written when it is back, as far as the process still keeps it, and unless the stream has been over for five attempts, about 4 s |
/// | a client resumes the stream of another process | the answer is 503 (fails closed: no event is skipped) |
/// | a list or a resource changes | clients of this process hear of it; those of the others when the store is back (fails open) |
/// | a client ends its session | it ends in this process, and the answer is 503, because others cannot be told (fails closed) |
///
/// Sessions of 2024-11-05 belong to one process, and so do those of clients whose introduction is longer than about a kilobyte.
#[derive(Clone, Debug)]
pub struct SharedSessions {
    /// Where ended sessions are noted, and the events of streams are. The store of all processes.
    pub store: Arc<dyn SharedStore>,
    /// What seals the ids. The keys of all processes.
    pub keys: Arc<StoreKeys>,
    /// How long after its beginning a session is accepted by processes that have not met it; 24 h by default. From 1 s to
    /// 30 days.
    pub max_age: Duration,
    /// Tells the sessions of this server from those of other servers that have the same keys, which do not accept them; the
    /// prefix of names in the store is one such text. Empty by default.
    pub scope: Arc<str>,
}

impl SharedSessions {
    /// Sessions that last up to 24 hours.
    pub fn new(store: Arc<dyn SharedStore>, keys: Arc<StoreKeys>) -> Self {
        Self {
            store,
            keys,
            max_age: Duration::from_secs(24 * 3600),
            scope: Arc::default(),
        }
    }

    fn max_age(&self) -> Duration {
        let month = Duration::from_secs(30 * 24 * 3600);
        self.max_age.clamp(Duration::from_secs(1), month)
    }

    /// An id for the session that an `initialize` begins; `None` if this process alone can know it.
    pub(super) fn id(
        &self,
        config: &Config,
        principal: Option<&Principal>,
        body: &Input,
    ) -> Option<String> {
        SessionFacts::of(config, principal, body, now())?.seal(&self.keys, &self.scope)
    }

    /// Whether an id is one that every process can know.
    pub(super) fn is_shared(&self, id: &str) -> bool {
        SessionFacts::open(&self.keys, &self.scope, without_worker(id)).is_some()
    }

    /// What an id says, if it belongs to the principal and is not too old.
    pub(super) fn facts(&self, id: &str, principal: Option<&Principal>) -> Option<SessionFacts> {
        let facts = SessionFacts::open(&self.keys, &self.scope, without_worker(id))?;
        let age = Duration::from_secs(now().saturating_sub(facts.begun).into());
        (facts.is_of(principal) && age < self.max_age()).then_some(facts)
    }

    /// The name of the mark of a session that has ended.
    fn mark(&self, id: &str) -> String {
        self.keys.name(&format!("session ended {}", digest(id)))
    }

    /// Whether the client of a session has ended it, as far as the store can be asked.
    pub(super) async fn has_ended(&self, id: &str) -> bool {
        match self.store.get(&self.mark(id)).await {
            Ok(mark) => mark.is_some(),
            Err(why) => {
                event!(warn, %why, "a session is accepted though the store cannot be asked whether it has ended");
                let _ = why;
                false
            }
        }
    }

    /// Notes that the client of a session has ended it, and tells the other processes, unless they have been told.
    pub(super) async fn end(&self, id: &str) -> Result<(), StoreError> {
        let (mark, keep) = (self.mark(id), self.max_age());
        let noted = self.store.put(&mark, b"", keep, When::Absent).await?;
        if noted.is_none() {
            let noted = self.store.get(&mark).await?;
            if noted.is_some_and(|noted| *noted.bytes == *TOLD) {
                return Ok(());
            }
        }
        let bounds = LogBounds {
            entries: MAX_ENDED,
            bytes: 4 << 20,
            keep,
        };
        let sealed = self.keys.seal(ENDED.as_bytes(), id.as_bytes());
        let sealed = sealed.map_err(|_| {
            let why = "the end of a session cannot be sealed";
            StoreError::new(StoreFault::Unreadable, why)
        })?;
        self.store.append(ENDED, &sealed, bounds, 0).await?;
        // The others are told even if this fails; then a repeated request tells them once more.
        let _ = self.store.put(&mark, TOLD, keep, When::Always).await;
        Ok(())
    }

    /// Calls `ended` with each session that has ended from now on, until it returns `false`.
    pub(super) async fn follow(&self, mut ended: impl FnMut(&str) -> bool) {
        let mut after = None;
        while let Err(why) = self.follow_from(&mut after, &mut ended).await {
            event!(warn, %why, "sessions that end elsewhere are not noticed while the store is away");
            let _ = why;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn follow_from(
        &self,
        after: &mut Option<u64>,
        ended: &mut impl FnMut(&str) -> bool,
    ) -> Result<(), StoreError> {
        const PAGE: usize = 256;
        let mut hints = self.store.subscribe(ENDED).await?;
        loop {
            let page = self.store.read(ENDED, *after, PAGE).await?;
            for entry in &page.entries {
                *after = Some(entry.id);
                // Others are sealed with a key that was replaced.
                let id = self.keys.open(ENDED.as_bytes(), &entry.bytes).ok();
                if id.is_some_and(|id| std::str::from_utf8(&id).is_ok_and(|id| !ended(id))) {
                    return Ok(());
                }
            }
            if page.entries.is_empty() {
                let _ = timeout(LOOK, hints.hinted()).await;
            }
        }
    }
}

/// What stands for a session in the names of the store.
pub(super) fn digest(id: &str) -> String {
    let digest = Hash::hash(without_worker(id).as_bytes());
    digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Seconds since 1970.
fn now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as u32)
}
