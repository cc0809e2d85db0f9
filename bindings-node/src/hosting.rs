//! A JavaScript server on many connections, which share one inbox, one wake-up and one drain.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcpbolt::connection::{Config, Handle};
use mcpbolt::policy::Policy;
use mcpbolt::server::{Hosting, ServerHost};

use crate::caller::Caller;
use crate::executor::Handlers;
use crate::inbox::Inbox;
use crate::served::Served;

/// Creates the server's side of each connection.
pub struct Host {
    served: Served,
    config: Arc<Config>,
    inbox: Arc<Inbox>,
    callers: AtomicU64,
}

impl Host {
    /// With `trace`, each frame is shown to JavaScript.
    pub fn new(served: Served, inbox: Arc<Inbox>, trace: bool) -> Self {
        let mut config = Config::clone(&served.config);
        config.trace = trace.then(|| inbox.trace());
        Self {
            served,
            config: Arc::new(config),
            inbox,
            callers: AtomicU64::new(0),
        }
    }
}

impl Hosting for Host {
    fn config(&self) -> &Arc<Config> {
        &self.config
    }

    fn policy(&self) -> Option<Arc<Policy>> {
        self.served.live.snapshot().registry.policy().cloned()
    }

    fn wants_heads(&self) -> bool {
        self.served.delegate.is_some()
    }

    fn host(&self, handle: Handle, timers: Option<&Handle>) -> ServerHost {
        let caller = Caller {
            number: self.callers.fetch_add(1, Ordering::Relaxed),
            handle: handle.clone(),
            stands_alone: timers.is_some(),
        };
        let handlers = Handlers::new(&self.served, caller, self.inbox.clone());
        ServerHost::shared(self.served.live.clone(), handle, Box::new(handlers))
    }
}
