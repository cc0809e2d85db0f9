//! Who is told of what changes: the connections of a server and what each subscribed to.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::connection::Handle;
use crate::json::string;
use crate::limits::MAX_SUBSCRIPTIONS;
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
    fn method(self) -> Method {
        match self {
            Self::Tools => Method::ToolsChanged,
            Self::Prompts => Method::PromptsChanged,
            Self::Resources => Method::ResourcesChanged,
            Self::Resource(_) => Method::ResourceUpdated,
        }
    }

    fn params(self) -> Option<String> {
        let Self::Resource(uri) = self else {
            return None;
        };
        let mut params = b"{\"uri\":".to_vec();
        string::append(&mut params, uri);
        params.push(b'}');
        String::from_utf8(params).ok()
    }
}

/// The connections of one server.
#[derive(Debug, Default)]
pub(super) struct Audience {
    listeners: Mutex<Vec<Weak<Listener>>>,
}

impl Audience {
    /// One more connection; it is forgotten when the listener is dropped.
    pub fn join(&self, handle: Handle) -> Arc<Listener> {
        let listener = Arc::new(Listener {
            handle,
            ready: AtomicBool::new(false),
            uris: Mutex::default(),
        });
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(&listener));
        listener
    }

    /// Tells those who want to know.
    pub fn tell(&self, change: Change<'_>) {
        let listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let present: Vec<_> = listeners.iter().filter_map(Weak::upgrade).collect();
        drop(listeners);
        present.iter().for_each(|listener| listener.tell(change));
    }
}

/// One connection of the handshake era.
#[derive(Debug)]
pub(super) struct Listener {
    handle: Handle,
    /// The client has said that it is initialized: nothing is told before (R-LIF-03).
    ready: AtomicBool,
    /// What it subscribed to.
    uris: Mutex<HashSet<Box<str>>>,
}

impl Listener {
    pub fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// Whether there was room. A second subscription is none (R-RES-07).
    pub fn subscribe(&self, uri: &str) -> bool {
        let mut uris = self.uris.lock().unwrap_or_else(PoisonError::into_inner);
        if uris.contains(uri) {
            return true;
        }
        uris.len() < MAX_SUBSCRIPTIONS && uris.insert(uri.into())
    }

    pub fn unsubscribe(&self, uri: &str) {
        let mut uris = self.uris.lock().unwrap_or_else(PoisonError::into_inner);
        uris.remove(uri);
    }

    fn wants(&self, change: Change<'_>) -> bool {
        let Change::Resource(uri) = change else {
            return true;
        };
        let uris = self.uris.lock().unwrap_or_else(PoisonError::into_inner);
        uris.contains(uri)
    }

    fn tell(&self, change: Change<'_>) {
        if self.ready.load(Ordering::Acquire) && !self.handle.is_closed() && self.wants(change) {
            let params = change.params();
            // The params are an object.
            let _ = self
                .handle
                .notify(change.method().name(), params.as_deref());
        }
    }
}
