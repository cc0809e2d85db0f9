//! Sessions that all processes of a server accept: what is common to them.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::timeout;

use super::session_facts::SessionFacts;
use super::session_name::without_worker;
use super::session_wishes::Wishes;
use crate::buffer::Input;
use crate::connection::{Config, Principal};
use crate::digest;
use crate::policy::Policy;
use crate::store::{
    Blob, BlobVersion, LogBounds, SealedStore, SharedStore, StoreError, StoreFault, StoreKeys, When,
};

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
/// its principal, and when the session began. So there is nothing to look up, and a session costs the store nothing, unless its client subscribes to something. A process
/// that meets a session for the first time begins it again from its id; for the server it is a new session of that
/// client, which has the log level and the subscriptions that the client has asked for (`logging/setLevel`,
/// `resources/subscribe`): these are on the store. What else a client has done before stays with the process where it was done: requests in
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
/// | a client subscribes, or sets its log level | this has effect at its process, and elsewhere once the store is back (fails open) |
/// | a list or a resource changes | clients of this process hear of it; those of the others when the store is back (fails open) |
/// | a client ends its session | it ends in this process, and the answer is 503, because others cannot be told (fails closed) |
///
/// Sessions of 2024-11-05 belong to one process, and so do those of clients whose introduction is longer than about a kilobyte.
#[derive(Clone, Debug)]
pub struct SharedSessions {
    /// Where the events of streams, ended sessions, subscriptions, log levels and changes are. The store of all processes.
    pub store: Arc<dyn SharedStore>,
    /// What seals the ids, and what states of calls are signed with. The keys of all processes.
    pub keys: Arc<StoreKeys>,
    /// How long after its beginning a session is accepted by processes that have not met it; 24 h by default. From 1 s to
    /// 30 days.
    pub max_age: Duration,
    /// Tells the sessions of this server from those of other servers that have the same keys, which do not accept them; the
    /// prefix of names in the store is one such text. Empty by default.
    pub scope: Arc<str>,
    /// Whether rates, quotas and proofs of the server's policy are kept on the store, too, sealed, as
    /// [`Policy::share`](crate::policy::Policy::share) does; false by default. If another server has the same policy, the first store
    /// counts.
    pub shares_policy: bool,
}

impl SharedSessions {
    /// Sessions that last up to 24 hours.
    pub fn new(store: Arc<dyn SharedStore>, keys: Arc<StoreKeys>) -> Self {
        Self {
            store,
            keys,
            max_age: Duration::from_secs(24 * 3600),
            scope: Arc::default(),
            shares_policy: false,
        }
    }

    /// Has the policy of a server kept on the store, if that is wanted.
    pub(super) fn share_policy(&self, policy: Option<&Policy>) {
        if let Some(policy) = policy.filter(|_| self.shares_policy) {
            policy.share_on(self.sealed_store());
        }
    }

    /// The key of the states that clients hold between the rounds of a call.
    pub(super) fn state_key(&self) -> [u8; 32] {
        self.keys.secret(&format!("states of calls {}", self.scope))
    }

    /// The store, in which nobody reads without the keys.
    pub(super) fn sealed_store(&self) -> SealedStore {
        SealedStore::new(self.store.clone(), self.keys.clone())
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

    /// The name of the mark of a session.
    fn mark(&self, id: &str) -> String {
        self.keys.name(&format!("session {}", digest(id)))
    }

    /// What the store knows of a session, as far as it can be asked.
    pub(super) async fn known(&self, id: &str) -> KnownSession {
        let mark = self.mark(id);
        match self.store.get(&mark).await {
            Ok(None) => KnownSession::Nothing,
            Ok(Some(blob)) => self.read(&mark, &blob),
            Err(why) => {
                event!(warn, %why, "a session is accepted though the store cannot be asked whether it has ended");
                let _ = why;
                KnownSession::Nothing
            }
        }
    }

    fn read(&self, mark: &str, blob: &Blob) -> KnownSession {
        // Without contents, or sealed ones that are longer.
        if blob.bytes.len() <= TOLD.len() {
            return KnownSession::Ended;
        }
        let wishes = self.keys.open(mark.as_bytes(), &blob.bytes).ok();
        let wishes = wishes.and_then(|wishes| serde_json::from_slice(&wishes).ok());
        match wishes {
            Some(wishes) => KnownSession::Wishes(wishes, blob.version),
            None => {
                event!(
                    warn,
                    "the subscriptions of a session are sealed with another key"
                );
                KnownSession::Nothing
            }
        }
    }

    /// Adds to what is noted of the wishes of a session, for as long as other processes accept it. Returns the versions
    /// before and after; `None` if no process will ask.
    pub(super) async fn note(
        &self,
        id: &str,
        wishes: &Wishes,
    ) -> Result<Option<(Option<BlobVersion>, BlobVersion)>, StoreError> {
        let facts = SessionFacts::open(&self.keys, &self.scope, without_worker(id));
        let age = facts.map(|facts| now().saturating_sub(facts.begun));
        let keep = age.map(|age| {
            self.max_age()
                .saturating_sub(Duration::from_secs(age.into()))
        });
        let Some(keep) = keep.filter(|keep| !keep.is_zero()) else {
            return Ok(None);
        };
        let mark = self.mark(id);
        loop {
            let known = self.store.get(&mark).await?;
            let before = known.as_ref().map(|blob| blob.version);
            let mut all = match known.map(|blob| self.read(&mark, &blob)) {
                Some(KnownSession::Ended) => return Ok(None),
                Some(KnownSession::Wishes(all, _)) => all,
                Some(KnownSession::Nothing) | None => Wishes::default(),
            };
            all.merge(wishes.clone());
            all.settle();
            // Cannot fail: its maps have texts as keys.
            let text = serde_json::to_vec(&all).unwrap_or_default();
            let sealed = self.sealed(&mark, &text)?;
            let when = before.map_or(When::Absent, When::Is);
            if let Some(after) = self.store.put(&mark, &sealed, keep, when).await? {
                return Ok(Some((before, after)));
            }
        }
    }

    fn sealed(&self, context: &str, text: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.keys.seal(context.as_bytes(), text).map_err(|_| {
            let why = "the system provides no randomness to seal with";
            StoreError::new(StoreFault::Unreadable, why)
        })
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
            // In place of the wishes.
            self.store.put(&mark, b"", keep, When::Always).await?;
        }
        let bounds = LogBounds {
            entries: MAX_ENDED,
            bytes: 4 << 20,
            keep,
        };
        let sealed = self.sealed(ENDED, id.as_bytes())?;
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

/// What the store knows of a session.
pub(super) enum KnownSession {
    /// Neither its end nor its wishes, or the store cannot be asked.
    Nothing,
    /// Its client has ended it.
    Ended,
    /// What its client wants.
    Wishes(Wishes, BlobVersion),
}

/// What stands for a session in the names of the store.
pub(super) fn digest(id: &str) -> String {
    digest::short(without_worker(id).as_bytes())
}

/// Seconds since 1970.
fn now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as u32)
}
