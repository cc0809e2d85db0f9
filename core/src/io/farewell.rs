//! What clients still say when their program ends.

use std::future::Future;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::runtime::runtime;

/// The connections of clients that are driven, and the word that there is one less.
static DRIVEN: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

fn driven() -> MutexGuard<'static, usize> {
    DRIVEN.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until every connection that clients of this program have opened over sockets has ended,
/// for at most `patience`: for programs that end right after. A connection that was closed still
/// says what it has to, that a session is over for example (R-SES-06); one that is open is waited
/// for in vain, so what is not needed is closed or dropped first. Whether all have ended.
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

/// Counts a connection for as long as it is driven.
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
/// When there is no thread to do so.
pub(super) fn drive(connection: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
    let driven = Driven::new();
    runtime()?.spawn(async move {
        connection.await;
        drop(driven);
    });
    Ok(())
}
