//! The sessions of one endpoint: a bounded number, the longest unused give way (R-SES-01).

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::session::Session;
use crate::connection::Principal;
use crate::error::ConnectionError;

/// How many sessions in use are looked at for one that is not: who opens many does not keep the
/// others waiting. The next who wants one looks at others.
const LOOKS: usize = 64;

pub struct Sessions {
    live: Mutex<Live>,
    max: usize,
}

#[derive(Default)]
struct Live {
    /// With when each was used last, as far as `order` knows.
    named: HashMap<Arc<str>, (Arc<Session>, Instant)>,
    /// The longest unused first.
    order: BTreeSet<(Instant, Arc<str>)>,
}

impl Live {
    fn insert(&mut self, session: Arc<Session>, used: Instant) {
        let name = session.id().clone();
        self.order.insert((used, name.clone()));
        self.named.insert(name, (session, used));
    }

    fn remove(&mut self, name: &str) -> Option<Arc<Session>> {
        let (name, (session, used)) = self.named.remove_entry(name)?;
        self.order.remove(&(used, name));
        // What many held is given back when few are left.
        if self.named.capacity() / 8 > self.named.len() {
            self.named.shrink_to(self.named.len() * 2);
        }
        Some(session)
    }

    /// The longest unused, taken out; none when those looked at are in use.
    fn take_unused(&mut self) -> Option<Arc<Session>> {
        for _ in 0..LOOKS {
            let (known, name) = self.order.first()?.clone();
            let session = self.remove(&name)?;
            match session.idle_since() {
                Some(used) if used <= known => return Some(session),
                Some(used) => self.insert(session, used),
                None => self.insert(session, Instant::now()),
            }
        }
        None
    }
}

impl Sessions {
    /// At most so many at a time.
    pub fn new(max: usize) -> Self {
        let live = Mutex::default();
        Self { live, max }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// That of this name, if it is that of whoever asks (R-SES-07).
    pub fn get(&self, id: &str, principal: Option<&Principal>) -> Option<Arc<Session>> {
        let session = self
            .live()
            .named
            .get(id)
            .map(|(session, _)| session.clone());
        session.filter(|session| session.is_of(principal))
    }

    /// Takes a session in. `false` when all there may be are in use.
    pub fn insert(&self, session: Arc<Session>) -> bool {
        let mut live = self.live();
        let unused = match live.named.len() < self.max {
            true => None,
            false => match live.take_unused() {
                None => return false,
                unused => unused,
            },
        };
        live.insert(session, Instant::now());
        drop(live);
        if let Some(unused) = unused {
            unused.close(ConnectionError::Idle);
        }
        true
    }

    pub fn remove(&self, id: &str) -> Option<Arc<Session>> {
        self.live().remove(id)
    }

    /// Ends all in good order within `grace`.
    pub fn drain(&self, grace: Duration) {
        let all: Vec<_> = {
            let live = self.live();
            live.named
                .values()
                .map(|(session, _)| session.clone())
                .collect()
        };
        all.into_iter().for_each(|session| session.drain(grace));
    }
}
