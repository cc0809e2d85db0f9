//! A server on many connections, which share one inbox, one wake-up and one drain: one of JavaScript, or a chain.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcpbolt::connection::{Config, Handle};
use mcpbolt::policy::Policy;
use mcpbolt::server::{ChangeFeed, Hosting, ServerHost};
use mcpbolt::store::SharedStore;

use crate::caller::Caller;
use crate::executor::Handlers;
use crate::inbox::Inbox;
use crate::served::Served;

/// Creates the server's side of each connection.
pub struct Host {
    served: Served,
    inbox: Arc<Inbox>,
    callers: AtomicU64,
}

impl Host {
    pub fn new(served: Served, inbox: Arc<Inbox>) -> Self {
        Self {
            served,
            inbox,
            callers: AtomicU64::new(0),
        }
    }
}

impl Hosting for Host {
    fn config(&self) -> &Arc<Config> {
        &self.served.config
    }

    fn policy(&self) -> Option<Arc<Policy>> {
        self.served.live.snapshot().registry.policy().cloned()
    }

    fn wants_heads(&self) -> bool {
        self.served.delegate.is_some()
    }

    fn share_states(&self, key: [u8; 32]) {
        if let Some(signer) = &self.served.signer {
            signer.share(key);
        }
    }

    fn share_tasks(&self, store: Arc<dyn SharedStore>) {
        self.served.live.snapshot().registry.share_tasks(store);
    }

    fn change_feed(&self) -> Option<ChangeFeed> {
        Some(self.served.live.snapshot().registry.change_feed())
    }

    fn host(&self, handle: Handle, timers: Option<&Handle>) -> ServerHost {
        let caller = Caller {
            number: self.callers.fetch_add(1, Ordering::Relaxed),
            handle: handle.clone(),
            // Neither has a connection of its own a request that a front passes on for one of many clients.
            stands_alone: timers.is_some() || handle.is_of_many(),
        };
        let handlers = Handlers::new(&self.served, caller, self.inbox.clone());
        ServerHost::shared(self.served.live.clone(), handle, Box::new(handlers))
    }
}

/// Any server, each of whose frames is shown to JavaScript.
struct Traced {
    inner: Arc<dyn Hosting>,
    config: Arc<Config>,
}

/// The server of `hosting`; if it is to be traced, each frame is shown to JavaScript.
pub fn traced(hosting: Arc<dyn Hosting>, trace: bool, inbox: &Arc<Inbox>) -> Arc<dyn Hosting> {
    if !trace {
        return hosting;
    }
    let mut config = Config::clone(hosting.config());
    config.trace = Some(inbox.trace());
    Arc::new(Traced {
        inner: hosting,
        config: Arc::new(config),
    })
}

impl Hosting for Traced {
    fn config(&self) -> &Arc<Config> {
        &self.config
    }

    fn policy(&self) -> Option<Arc<Policy>> {
        self.inner.policy()
    }

    fn wants_heads(&self) -> bool {
        self.inner.wants_heads()
    }

    fn share_states(&self, key: [u8; 32]) {
        self.inner.share_states(key);
    }

    fn share_tasks(&self, store: Arc<dyn SharedStore>) {
        self.inner.share_tasks(store);
    }

    fn change_feed(&self) -> Option<ChangeFeed> {
        self.inner.change_feed()
    }

    fn host(&self, handle: Handle, timers: Option<&Handle>) -> ServerHost {
        self.inner.host(handle, timers)
    }

    fn generation(&self) -> u64 {
        self.inner.generation()
    }

    fn ended(&self) {
        self.inner.ended();
    }
}
