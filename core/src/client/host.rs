//! The host of a client without roots, sampling or elicitation.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::connection::{Answer, Batch, CallKey, Disposition, Host, Incoming};
use crate::mcp::ErrorKind;
use crate::message::MessageRef;

/// Called with each notification of the server that the engine does not consume: its method and
/// its params, raw JSON. On the driver's thread; must not block.
type OnNotification = Box<dyn FnMut(&str, Option<&str>) + Send>;

/// The [`Host`] of a client: answers the server's requests with an error and hands its
/// notifications on.
#[derive(Default)]
pub struct ClientHost {
    on_notification: Option<OnNotification>,
}

impl ClientHost {
    /// One that ignores notifications.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that hands notifications on.
    pub fn on_notification(report: impl FnMut(&str, Option<&str>) + Send + 'static) -> Self {
        Self {
            on_notification: Some(Box::new(report)),
        }
    }
}

impl std::fmt::Debug for ClientHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientHost").finish_non_exhaustive()
    }
}

impl Host for ClientHost {
    fn request(&mut self, _request: Incoming<'_>, answer: Answer<'_>) -> Disposition {
        answer.error(
            ErrorKind::MethodNotFound,
            "this client does not offer that",
            None,
        )
    }

    fn dispatch(&mut self, _batch: Batch) {}

    fn cancelled(&mut self, _key: CallKey, _reason: Option<&str>) {}

    fn notification(&mut self, message: MessageRef<'_>) {
        if let (Some(report), Some(method)) = (&mut self.on_notification, message.method()) {
            // A report that panics takes nothing along.
            let _ = catch_unwind(AssertUnwindSafe(|| report(&method, message.params())));
        }
    }
}
