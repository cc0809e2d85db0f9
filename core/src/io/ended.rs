//! The wait for the ends of client connections.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::sync::lock;

/// The number of client connections being driven, and the signal that one has ended.
static DRIVEN: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// Waits until every connection that clients of this program have opened over sockets or to child processes has
/// ended, for at most `timeout`: for programs that exit right after. A closed connection still sends its last
/// messages, for example the end of its session (R-SES-06), and a child process is given time to end. Open connections are not closed, so close
/// or drop clients first; otherwise the call times out. Returns whether all connections have ended.
///
/// ```
/// # use std::time::Duration;
/// assert!(mcpbolt::io::wait_for_clients(Duration::from_secs(5)));
/// ```
pub fn wait_for_clients(timeout: Duration) -> bool {
    let (driven, ended) = &DRIVEN;
    let waited = ended.wait_timeout_while(lock(driven), timeout, |count| *count > 0);
    *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
}

/// Counts a connection while it is driven.
pub(super) struct Driven(());

impl Driven {
    pub fn begin() -> Self {
        *lock(&DRIVEN.0) += 1;
        Self(())
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        *lock(&DRIVEN.0) -= 1;
        DRIVEN.1.notify_all();
    }
}
