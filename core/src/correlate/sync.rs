//! The one switch between the real primitives and loom's.

#[cfg(loom)]
pub(super) use loom::{
    cell::UnsafeCell,
    sync::{Mutex, MutexGuard, atomic::AtomicU64},
};
#[cfg(not(loom))]
pub(super) use std::sync::{Mutex, MutexGuard, atomic::AtomicU64};

/// `std`'s cell behind loom's interface.
#[cfg(not(loom))]
#[derive(Debug)]
pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(super) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(super) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
