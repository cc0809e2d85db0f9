//! What is known of a server behind a front while it is used.

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use crate::error::{ConnectionError, RequestError};
use crate::mcp::Revision;
use crate::policy::Redaction;
use crate::sync::lock;

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
    /// How the server describes itself: an `Implementation`, raw JSON; empty before the first connection.
    pub implementation: String,
    /// Connections since the start.
    pub opened: u64,
    /// Connections that were lost while a client used them: for a command, how often it was started again.
    pub lost: u64,
    /// Attempts to connect that have failed.
    pub failed: u64,
    /// Why the last attempt failed, or the last connection was lost, with credentials masked; and when.
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
        implementation.clone_into(&mut state.implementation);
    }

    pub(super) fn failed(&self, error: &RequestError) {
        let mut state = lock(&self.0);
        state.failed += 1;
        state.goes_down(&error.to_string());
    }

    pub(super) fn lost(&self, error: &ConnectionError) {
        let mut state = lock(&self.0);
        state.lost += 1;
        state.goes_down(&error.to_string());
    }
}

impl UpstreamState {
    fn goes_down(&mut self, why: &str) {
        self.is_up = Some(false);
        let why = Redaction::new().text(why).into_owned();
        self.last_error = Some((why, SystemTime::now()));
    }
}
