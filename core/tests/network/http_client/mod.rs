//! Clients on HTTP: against this crate's own server, and against servers that follow a script.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

mod beginning;
mod faults;
mod headers;
mod hostile;
mod http2;
mod lent;
mod logins;
mod older;
mod relay;
mod scripted;
mod served;
mod serving;
mod sessions;
mod streams;
mod waiting;

use std::time::{Duration, Instant};

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(20);

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
