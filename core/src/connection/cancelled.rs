//! Cancellations: of this side's requests, and of requests of the peer that arrived on another stream.

use super::actions::client as action_client;
use super::core::Core;
use super::host::{Host, Stray};
use super::keys::{CallKey, StreamId};
use super::stream::Exchange;
use super::streams::Streams;
use crate::correlate::RequestKey;
use crate::json::{number, string};
use crate::mcp::code::REQUEST_CANCELLED;
use crate::mcp::profile::Spelt;
use crate::message::{OwnedId, RequestId};

/// A cancellation whose request is not in flight on the stream where the cancellation arrived.
#[derive(Debug)]
pub(super) struct Elsewhere {
    pub id: OwnedId,
    pub reason: Option<Box<str>>,
}

impl Core {
    /// Tells the peer that a request of this side, sent on stream `on`, is cancelled.
    pub fn tell_cancelled(
        &self,
        streams: &mut Streams,
        on: StreamId,
        key: RequestKey,
        reason: Option<&str>,
    ) {
        if action_client::is_one(&self.config) {
            return;
        }
        let Some(exchange) = streams.exchange_or_first(on) else {
            return;
        };
        exchange.write(|out| {
            out.extend_from_slice(
                b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":",
            );
            number::append(out, key.get());
            if let Some(reason) = reason {
                out.extend_from_slice(b",\"reason\":");
                string::append(out, reason);
            }
            out.extend_from_slice(b"}}");
        });
    }
}

/// Searches all streams for the request that a cancellation names, and cancels it.
///
/// In a session with many streams, as over HTTP, a cancellation arrives on another stream than its
/// request. It applies if exactly one stream has that id in flight. If several have it, as with clients
/// that number every request alike, the cancellation is ambiguous and cancels none of them. A
/// cancellation of an id that is not in flight is ignored (R-CAN-04): if it were remembered, it would
/// cancel a later request with the same id, whose caller waits for an answer.
///
/// A request that was cancelled from another stream is answered with error -32800, although R-CAN-02
/// would have it unanswered: its stream is the response to an HTTP request, which must contain an answer
/// (R-HTP-04), and the two need not come from one caller.
pub(super) fn cancel_elsewhere(
    core: &mut Core,
    streams: &mut Streams,
    Elsewhere { id, reason }: Elsewhere,
    host: &mut dyn Host,
) {
    let id = id.as_ref();
    let in_flight = streams.iter().filter_map(|(stream, it)| {
        let incoming = it.exchange.incoming.find(&id)?;
        Some(CallKey { stream, incoming })
    });
    let mut in_flight = in_flight.fuse();
    match (in_flight.next(), in_flight.next()) {
        (Some(key), None) => {
            drop(in_flight);
            let Some(exchange) = streams.exchange(key.stream) else {
                return;
            };
            let (reason, timers) = (reason.as_deref(), &mut core.timers);
            core.incoming
                .cancel((exchange, key), timers, reason, reason, host);
            refuse_cancelled(exchange, id);
        }
        (None, _) => {}
        (Some(_), Some(_)) => core.stray(Stray::Cancel, b"", host),
    }
}

/// Writes the error for a cancelled request.
pub(super) fn refuse_cancelled(exchange: &mut Exchange, id: RequestId<'_>) {
    let error = Spelt {
        code: REQUEST_CANCELLED,
        message: "Request cancelled".into(),
        data: None,
    };
    exchange.refuse(Some(id), &error);
}
