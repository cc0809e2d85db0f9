//! What a handler knows of its call.

use std::sync::Arc;

use super::rounds::Rounds;
use crate::connection::{Call, Handle, Progress, ReplyTo};
use crate::correlate::CancelToken;
use crate::mcp::{LogLevel, Revision};

/// A call under way: progress, log messages, cancellation. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Context {
    handle: Handle,
    reply: ReplyTo,
    cancel: CancelToken,
    /// How the client is asked where it cannot be sent requests.
    rounds: Option<Arc<Rounds>>,
}

impl Context {
    pub(super) fn new(handle: Handle, call: &Call, rounds: Option<Arc<Rounds>>) -> Self {
        Self {
            handle,
            reply: call.reply.clone(),
            cancel: call.cancel.clone(),
            rounds,
        }
    }

    /// Reports progress, if the client asked for it. `progress` must increase from call to call
    /// (R-PRG-02). Delivered in order and before the answer.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if self.reply.wants_progress() {
            self.handle.replies().progress(
                &self.reply,
                Progress {
                    progress,
                    total,
                    message,
                },
            );
        }
    }

    /// Sends a log message, if the client wants messages of that level. `data` is JSON.
    pub fn log(&self, level: LogLevel, logger: Option<&str>, data: &serde_json::Value) {
        self.handle
            .replies()
            .log(&self.reply, level, logger, &data.to_string());
    }

    /// Whether the client gave up, or went away. What the handler gives back then is discarded.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// The call's token: to wait for its end, or to make children of.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.cancel
    }

    /// Ends after `duration`, on the engine's timers; needs no runtime.
    pub fn sleep(&self, duration: std::time::Duration) -> crate::connection::Sleep {
        self.handle.sleep(duration)
    }

    /// The revision that the call is served in.
    pub fn revision(&self) -> Revision {
        self.reply.revision()
    }

    /// The connection that the call came on.
    pub fn connection(&self) -> &Handle {
        &self.handle
    }

    pub(super) fn rounds(&self) -> Option<&Arc<Rounds>> {
        self.rounds.as_ref()
    }

    pub(super) fn reply_to(&self) -> &ReplyTo {
        &self.reply
    }
}
