//! The clients of the handshake era that use one connection to the server: one, or several that share it. What each has asked for
//! is kept apart.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::connection::{Handle, Principal, ReplyTo};
use crate::correlate::RequestKey;
use crate::json::reader;
use crate::mcp::{LogLevel, Method};
use crate::sync::lock;

/// The most elicitations of a session whose end is yet to be told. The oldest is forgotten for another.
const MAX_ELICITED: usize = 100;

/// The session of one client.
pub(super) struct Session {
    /// A number that no other lane, connection or session of this process has.
    pub number: u64,
    /// The connection of the client.
    pub handle: Handle,
    /// The verified client that has opened it, with the credentials that it had last.
    who: Mutex<Option<Principal>>,
    /// The resources that it has subscribed to, by the server's own names, each with the verified client that asked for it.
    pub subscribed: Mutex<BTreeMap<Box<str>, Option<Principal>>>,
    /// The log level that it has asked for.
    pub level: Mutex<Option<LogLevel>>,
    /// The changes of lists that it may have missed: it has asked for the lists while no stream of the server told of them.
    pub missed: Mutex<Vec<Method>>,
    /// The server's requests that it is asked, by the ids that they have there.
    questions: Mutex<HashMap<u64, (Handle, ReplyTo)>>,
    /// The ids of the pages that its user was sent to.
    elicited: Mutex<VecDeque<Box<str>>>,
}

/// All sessions of a connection to the server.
#[derive(Default)]
pub(super) struct Sessions {
    /// By the addresses of the clients' connections.
    all: Mutex<HashMap<usize, Arc<Session>>>,
    is_reopened: AtomicBool,
}

impl Session {
    /// Notes a question of the server to the client, so that reports of progress find back.
    /// It is forgotten with the guard.
    pub fn asked(self: &Arc<Self>, key: RequestKey, far: &Handle, reply: &ReplyTo) -> Asked {
        let key = key.get();
        lock(&self.questions).insert(key, (far.clone(), reply.clone()));
        Asked {
            session: self.clone(),
            key,
        }
    }

    pub fn question(&self, key: u64) -> Option<(Handle, ReplyTo)> {
        lock(&self.questions).get(&key).cloned()
    }

    pub fn wants(&self, uri: &str) -> bool {
        lock(&self.subscribed).contains_key(uri)
    }

    /// Whether that client has subscribed to a resource in this session.
    pub fn wants_for(&self, uri: &str, who: &Option<Principal>) -> bool {
        lock(&self.subscribed).get(uri) == Some(who)
    }

    /// Notes the credentials of a request: what is asked for later on its client's behalf has them.
    pub fn sent_by(&self, who: &Principal) {
        let mut known = lock(&self.who);
        if let Some(known) = &mut *known
            && known == who
            && !known.has_same_grant(who)
        {
            *known = who.clone();
        }
    }

    /// The verified client that has opened it.
    pub fn who(&self) -> Option<Principal> {
        lock(&self.who).clone()
    }

    /// Notes that the user of the client is sent to a page, given as an elicitation.
    pub fn elicited(&self, page: &str) {
        let Some(id) = elicitation_id(page) else {
            return;
        };
        let mut all = lock(&self.elicited);
        if all.iter().any(|one| **one == *id) {
            return;
        }
        if all.len() >= MAX_ELICITED {
            all.pop_front();
        }
        all.push_back(id);
    }

    /// Whether the user of the client was sent to the page with which these params say that a user has finished. That is told once.
    pub fn finishes(&self, params: &str) -> bool {
        let Some(id) = elicitation_id(params) else {
            return false;
        };
        let mut all = lock(&self.elicited);
        let at = all.iter().position(|one| *one == id);
        at.and_then(|at| all.remove(at)).is_some()
    }
}

/// The id of the page that an elicitation, or the notification of its end, is about.
pub(super) fn elicitation_id(params: &str) -> Option<Box<str>> {
    let id = reader::find(params, "elicitationId").and_then(reader::as_str)?;
    Some(id.into())
}

impl Sessions {
    /// Adds the session of a client, which `who` has opened.
    pub fn join(&self, number: u64, handle: &Handle, who: Option<Principal>) -> Arc<Session> {
        let session = Arc::new(Session {
            number,
            handle: handle.clone(),
            who: Mutex::new(who),
            subscribed: Mutex::default(),
            level: Mutex::default(),
            missed: Mutex::default(),
            questions: Mutex::default(),
            elicited: Mutex::default(),
        });
        self.add(&session);
        session
    }

    /// Adds a session, which may have begun on another connection to the server.
    pub fn add(&self, session: &Arc<Session>) {
        let client = session.handle.address();
        lock(&self.all).insert(client, session.clone());
    }

    pub fn leave(&self, session: &Session) {
        let gone = lock(&self.all).remove(&session.handle.address());
        drop(gone);
    }

    pub fn all(&self) -> Vec<Arc<Session>> {
        lock(&self.all).values().cloned().collect()
    }

    /// The session of the client with this connection.
    pub fn of(&self, front: &Handle) -> Option<Arc<Session>> {
        lock(&self.all).get(&front.address()).cloned()
    }

    /// A client that is still there.
    pub fn any(&self) -> Option<Handle> {
        let all = lock(&self.all);
        let open = all.values().find(|one| !one.handle.is_closed());
        open.map(|one| one.handle.clone())
    }

    /// Whether there are sessions.
    pub fn has_any(&self) -> bool {
        !lock(&self.all).is_empty()
    }

    /// Whether any session is subscribed to a resource.
    pub fn wants(&self, uri: &str) -> bool {
        lock(&self.all).values().any(|one| one.wants(uri))
    }

    /// The verified client of a session.
    pub fn who(&self) -> Option<Principal> {
        let all = lock(&self.all);
        all.values().next().and_then(|one| one.who())
    }

    /// Whether that client has subscribed to a resource in any session.
    pub fn wants_for(&self, uri: &str, who: &Option<Principal>) -> bool {
        let all = lock(&self.all);
        all.values().any(|one| one.wants_for(uri, who))
    }

    /// What sessions are subscribed to, by the client that asked for it, with the credentials that it had last.
    pub fn subscribed(&self) -> HashMap<Option<Principal>, BTreeSet<Box<str>>> {
        let mut by_client = HashMap::<_, BTreeSet<_>>::new();
        for one in lock(&self.all).values() {
            let opener = one.who();
            for (uri, who) in &*lock(&one.subscribed) {
                let newest = if opener == *who { &opener } else { who };
                let uris = by_client.entry(newest.clone()).or_default();
                uris.insert(uri.clone());
            }
        }
        by_client
    }

    /// A client is not granted a resource any more.
    pub fn refused(&self, uri: &str, who: &Option<Principal>) {
        for one in lock(&self.all).values() {
            let mut subscribed = lock(&one.subscribed);
            if subscribed.get(uri) == Some(who) {
                subscribed.remove(uri);
            }
        }
    }

    /// The least severe level that any session wants.
    pub fn level(&self) -> Option<LogLevel> {
        let all = lock(&self.all);
        all.values().filter_map(|one| *lock(&one.level)).min()
    }

    /// That connection to the server is lost: its questions are over.
    pub fn lost(&self, far: &Handle) {
        for one in self.all() {
            let is_lost = |_: &u64, (of, _): &mut (Handle, ReplyTo)| of.is_same(far);
            let gone: Vec<_> = lock(&one.questions).extract_if(is_lost).collect();
            drop(gone);
        }
    }

    /// Begins to open the connection again, unless that is under way already.
    pub fn reopen(&self) -> bool {
        !self.is_reopened.swap(true, Ordering::AcqRel)
    }

    /// The connection is open again, or nobody needs it.
    pub fn reopened(&self) {
        // Takes part in the order of those who begin, so that what made one of them begin in vain is seen after this.
        self.is_reopened.swap(false, Ordering::AcqRel);
    }
}

/// Forgets a question when dropped.
pub(super) struct Asked {
    session: Arc<Session>,
    key: u64,
}

impl Drop for Asked {
    fn drop(&mut self) {
        let gone = lock(&self.session.questions).remove(&self.key);
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::connection::{Config, Connection};
    use crate::mcp::Side;

    #[test]
    fn the_pages_of_a_session_are_remembered_up_to_a_number() {
        let config = Arc::new(Config::new(Side::Server, "x", "1"));
        let near = Connection::new(config, Instant::now());
        let session = Sessions::default().join(0, &near.handle(), None);
        let page = |number: usize| format!(r#"{{"elicitationId":"{number}"}}"#);
        for number in (0..MAX_ELICITED + 2).chain([MAX_ELICITED]) {
            session.elicited(&page(number));
            assert!(lock(&session.elicited).len() <= MAX_ELICITED);
        }
        assert!(!session.finishes(&page(1)));
        assert!(session.finishes(&page(2)));
        assert!(!session.finishes(&page(2)), "it is told once");
        assert!(!session.finishes("{}"));
    }
}
