//! The calls that one connection to the server carries, by the requests in which they were passed on.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::route::Route;
use crate::connection::{Caller, Principal};
use crate::correlate::RequestKey;
use crate::sync::lock;

/// The calls of one connection. Requests on another one may have the same keys.
pub(super) struct Routes {
    /// The number of the connection.
    pub connection: u64,
    /// Whether all calls are of one client.
    is_of_one: bool,
    calls: Mutex<Calls>,
    /// The clients on whose behalf this side makes requests of its own, by their keys.
    own: Mutex<HashMap<u64, Option<Principal>>>,
    has_given_up: AtomicBool,
}

#[derive(Default)]
struct Calls {
    by_key: HashMap<u64, Carried>,
    begun: u64,
}

/// A call on its way in one request.
struct Carried {
    /// How many calls had begun before.
    begun: u64,
    route: Arc<Route>,
    /// The only session that the request may go to, if it may not go to any.
    within: Option<u64>,
}

impl Routes {
    pub fn new(connection: u64, is_of_one: bool) -> Self {
        Self {
            connection,
            is_of_one,
            calls: Mutex::default(),
            own: Mutex::default(),
            has_given_up: AtomicBool::new(false),
        }
    }

    /// Whether clients share the connection.
    pub fn is_shared(&self) -> bool {
        !self.is_of_one
    }

    /// Notes the call that a request to the server carries, for as long as the guard exists, and the only session that the request may go to,
    /// if there is one.
    pub fn register(
        &self,
        key: RequestKey,
        route: &Arc<Route>,
        within: Option<u64>,
    ) -> Registered<'_> {
        let mut calls = lock(&self.calls);
        calls.begun += 1;
        let carried = Carried {
            begun: calls.begun,
            route: route.clone(),
            within,
        };
        calls.by_key.insert(key.get(), carried);
        Registered {
            routes: self,
            key: key.get(),
            is_answered: false,
        }
    }

    /// Whether a call has ended before the server had answered it: the server may still say something that belongs to that call.
    pub fn has_given_up(&self) -> bool {
        self.has_given_up.load(Ordering::Acquire)
    }

    /// How many calls have begun.
    pub fn begun(&self) -> u64 {
        lock(&self.calls).begun
    }

    /// The call that a request to the server carries.
    pub fn find(&self, key: u64) -> Option<Arc<Route>> {
        let calls = lock(&self.calls);
        calls.by_key.get(&key).map(|it| it.route.clone())
    }

    /// Notes on behalf of which client this side makes a request of its own.
    pub fn note_own(&self, key: RequestKey, who: Option<Principal>) {
        lock(&self.own).insert(key.get(), who);
    }

    /// Forgets a request of this side's own.
    pub fn forget_own(&self, key: RequestKey) {
        let gone = lock(&self.own).remove(&key.get());
        drop(gone);
    }

    /// On whose behalf a request is made.
    pub fn caller(&self, key: u64) -> Caller {
        if let Some(route) = self.find(key) {
            return match route.is_of_all {
                true => Caller::Nobody,
                false => Caller::Is(route.principal.clone()),
            };
        }
        let own = lock(&self.own).get(&key).cloned();
        own.map_or(Caller::Nobody, Caller::Is)
    }

    /// The ids of the requests that may only go to that session.
    pub fn bound(&self, session: u64) -> Vec<u64> {
        let calls = lock(&self.calls);
        let own = |it: &Carried| it.within == Some(session);
        let bound = calls.by_key.iter().filter(|(_, it)| own(it));
        bound.map(|(key, _)| *key).collect()
    }

    /// The only session that a request may go to.
    pub fn session(&self, key: u64) -> Option<u64> {
        let calls = lock(&self.calls);
        calls.by_key.get(&key).and_then(|it| it.within)
    }

    /// The call that a message of the server belongs to: the one on whose stream it came; or else, if all calls are of one
    /// client, the newest of those with the lowest `rank`. A call without a rank does not fit. Never the call of another
    /// client.
    pub fn origin(
        &self,
        within: Option<u64>,
        rank: impl Fn(&Route) -> Option<u64>,
    ) -> Option<Arc<Route>> {
        if let Some(route) = within.and_then(|key| self.find(key)) {
            return Some(route);
        }
        let calls = lock(&self.calls);
        let all = calls.by_key.values();
        let mut fitting = all.filter_map(|it| Some((rank(&it.route)?, it.begun, &it.route)));
        let first = match self.is_of_one {
            true => fitting.min_by_key(|(rank, begun, _)| (*rank, Reverse(*begun))),
            false => {
                let only = fitting.next();
                only.filter(|_| fitting.next().is_none())
            }
        };
        first.map(|(_, _, route)| route.clone())
    }

    /// Whether all calls are of one client, as far as is known.
    pub fn are_of_one(&self) -> bool {
        self.is_of_one || lock(&self.calls).by_key.len() <= 1
    }

    /// The connection is lost: no message of the server belongs to a call any more.
    pub fn clear(&self) {
        let gone = std::mem::take(&mut lock(&self.calls).by_key);
        drop(gone);
    }
}

/// Forgets a call when dropped.
pub(super) struct Registered<'a> {
    routes: &'a Routes,
    key: u64,
    is_answered: bool,
}

impl Registered<'_> {
    /// The server has answered the call.
    pub fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.routes.has_given_up.store(true, Ordering::Release);
        }
        let gone = lock(&self.routes.calls).by_key.remove(&self.key);
        drop(gone);
    }
}
