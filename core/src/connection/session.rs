//! Cancellation across the streams of one session.
//!
//! In a session with many streams, as over HTTP, a cancellation arrives on another stream than its
//! request. It applies if exactly one stream has that id in flight. If several have it, as with clients
//! that number every request alike, the cancellation is ambiguous and cancels none of them. A
//! cancellation of an id that is not in flight is ignored (R-CAN-04): if it were remembered, it would
//! cancel a later request with the same id, whose caller waits for an answer.
//!
//! A request that was cancelled from another stream is answered with error -32800, although R-CAN-02 would
//! have it unanswered: its stream is the response to an HTTP request, which must contain an answer
//! (R-HTP-04), and the two need not come from one caller.

use super::core::Core;
use super::host::{CallKey, Host, Stray};
use super::stream::Exchange;
use super::streams::Streams;
use crate::mcp::code::REQUEST_CANCELLED;
use crate::message::{OwnedId, RequestId};

/// A cancellation whose request is not in flight on the stream where the cancellation arrived.
#[derive(Debug)]
pub(super) struct Elsewhere {
    pub id: OwnedId,
    pub reason: Option<Box<str>>,
}

impl Core {
    /// Searches all streams for the request that a cancellation names, and cancels it.
    pub(super) fn cancel_elsewhere(
        &mut self,
        streams: &mut Streams,
        Elsewhere { id, reason }: Elsewhere,
        host: &mut dyn Host,
    ) {
        let id = id.as_ref();
        let in_flight = streams.iter().filter_map(|(id_of, stream)| {
            let incoming = stream.exchange.incoming.find(&id)?;
            Some(CallKey {
                stream: id_of,
                incoming,
            })
        });
        let mut in_flight = in_flight.fuse();
        match (in_flight.next(), in_flight.next()) {
            (Some(key), None) => {
                drop(in_flight);
                let Some(exchange) = streams.exchange(key.stream) else {
                    return;
                };
                let reason = reason.as_deref();
                self.cancel_incoming(exchange, key, reason, reason, host);
                // Whoever waits on that stream need not have cancelled: proxies mix up ids.
                self.refuse_cancelled(exchange, id);
            }
            (None, _) => {}
            (Some(_), Some(_)) => self.stray(Stray::Cancel, b"", host),
        }
    }

    /// Writes the error for a cancelled request, for peers that expect one (R-ERR-27).
    pub(super) fn answer_cancelled(&self, exchange: &mut Exchange, id: RequestId<'_>) {
        let profile = self.handle.revision().map(|_| self.config.profile);
        let own = profile.is_some_and(|profile| profile.overlay().answers_cancelled);
        if own || self.config.answer_cancelled {
            self.refuse_cancelled(exchange, id);
        }
    }

    fn refuse_cancelled(&self, exchange: &mut Exchange, id: RequestId<'_>) {
        self.refuse(exchange, Some(id), REQUEST_CANCELLED, "Request cancelled");
    }
}
