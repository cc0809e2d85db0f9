//! What a server offers at the moment, and how it changes while clients are connected.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::builder::{Builder, Server};
use super::registry::{Registry, RegistryError};

/// What is offered, and who carries it out: of one piece.
#[derive(Debug)]
pub struct Offer<H> {
    /// What is offered.
    pub registry: Arc<Registry>,
    /// Who carries it out, by the registry's numbers.
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

/// The offer of the moment, for any number of connections. Numbers of a registry are never given
/// twice, so that what an older registry accepted is carried out by newer handlers as what it is, or
/// refused when it is gone: [`Registry::has`] says what is needed yet.
pub struct Live<H> {
    offer: RwLock<Offer<H>>,
    /// Counts the changes.
    version: AtomicU64,
    /// Held by who changes it.
    changing: Mutex<()>,
}

impl<H: Clone> Live<H> {
    /// Begins with this offer.
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

    /// Changes it on all connections at once; clients are told which lists are others now
    /// (R-TOL-07, R-RES-09, R-PRM-07).
    ///
    /// # Errors
    /// That of `change`; nothing is changed then. Also when the registry was made without
    /// [`announce_changes`](Registry::announce_changes), so that clients do not expect any.
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
    /// What is offered at the moment.
    pub fn offer(&self) -> Offer<H> {
        self.offer
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl<H> fmt::Debug for Live<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Where a host learns what is offered, whoever carries it out.
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

/// The offer as one connection sees it: fetched again only after a change.
pub struct View<H> {
    live: Arc<Live<H>>,
    version: u64,
    offer: Offer<H>,
}

impl<H: Send + Sync> View<H> {
    /// Of the offer of this moment.
    pub fn of(live: &Arc<Live<H>>) -> Self {
        // In this order: an offer newer than its version is fetched once more.
        let version = live.version();
        Self {
            live: live.clone(),
            version,
            offer: live.offer(),
        }
    }

    /// The offer of the moment.
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
        self.live
            .change(|registry, handlers| change(Builder::of(registry, handlers)).into_parts())
    }

    /// Tells the clients that subscribed to it that the resource at `uri` is another now
    /// (R-RES-06). See [`Builder::subscriptions`].
    pub fn resource_updated(&self, uri: &str) {
        self.registry().tell(super::audience::Change::Resource(uri));
    }
}
