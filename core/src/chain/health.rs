//! What is known of a server behind a front while it is used.

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use crate::error::{ConnectionError, RequestError};
use crate::mcp::Revision;
use crate::policy::Redaction;
use crate::sync::lock;

/// The most that is kept of an error, and of how a server describes itself.
const MAX_BYTES: usize = 1024;

/// What is known of a server behind a front ([`External::health`](super::External::health)). Clones show the same server.
#[derive(Clone, Debug, Default)]
pub struct UpstreamHealth(Arc<Mutex<UpstreamState>>);

/// What is known of a server at one moment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct UpstreamState {
    /// Whether the newest connection was opened, and is not lost; `None` before the first attempt.
    pub is_up: Option<bool>,
    /// The revision of the newest connection.
    pub revision: Option<Revision>,
    /// How the server describes itself: an `Implementation`, raw JSON; empty before the first connection, and of more than
    /// 1 KiB.
    pub implementation: String,
    /// Connections since the start.
    pub opened: u64,
    /// Connections that were lost while a client used them: for a command, how often it was started again.
    pub lost: u64,
    /// Attempts to connect that have failed.
    pub failed: u64,
    /// Why the last attempt failed, or the last connection was lost, with credentials masked and without control characters, at most
    /// 1 KiB; and when.
    pub last_error: Option<(String, SystemTime)>,
}

impl UpstreamHealth {
    /// What is known now.
    pub fn state(&self) -> UpstreamState {
        lock(&self.0).clone()
    }

    pub(super) fn opened(&self, revision: Revision, implementation: &str) {
        let mut state = lock(&self.0);
        state.is_up = Some(true);
        state.opened += 1;
        state.revision = Some(revision);
        state.implementation.clear();
        if implementation.len() <= MAX_BYTES {
            state.implementation.push_str(implementation);
        }
    }

    pub(super) fn failed(&self, error: &RequestError) {
        let why = kept(&error.to_string());
        let mut state = lock(&self.0);
        state.failed += 1;
        state.goes_down(why);
    }

    pub(super) fn lost(&self, error: &ConnectionError) {
        let why = kept(&error.to_string());
        let mut state = lock(&self.0);
        state.lost += 1;
        state.goes_down(why);
    }
}

/// What is kept of an error: without credentials and control characters, and not more than [`MAX_BYTES`].
fn kept(why: &str) -> String {
    let why = Redaction::new().text(why);
    let mut why = why.replace(char::is_control, " ");
    why.truncate(why.floor_char_boundary(MAX_BYTES));
    why
}

impl UpstreamState {
    fn goes_down(&mut self, why: String) {
        self.is_up = Some(false);
        self.last_error = Some((why, SystemTime::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_and_no_description_is_kept_beyond_its_limit() {
        let health = UpstreamHealth::default();
        // A letter of two bytes stands across the limit.
        let long = format!("x{}", "é".repeat(MAX_BYTES));
        health.failed(&RequestError::BadResult(long.as_str().into()));
        health.opened(Revision::NEWEST, &format!("{{\"name\":{long:?}}}"));
        let state = health.state();
        let (why, _) = state.last_error.unwrap();
        assert!(
            (MAX_BYTES - 1..=MAX_BYTES).contains(&why.len()),
            "{}",
            why.len()
        );
        assert_eq!(state.implementation, "");
        health.opened(Revision::NEWEST, r#"{"name":"short"}"#);
        assert_eq!(health.state().implementation, r#"{"name":"short"}"#);
    }
}
