//! The states that a server of the stateless era has given to clients on one connection.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;

use crate::connection::Principal;
use crate::sync::lock;

/// The most states that are remembered; older ones are forgotten.
const MAX_STATES: usize = 1000;

/// Digests of states, and of the clients that have them.
#[derive(Default)]
pub(super) struct Given(Mutex<VecDeque<u64>>);

impl Given {
    pub fn note(&self, state: &str, who: &Option<Principal>) {
        let mut all = lock(&self.0);
        if all.len() == MAX_STATES {
            all.pop_front();
        }
        all.push_back(digest(state, who));
    }

    pub fn has(&self, state: &str, who: &Option<Principal>) -> bool {
        lock(&self.0).contains(&digest(state, who))
    }
}

fn digest(state: &str, who: &Option<Principal>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let who = who.as_ref().map(Principal::as_str);
    (state, who).hash(&mut hasher);
    hasher.finish()
}
