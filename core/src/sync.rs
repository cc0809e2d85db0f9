//! Synchronization primitives: those of `std`, or of loom when its models run; and waiting without a
//! runtime.

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard, atomic};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic};

/// Locks a mutex. Poisoning is ignored: no code panics between two changes that belong together.
#[cfg(any(feature = "server", feature = "stdio"))]
pub(crate) fn lock<T: ?Sized>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Blocks this thread until a future completes, for programs without a runtime.
#[cfg(any(feature = "client", feature = "tokio"))]
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Poll, Wake, Waker};
    use std::thread::{self, Thread};

    /// The thread, and whether it was woken: the future itself may park the thread, too.
    struct Unpark(Thread, AtomicBool);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.1.store(true, Ordering::Release);
            self.0.unpark();
        }
    }
    let unpark = Arc::new(Unpark(thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(unpark.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future.into_future());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => {
                while !unpark.1.swap(false, Ordering::Acquire) {
                    thread::park();
                }
            }
        }
    }
}
