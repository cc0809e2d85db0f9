//! What a server offers at the moment, and how it changes while clients are connected.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::builder::{Builder, Handlers, Server};
use super::registry::{Registry, RegistryError};

/// What is offered, and who carries it out: of one piece.
#[derive(Clone)]
pub(super) struct Offer {
    pub registry: Arc<Registry>,
    pub handlers: Arc<Handlers>,
}

/// The offer of the moment. Numbers of a registry are never given twice, so that a newer offer
/// carries out what an older one accepted.
pub(super) struct Live {
    offer: RwLock<Offer>,
    /// Counts the changes.
    version: AtomicU64,
    /// Held by who changes it.
    changing: Mutex<()>,
}

impl Live {
    pub fn new(offer: Offer) -> Self {
        Self {
            offer: RwLock::new(offer),
            version: AtomicU64::new(0),
            changing: Mutex::default(),
        }
    }

    pub fn offer(&self) -> Offer {
        self.offer
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
}

/// The offer as one connection sees it: fetched again only after a change.
pub(super) struct View {
    live: Arc<Live>,
    version: u64,
    offer: Offer,
}

impl View {
    pub fn of(live: &Arc<Live>) -> Self {
        // In this order: an offer newer than its version is fetched once more.
        let version = live.version();
        Self {
            live: live.clone(),
            version,
            offer: live.offer(),
        }
    }

    /// The offer of the moment.
    pub fn offer(&mut self) -> &Offer {
        let version = self.live.version();
        if version != self.version {
            self.version = version;
            self.offer = self.live.offer();
        }
        &self.offer
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Changes what is offered, on all connections at once; clients are told which lists are
    /// others now (R-TOL-07, R-RES-09, R-PRM-07). Calls under way are finished.
    ///
    /// ```
    /// use mcpbolt::server::{Arguments, Server, Tool};
    ///
    /// let server = Server::builder("shop", "1.0.0").list_changes().build()?;
    /// // Later, from any thread, a handler included:
    /// server.change(|offer| {
    ///     offer.tool(Tool::new("order"), |_: Arguments, _| async { "ordered" })
    /// })?;
    /// server.change(|offer| offer.remove_tool("order"))?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    ///
    /// # Errors
    /// The first thing that could not be registered; nothing is changed then. Also when the
    /// server was built without [`Builder::list_changes`], so that clients do not expect any.
    pub fn change(&self, change: impl FnOnce(Builder) -> Builder) -> Result<(), RegistryError> {
        let live = &self.live;
        let changing = live.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let offer = live.offer();
        if !offer.registry.may_change() {
            return Err(RegistryError::Fixed);
        }
        let registry = Registry::clone(&offer.registry);
        let handlers = Handlers::clone(&offer.handlers);
        let changed = change(Builder::of(registry, handlers)).into_offer()?;
        *live.offer.write().unwrap_or_else(PoisonError::into_inner) = changed.clone();
        live.version.fetch_add(1, Ordering::Release);
        drop(changing);
        for change in changed.registry.changes_since(&offer.registry) {
            changed.registry.tell(change);
        }
        Ok(())
    }

    /// Tells the clients that subscribed to it that the resource at `uri` is another now
    /// (R-RES-06). See [`Builder::subscriptions`].
    pub fn resource_updated(&self, uri: &str) {
        self.registry().tell(super::audience::Change::Resource(uri));
    }
}
