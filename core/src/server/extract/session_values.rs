//! Values that belong to one session, by type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The values of one session, one of each type. Each is made by the first call that needs it.
#[derive(Default)]
pub(in crate::server) struct SessionValues(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl SessionValues {
    /// Returns the value of this type. The first call makes it.
    pub fn get_or_make<T: Send + Sync + 'static>(&self, make: &dyn Fn() -> T) -> Arc<T> {
        // A value is complete once it is in the map, so a panic of `make` leaves nothing half done.
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = values.get(&TypeId::of::<T>()).cloned();
        if let Some(Ok(own)) = own.map(Arc::downcast) {
            return own;
        }
        let made = Arc::new(make());
        values.insert(TypeId::of::<T>(), made.clone());
        made
    }
}

impl fmt::Debug for SessionValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionValues")
    }
}
