//! The sessions of one endpoint: a bounded number, of which each source may have a share (R-SES-01).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::session::HttpSession;
use crate::connection::{Principal, RequestSource};
use crate::error::ConnectionError;
use crate::io::net::metrics::{Metrics, count};
use crate::io::shares::{Shares, Stage};

/// How many sessions are checked for an unused one, so that a source that opens many does not delay the
/// others. The next attempt checks other sessions.
const LOOKS: usize = 64;

/// In a large table, a session that was found in use is not checked again for this long. So a newcomer
/// that is refused costs only one check.
const LOOKED_AT: Duration = Duration::from_millis(100);

type Live = Shares<Arc<str>, Arc<HttpSession>>;

pub struct SessionTable {
    live: Mutex<Live>,
    metrics: Arc<Metrics>,
}

/// Removes and returns the session that gives way to a new one of `source`; `None` if all sessions that
/// were checked are in use.
fn take_unused(live: &mut Live, source: &RequestSource) -> Option<Arc<HttpSession>> {
    let (is_large, now) = (live.len() > LOOKS, Instant::now());
    for _ in 0..LOOKS {
        let (found, known, name) = live.yields(source, now)?;
        let session = live.get(&name)?;
        match (session.stage(), session.idle_since()) {
            (stage, _) if stage.is_unfinished() => return live.remove(&name),
            (_, Some(used)) if used <= known => return live.remove(&name),
            (stage, Some(used)) => live.advance(&name, stage, used),
            // All other sessions were used, or checked, since then.
            (_, None) if found == Stage::Used && known.elapsed() < LOOKED_AT && is_large => {
                return None;
            }
            // A client that only listens uses its session, too.
            (_, None) => live.advance(&name, Stage::Used, Instant::now()),
        }
    }
    None
}

impl SessionTable {
    /// `max`: most sessions in total. `each`: most sessions of one source.
    pub fn new(max: usize, each: Option<usize>, metrics: Arc<Metrics>) -> Self {
        let live = Mutex::new(Shares::new(max, each).sparing());
        Self { live, metrics }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of this id, if it belongs to the principal (R-SES-07).
    pub fn get(&self, id: &str, principal: Option<&Principal>) -> Option<Arc<HttpSession>> {
        let session = self.live().get(id).cloned();
        session.filter(|session| session.is_of(principal))
    }

    /// The session of this id, whoever has begun it.
    #[cfg(feature = "sealing")]
    pub fn any(&self, id: &str) -> Option<Arc<HttpSession>> {
        self.live().get(id).cloned()
    }

    /// Inserts a session. Returns `false` when its source has used up its share, or all sessions are in
    /// use.
    pub fn insert(&self, session: Arc<HttpSession>, source: RequestSource) -> bool {
        let mut live = self.live();
        let mut unused = None;
        if !live.has_room(&source) {
            unused = take_unused(&mut live, &source);
            if unused.is_none() {
                return false;
            }
        }
        let (name, stage) = (session.id().clone(), session.stage());
        live.insert(name, source, (stage, Instant::now()), session);
        drop(live);
        count(&self.metrics.sessions);
        if let Some(unused) = unused {
            count(&self.metrics.sessions_ended);
            unused.close(ConnectionError::Idle);
        }
        true
    }

    /// Records that a session has reached a further stage.
    pub fn advance(&self, session: &HttpSession) {
        let stage = session.stage();
        self.live().advance(session.id(), stage, Instant::now());
    }

    pub fn remove(&self, id: &Arc<str>) -> Option<Arc<HttpSession>> {
        let removed = self.live().remove(id);
        if removed.is_some() {
            count(&self.metrics.sessions_ended);
        }
        removed
    }

    /// Removes this very session, but not another one of the same name.
    pub fn remove_this(&self, id: &Arc<str>, session: &Weak<HttpSession>) {
        let mut live = self.live();
        let is_this = |found: &Arc<HttpSession>| Weak::as_ptr(session) == Arc::as_ptr(found);
        if live.get(id).is_some_and(is_this) && live.remove(id).is_some() {
            count(&self.metrics.sessions_ended);
        }
    }

    /// Ends all sessions gracefully within `grace`.
    pub fn drain(&self, grace: Duration) {
        let all: Vec<_> = self.live().values().cloned().collect();
        all.into_iter().for_each(|session| session.drain(grace));
    }
}
