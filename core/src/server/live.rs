//! The current offer of a server, which can change while clients are connected.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::builder::{Builder, Server};
use super::registry::{Registry, RegistryError};

/// A registry and its handlers, which belong together.
#[derive(Debug)]
pub struct Offer<H> {
    /// The definitions.
    pub registry: Arc<Registry>,
    /// The handlers, keyed by the registry's numbers.
    pub handlers: Arc<H>,
}

impl<H> Clone for Offer<H> {
    fn clone(&self) -> Self {
        Self {
            registry: self.registry.clone(),
            handlers: self.handlers.clone(),
        }
    }
}

/// The current offer, shared by any number of connections. The numbers of a registry are never
/// reused. A request that an older registry accepted therefore reaches the right handler in a newer
/// offer, or is refused if the entry is gone; [`Registry::has`] tells which handlers are still
/// needed.
pub struct Live<H> {
    offer: RwLock<Offer<H>>,
    /// Number of changes so far.
    version: AtomicU64,
    /// Serializes changes.
    changing: Mutex<()>,
}

impl<H: Clone> Live<H> {
    /// Starts with this offer.
    pub fn new(registry: Registry, handlers: H) -> Self {
        let offer = Offer {
            registry: Arc::new(registry),
            handlers: Arc::new(handlers),
        };
        Self {
            offer: RwLock::new(offer),
            version: AtomicU64::new(0),
            changing: Mutex::default(),
        }
    }

    /// Changes the offer on all connections at once and notifies clients of the lists that changed
    /// (R-TOL-07, R-RES-09, R-PRM-07).
    ///
    /// # Errors
    /// The error of `change`, which leaves the offer as it was; and [`RegistryError::Fixed`] when
    /// the registry was made without [`announce_changes`](Registry::announce_changes), so that
    /// clients expect no changes.
    pub fn change(
        &self,
        change: impl FnOnce(Registry, H) -> Result<(Registry, H), RegistryError>,
    ) -> Result<(), RegistryError> {
        let changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.offer();
        if !before.registry.may_change() {
            return Err(RegistryError::Fixed);
        }
        let registry = Registry::clone(&before.registry);
        let (registry, handlers) = change(registry, H::clone(&before.handlers))?;
        let registry = Arc::new(registry);
        let now = Offer {
            registry: registry.clone(),
            handlers: Arc::new(handlers),
        };
        *self.offer.write().unwrap_or_else(PoisonError::into_inner) = now;
        self.version.fetch_add(1, Ordering::Release);
        drop(changing);
        for change in registry.changes_since(&before.registry) {
            registry.tell(change);
        }
        Ok(())
    }
}

impl<H> Live<H> {
    /// Returns the current offer.
    pub fn offer(&self) -> Offer<H> {
        self.offer
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Applies `look` to the current offer without sharing it; `None` while a change is in
    /// progress.
    pub fn peek<R>(&self, look: impl FnOnce(&Offer<H>) -> R) -> Option<R> {
        self.offer.try_read().ok().map(|offer| look(&offer))
    }
}

impl<H> fmt::Debug for Live<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// The source of a host's registry, whatever type its handlers have.
pub(super) trait Source: fmt::Debug + Send + Sync {
    fn version(&self) -> u64;
    fn registry(&self) -> Arc<Registry>;
}

impl<H: Send + Sync> Source for Live<H> {
    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn registry(&self) -> Arc<Registry> {
        self.offer().registry
    }
}

/// One connection's view of the offer; fetched again only after a change.
pub struct View<H> {
    live: Arc<Live<H>>,
    version: u64,
    offer: Offer<H>,
}

impl<H: Send + Sync> View<H> {
    /// Starts with the current offer.
    pub fn of(live: &Arc<Live<H>>) -> Self {
        // Read the version first: if the offer changes in between, it is only fetched once more.
        let version = live.version();
        Self {
            live: live.clone(),
            version,
            offer: live.offer(),
        }
    }

    /// Returns the current offer.
    pub fn offer(&mut self) -> &Offer<H> {
        let version = self.live.version();
        if version != self.version {
            self.version = version;
            self.offer = self.live.offer();
        }
        &self.offer
    }
}

impl<H> fmt::Debug for View<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Changes the offer on all connections at once and notifies clients of the lists that changed
    /// (R-TOL-07, R-RES-09, R-PRM-07). Running calls are finished.
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
    /// The first registration error, which leaves the offer as it was; and [`RegistryError::Fixed`]
    /// when the server was built without [`Builder::list_changes`], so that clients expect no
    /// changes.
    pub fn change(&self, change: impl FnOnce(Builder) -> Builder) -> Result<(), RegistryError> {
        self.live
            .change(|registry, handlers| change(Builder::of(registry, handlers)).into_parts())
    }

    /// Notifies the clients that subscribed to the resource at `uri` that it has changed
    /// (R-RES-06). See [`Builder::subscriptions`].
    pub fn resource_updated(&self, uri: &str) {
        self.registry().tell(super::audience::Change::Resource(uri));
    }
}
