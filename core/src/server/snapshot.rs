//! A registry and its handlers, shared by all connections; both can change while clients are
//! connected.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::registry::{Registry, RegistryError};

/// A registry and its handlers, which belong together.
#[derive(Debug)]
pub struct Snapshot<H> {
    /// The definitions.
    pub registry: Arc<Registry>,
    /// The handlers, keyed by the registry's numbers.
    pub handlers: Arc<H>,
}

impl<H> Clone for Snapshot<H> {
    fn clone(&self) -> Self {
        Self {
            registry: self.registry.clone(),
            handlers: self.handlers.clone(),
        }
    }
}

/// The current registry with its handlers, shared by any number of connections. The numbers of a registry are never
/// reused. A request that an older registry accepted therefore reaches the right handler in a newer
/// snapshot, or is refused if the entry is gone; [`Registry::has`] tells which handlers are still
/// needed.
pub struct SharedRegistry<H> {
    current: RwLock<Snapshot<H>>,
    /// Number of changes so far.
    version: AtomicU64,
    /// Serializes changes.
    changing: Mutex<()>,
}

impl<H: Clone> SharedRegistry<H> {
    /// Starts with this registry and its handlers.
    pub fn new(registry: Registry, handlers: H) -> Self {
        let current = Snapshot {
            registry: Arc::new(registry),
            handlers: Arc::new(handlers),
        };
        Self {
            current: RwLock::new(current),
            version: AtomicU64::new(0),
            changing: Mutex::default(),
        }
    }

    /// Changes the registry on all connections at once and notifies clients of the lists that changed
    /// (R-TOL-07, R-RES-09, R-PRM-07).
    ///
    /// # Errors
    /// The error of `change`, which leaves everything as it was; and [`RegistryError::Fixed`] when
    /// the registry was made without [`announce_changes`](Registry::announce_changes), so that
    /// clients expect no changes.
    pub fn change(
        &self,
        change: impl FnOnce(Registry, H) -> Result<(Registry, H), RegistryError>,
    ) -> Result<(), RegistryError> {
        let changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.snapshot();
        if !before.registry.may_change() {
            return Err(RegistryError::Fixed);
        }
        let registry = Registry::clone(&before.registry);
        let (registry, handlers) = change(registry, H::clone(&before.handlers))?;
        let registry = Arc::new(registry);
        let now = Snapshot {
            registry: registry.clone(),
            handlers: Arc::new(handlers),
        };
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = now;
        self.version.fetch_add(1, Ordering::Release);
        drop(changing);
        for change in registry.changes_since(&before.registry) {
            registry.tell(change);
        }
        Ok(())
    }
}

impl<H> SharedRegistry<H> {
    /// Returns the current snapshot.
    pub fn snapshot(&self) -> Snapshot<H> {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Applies `look` to the current snapshot without sharing it; `None` while a change is in
    /// progress.
    pub fn peek<R>(&self, look: impl FnOnce(&Snapshot<H>) -> R) -> Option<R> {
        self.current.try_read().ok().map(|current| look(&current))
    }
}

impl<H> fmt::Debug for SharedRegistry<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedRegistry")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// The source of a host's registry, whatever type its handlers have.
pub(super) trait Source: fmt::Debug + Send + Sync {
    fn version(&self) -> u64;
    fn registry(&self) -> Arc<Registry>;
}

impl<H: Send + Sync> Source for SharedRegistry<H> {
    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn registry(&self) -> Arc<Registry> {
        self.snapshot().registry
    }
}

/// One connection's snapshot; fetched again only after a change.
pub struct SnapshotCache<H> {
    shared: Arc<SharedRegistry<H>>,
    version: u64,
    snapshot: Snapshot<H>,
}

impl<H: Send + Sync> SnapshotCache<H> {
    /// Starts with the current snapshot.
    pub fn new(shared: &Arc<SharedRegistry<H>>) -> Self {
        // Read the version first: if the registry changes in between, it is only fetched once more.
        let version = shared.version();
        Self {
            shared: shared.clone(),
            version,
            snapshot: shared.snapshot(),
        }
    }

    /// Returns the current snapshot.
    pub fn get(&mut self) -> &Snapshot<H> {
        let version = self.shared.version();
        if version != self.version {
            self.version = version;
            self.snapshot = self.shared.snapshot();
        }
        &self.snapshot
    }
}

impl<H> fmt::Debug for SnapshotCache<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotCache")
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
