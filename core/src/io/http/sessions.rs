//! The sessions of one endpoint: a bounded number, the longest unused give way (R-SES-01).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::session::Session;
use crate::error::ConnectionError;

/// Bytes of chance in the name of a session (R-SES-02).
const NAME_BYTES: usize = 16;

pub struct Sessions {
    live: Mutex<HashMap<Box<str>, Arc<Session>>>,
    max: usize,
}

impl Sessions {
    /// At most so many at a time.
    pub fn new(max: usize) -> Self {
        let live = Mutex::default();
        Self { live, max }
    }

    fn live(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<Session>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.live().get(id).cloned()
    }

    /// Takes a session in. `false` when all there may be are in use.
    pub fn insert(&self, session: Arc<Session>) -> bool {
        let mut live = self.live();
        let unused = match live.len() < self.max {
            true => None,
            false => {
                let idle = live
                    .values()
                    .filter_map(|each| Some((each.idle_since()?, each)));
                let Some((_, longest)) = idle.min_by_key(|(since, _)| *since) else {
                    return false;
                };
                let id: Box<str> = longest.id().into();
                live.remove(&id)
            }
        };
        live.insert(session.id().into(), session);
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
        let all: Vec<_> = self.live().values().cloned().collect();
        all.into_iter().for_each(|session| session.drain(grace));
    }
}

/// A name that nobody guesses; `None` when the system gives no chance.
pub fn name() -> Option<Box<str>> {
    let mut bytes = [0; NAME_BYTES];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)).into())
}
