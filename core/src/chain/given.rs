//! The states that a server of the stateless era has given to clients on one connection.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;

use super::route::Route;
use crate::connection::Principal;
use crate::sync::lock;

/// The most states that are remembered; older ones are forgotten.
const MAX_STATES: usize = 1000;

/// Digests of states, of the clients that have them, and of what the clients have called.
#[derive(Default)]
pub(super) struct Given(Mutex<VecDeque<u64>>);

impl Given {
    /// Notes a state that the answer to a call has.
    pub fn note(&self, state: &str, call: &Route) {
        let mut all = lock(&self.0);
        if all.len() == MAX_STATES {
            all.pop_front();
        }
        all.push_back(digest(state, call));
    }

    /// Whether the client of a call has a state from a call of the same.
    pub fn has(&self, state: &str, call: &Route) -> bool {
        lock(&self.0).contains(&digest(state, call))
    }
}

fn digest(state: &str, call: &Route) -> u64 {
    let mut hasher = DefaultHasher::new();
    let who = call.principal.as_ref().map(Principal::as_str);
    (state, who, call.method, &call.about).hash(&mut hasher);
    hasher.finish()
}
