//! A time limit for the handler of a request: when it has passed, the request is answered without the
//! handler.

use std::fmt;
use std::time::Duration;

use super::core::Core;
use super::handle::Handle;
use super::host::{Answer, CallKey, Disposition, Host};
use super::queue::Submission;
use super::stream::Exchange;
use crate::mcp::Revision;
use crate::message::{OwnedId, RequestId};

/// What is needed to answer a request without its handler.
pub(crate) struct Overdue {
    pub key: CallKey,
    id: OwnedId,
    revision: Revision,
    answer: Box<Late>,
}

type Late = dyn FnOnce(Answer<'_>) -> Disposition + Send + Sync;

impl fmt::Debug for Overdue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overdue")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Handle {
    /// Sets a time limit for a request of the peer. If the request is not answered within `limit` from
    /// now, its handler is cancelled and `answer` answers it on the driver's thread.
    pub fn limit(
        &self,
        (key, id, revision): (CallKey, RequestId<'_>, Revision),
        limit: Duration,
        answer: impl FnOnce(Answer<'_>) -> Disposition + Send + Sync + 'static,
    ) {
        let overdue = Overdue {
            key,
            id: id.to_owned(),
            revision,
            answer: Box::new(answer),
        };
        self.submit(Submission::Limit { limit, overdue });
    }
}

impl Core {
    /// Answers a request of the peer whose time limit has passed.
    pub(super) fn overdue(&mut self, exchange: &mut Exchange, key: CallKey, host: &mut dyn Host) {
        let Some((id, entry)) = self.end_incoming(exchange, key.incoming) else {
            return;
        };
        if let Some(held) = &entry.held {
            exchange.append(held);
        }
        let late = entry.limit.map(|(_, overdue)| overdue);
        if let Some(underway) = entry.action {
            let answered = |answer: Answer<'_>| {
                if let Some(overdue) = late {
                    let _ = (overdue.answer)(answer);
                }
            };
            self.overdue_action(exchange, key.stream, (id, underway), answered, host);
        } else if let Some(overdue) = late {
            let answer = exchange.answer(&self.config, overdue.id.as_ref(), overdue.revision);
            // The request is no longer in flight, so it cannot be deferred.
            let _ = (overdue.answer)(answer);
        }
        const WHY: Option<&str> = Some("it took too long");
        entry.cancel.cancel(WHY);
        host.cancelled(key, WHY);
    }
}
