//! Lets clients send their last messages before the program ends.

use std::future::Future;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::runtime::runtime;

/// The number of client connections being driven, and the signal that one has ended.
static DRIVEN: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

fn driven() -> MutexGuard<'static, usize> {
    DRIVEN.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until every connection that clients of this program have opened over sockets has ended, for at
/// most `patience`: for programs that exit right after. A closed connection still sends its last
/// messages, for example the end of its session (R-SES-06). Open connections are not closed, so close
/// or drop clients first; otherwise the call times out. Returns whether all connections have ended.
///
/// ```
/// # use std::time::Duration;
/// assert!(mcpbolt::io::farewell(Duration::from_secs(5)));
/// ```
pub fn farewell(patience: Duration) -> bool {
    let waited = DRIVEN
        .1
        .wait_timeout_while(driven(), patience, |count| *count > 0);
    *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
}

/// Counts a connection while it is driven.
struct Driven;

impl Driven {
    fn new() -> Self {
        *driven() += 1;
        Self
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        *driven() -= 1;
        DRIVEN.1.notify_all();
    }
}

/// Drives a client's connection to its end.
///
/// # Errors
/// When the runtime's threads cannot be started.
pub(super) fn drive(connection: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
    let driven = Driven::new();
    runtime()?.spawn(async move {
        connection.await;
        drop(driven);
    });
    Ok(())
}
