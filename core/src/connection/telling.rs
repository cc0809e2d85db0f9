//! Tells the observer of what arrives: requests of the peer, and sessions.

use std::sync::Arc;

use super::answer::Asked;
use super::call::IncomingRequest;
use super::channel::Channel;
use super::core::Core;
use super::observed::{Observed, Undecided};
use super::observer::{ObservedRequest, ObservedSession, RequestText};
use super::routing;
use super::stream::Exchange;
use crate::error::ConnectionError;
use crate::mcp::{ErrorKind, Revision};
use crate::message::MessageRef;

impl Core {
    /// How the messages of a stream travel, for observers.
    pub fn channel_of<'a>(&'a self, exchange: &'a Exchange) -> Option<&'a Arc<Channel>> {
        let own = exchange.channel.as_ref();
        own.or_else(|| self.handle.shared.channel.get())
    }

    /// Tells the observer of a session that begins.
    pub fn observe_session(&mut self, exchange: &Exchange, revision: Revision) {
        if let Some(observer) = &self.config.observer {
            self.session = observer.session(&ObservedSession {
                side: self.config.side,
                revision,
                channel: self.channel_of(exchange),
            });
        }
    }

    /// Tells the observer of the session that it has ended.
    pub fn end_session(&mut self, reason: &ConnectionError) {
        if let Some(session) = self.session.take() {
            session.end(reason);
        }
    }
}

/// Tells the observer of a request that has arrived.
#[inline]
pub(super) fn observe(
    core: &Core,
    exchange: &Exchange,
    request: &IncomingRequest<'_>,
) -> Option<Observed> {
    let observer = core.config.observer.as_deref()?;
    let bytes = request.message.bytes().len();
    let request = ObservedRequest {
        text: RequestText::Received(request.message, request.method),
        side: core.config.side,
        revision: request.revision,
        arrived: Some(core.clock),
        channel: core.channel_of(exchange),
    };
    let observer = observer.request(&request)?;
    Some(Observed::new(observer, request.arrived, bytes))
}

/// Answers a request that cannot be served with an error: its kind, a message, and data as JSON.
#[cold]
pub(super) fn unserved(
    core: &Core,
    exchange: &mut Exchange,
    message: &MessageRef<'_>,
    asked: Asked<'_>,
    (kind, why, data): (ErrorKind, &str, Option<&str>),
) {
    let request = IncomingRequest {
        message: *message,
        method: routing::method_of(message),
        revision: asked.revision,
    };
    let mut undecided = Undecided::new(observe(core, exchange, &request));
    let asked = Asked {
        observed: undecided.get(),
        ..asked
    };
    exchange.answer(&core.config, asked).error(kind, why, data);
}
