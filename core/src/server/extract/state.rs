//! Values that a server shares with its handlers, by type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A value that the server was built with: [`Builder::state`](crate::server::Builder::state).
///
/// ```
/// # #[cfg(feature = "macros")] {
/// use mcpbolt::prelude::*;
///
/// struct Prices(f64);
///
/// /// Returns the price of some copies.
/// #[tool]
/// fn price(copies: f64, State(prices): State<Prices>) -> f64 {
///     prices.0 * copies
/// }
///
/// let server = Server::builder("shop", "1.0.0").state(Prices(7.5)).with(handlers![price]).build()?;
/// # }
/// # Ok::<(), mcpbolt::server::RegistryError>(())
/// ```
#[derive(Debug)]
pub struct State<T>(pub Arc<T>);

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The values of a server, one of each type.
#[derive(Clone, Default)]
pub(in crate::server) struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    /// Adds a value; it replaces another one of its type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.0.get(&TypeId::of::<T>())?.clone().downcast().ok()
    }

    pub fn has(&self, state: TypeId) -> bool {
        self.0.contains_key(&state)
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States")
            .field("count", &self.0.len())
            .finish()
    }
}
