//! Who is told of what changes: the connections of a server and what each wants to hear.
//!
//! With a handshake, every client hears of lists, and of the resources it subscribed to. From
//! 2026-07-28 on a client says in `subscriptions/listen` what it wants to hear, once or several
//! times, and each of these requests is a stream of its own until it is cancelled (R-SUB).

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::listen::{Interests, Listen};
use crate::connection::{Call, CallKey, Handle};
use crate::json::string;
use crate::limits::{MAX_LISTENS, MAX_SUBSCRIPTIONS};
use crate::mcp::Method;

/// Something of a server's that is another now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources, or that of templates.
    Resources,
    /// The resource at that URI.
    Resource(&'a str),
}

impl Change<'_> {
    pub(super) fn method(self) -> Method {
        match self {
            Self::Tools => Method::ToolsChanged,
            Self::Prompts => Method::PromptsChanged,
            Self::Resources => Method::ResourcesChanged,
            Self::Resource(_) => Method::ResourceUpdated,
        }
    }

    /// Which list it is of.
    fn list(self) -> Option<usize> {
        match self {
            Self::Tools => Some(0),
            Self::Prompts => Some(1),
            Self::Resources => Some(2),
            Self::Resource(_) => None,
        }
    }

    /// The members of its params.
    pub(super) fn members(self) -> Option<String> {
        let Self::Resource(uri) = self else {
            return None;
        };
        let mut members = b"\"uri\":".to_vec();
        string::append(&mut members, uri);
        String::from_utf8(members).ok()
    }
}

/// What was told last of each list, counted in what the driver has taken: what is told and not
/// taken yet need not be told again, since who hears it asks for the list of that moment.
#[derive(Debug, Default)]
pub(super) struct Told([Option<u64>; 3]);

impl Told {
    /// Whether a change is to be told; it counts as told then.
    pub fn is_news(&mut self, change: Change<'_>, taken: u64) -> bool {
        let Some(told) = change.list().and_then(|list| self.0.get_mut(list)) else {
            return true;
        };
        told.replace(taken) != Some(taken)
    }
}

/// The connections of one server.
#[derive(Debug, Default)]
pub(super) struct Audience {
    seats: Mutex<Seats>,
}

#[derive(Debug, Default)]
struct Seats {
    taken: HashMap<u64, Weak<Listener>>,
    next: u64,
}

impl Audience {
    /// One more connection; it is forgotten when the listener is dropped.
    pub fn join(self: &Arc<Self>, handle: Handle) -> Arc<Listener> {
        let mut seats = lock(&self.seats);
        let seat = seats.next;
        seats.next += 1;
        let listener = Arc::new(Listener {
            audience: self.clone(),
            seat,
            handle,
            ready: AtomicBool::new(false),
            wants: Mutex::default(),
        });
        seats.taken.insert(seat, Arc::downgrade(&listener));
        listener
    }

    /// What many held is given back when few are left.
    fn leave(&self, seat: u64) {
        let taken = &mut lock(&self.seats).taken;
        taken.remove(&seat);
        if taken.capacity() / 8 > taken.len() {
            taken.shrink_to(taken.len() * 2);
        }
    }

    /// Tells those who want to know.
    pub fn tell(&self, change: Change<'_>) {
        let present = self.present();
        present.iter().for_each(|listener| listener.tell(change));
    }

    /// The same of a task; `detail` holds the members of its state.
    pub fn tell_task(&self, id: &str, detail: &str) {
        for listener in self.present() {
            for listen in &lock(&listener.wants).listens {
                listen.tell_task(&listener.handle, id, detail);
            }
        }
    }

    fn present(&self) -> Vec<Arc<Listener>> {
        let seats = lock(&self.seats);
        seats.taken.values().filter_map(Weak::upgrade).collect()
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Listener {
    audience: Arc<Audience>,
    seat: u64,
    handle: Handle,
    /// A client of the handshake era has said that it is initialized: nothing is told before
    /// (R-LIF-03).
    ready: AtomicBool,
    wants: Mutex<Wants>,
}

#[derive(Debug, Default)]
struct Wants {
    /// What a client of the handshake era subscribed to.
    uris: HashSet<Box<str>>,
    /// The streams of one of the stateless era.
    listens: Vec<Listen>,
    told: Told,
}

impl Listener {
    pub fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// Whether there was room. A second subscription is none (R-RES-07).
    pub fn subscribe(&self, uri: &str) -> bool {
        let uris = &mut lock(&self.wants).uris;
        uris.contains(uri) || uris.len() < MAX_SUBSCRIPTIONS && uris.insert(uri.into())
    }

    pub fn unsubscribe(&self, uri: &str) {
        lock(&self.wants).uris.remove(uri);
    }

    /// Whether there is room for one more stream.
    pub fn has_room(&self) -> bool {
        lock(&self.wants).listens.len() < MAX_LISTENS
    }

    /// Begins a stream: what is honoured is acknowledged before anything else is told (R-SUB-02).
    pub fn listen(&self, call: &Call, interests: Interests) {
        let mut wants = lock(&self.wants);
        let listen = Listen::new(call, interests);
        listen.acknowledge(&self.handle);
        wants.listens.push(listen);
    }

    /// The client ended a stream, if it was one (R-SUB-08).
    pub fn cancelled(&self, key: CallKey) {
        let listens = &mut lock(&self.wants).listens;
        listens.retain(|listen| !listen.is(key));
    }

    /// Ends all streams from this side (R-SUB-09).
    pub fn end(&self) {
        let listens = std::mem::take(&mut lock(&self.wants).listens);
        listens.iter().for_each(|listen| listen.end(&self.handle));
    }

    fn tell(&self, change: Change<'_>) {
        if self.handle.is_closed() {
            return;
        }
        // Under the lock, so that no stream hears of anything before its acknowledgement.
        let mut wants = lock(&self.wants);
        // Before anything is submitted.
        let taken = self.handle.taken();
        for listen in &mut wants.listens {
            listen.tell(&self.handle, change, taken);
        }
        let told = match change {
            Change::Resource(uri) => wants.uris.contains(uri),
            _ => true,
        };
        if told && self.ready.load(Ordering::Acquire) && wants.told.is_news(change, taken) {
            let params = change.members().map(|members| format!("{{{members}}}"));
            // The params are an object.
            let _ = self
                .handle
                .notify(change.method().name(), params.as_deref());
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.audience.leave(self.seat);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::connection::{Config, Connection};
    use crate::mcp::Side;

    #[test]
    fn who_leaves_is_forgotten_at_once() {
        let config = Config::new(Side::Server, "server", "1");
        let connection = Connection::new(Arc::new(config), Instant::now());
        let audience = Arc::new(Audience::default());
        let join = || audience.join(connection.handle());
        let (stays, leave): (_, Vec<_>) = (join(), (0..1000).map(|_| join()).collect());
        assert_eq!(audience.present().len(), 1001);
        drop(leave);
        assert_eq!(audience.present().len(), 1);
        let held = lock(&audience.seats).taken.capacity();
        assert!(held < 100, "room for {held}");
        drop(stays);
        assert_eq!(Arc::strong_count(&audience), 1);
    }
}
