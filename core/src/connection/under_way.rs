//! Which request in flight a message of the peer is about.

use super::core::Core;
#[cfg(all(unix, feature = "http", feature = "sealing"))]
use super::{routing, streams::Streams};
use crate::correlate::RequestKey;
use crate::json::number;
use crate::message::{Field, MessageRef};
#[cfg(all(unix, feature = "http", feature = "sealing"))]
use crate::{mcp::Method, message::Kind};

impl Core {
    /// The request of this side that the id of an answer names.
    pub fn own_key(&self, answer: &MessageRef<'_>) -> Option<RequestKey> {
        let token = answer.raw_bytes(Field::Id)?;
        RequestKey::from_token(token).or_else(|| {
            let text = answer
                .string(Field::Id)
                .filter(|_| self.config.lenient_ids)?;
            RequestKey::from_wire(number::as_u64(&text.decode().ok()?)?)
        })
    }

    /// Whether a request of this side still waits for its answer.
    pub fn awaits(&self, key: RequestKey) -> bool {
        self.opening.is_step(key) || self.liveness.is_ping(key) || self.pending.contains(key)
    }

    /// Whether a message is about a request in flight: the answer to one of this side, its progress, or the cancellation of one of the
    /// peer.
    #[cfg(all(unix, feature = "http", feature = "sealing"))]
    pub fn concerns(&self, streams: &Streams, message: &MessageRef<'_>) -> bool {
        match message.kind() {
            Kind::Response | Kind::Error => {
                self.own_key(message).is_some_and(|key| self.awaits(key))
            }
            Kind::Notification => match routing::method_of(message) {
                Some(Method::Progress) => {
                    let token = message.raw(Field::Progress).and_then(number::as_u64);
                    let key = token.and_then(RequestKey::from_wire);
                    key.is_some_and(|key| self.pending.contains(key))
                }
                Some(Method::Cancelled) => message.request_id().is_some_and(|id| {
                    let mut streams = streams.iter();
                    streams.any(|(_, it)| it.exchange.incoming.find(&id).is_some())
                }),
                _ => false,
            },
            _ => false,
        }
    }
}
