//! Values that belong to one session, by type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::panics::contain;

type Value = Arc<dyn Any + Send + Sync>;

/// The values of one session, one of each type. Each is made by the first call that needs it.
#[derive(Default)]
pub(in crate::server) struct SessionValues(Mutex<HashMap<TypeId, Arc<OnceLock<Value>>>>);

impl SessionValues {
    /// Returns the value of this type. The first call makes it; others that need it meanwhile wait.
    pub fn get_or_make<T: Send + Sync + 'static>(&self, make: &dyn Fn() -> T) -> Arc<T> {
        let slot = {
            let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            values.entry(TypeId::of::<T>()).or_default().clone()
        };
        let own = slot.get_or_init(|| Arc::new(make())).clone();
        // The types are equal, since the slot is that of `T`.
        own.downcast().unwrap_or_else(|_| Arc::new(make()))
    }
}

/// The values end with their session, on the thread that drives it.
impl Drop for SessionValues {
    fn drop(&mut self) {
        let values = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, value) in values.drain() {
            contain("the end of a session's value", || drop(value));
        }
    }
}

impl fmt::Debug for SessionValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionValues")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct PanicsWhenDropped;

    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("the end");
        }
    }

    #[test]
    fn a_value_may_need_another_one() {
        let values = SessionValues::default();
        let make = || format!("{} is the number", values.get_or_make::<u8>(&|| 7));
        assert_eq!(*values.get_or_make::<String>(&make), "7 is the number");
        let again = || unreachable!("it is made once");
        assert_eq!(*values.get_or_make::<u8>(&again), 7);
    }

    #[test]
    fn the_end_of_a_session_survives_a_value_that_panics() {
        let values = SessionValues::default();
        values.get_or_make(&|| PanicsWhenDropped);
        drop(values);
    }
}
