//! Names of a connection's streams and of the peer's requests in flight.

use crate::correlate::IncomingKey;

/// One stream of a connection. A pipe, socket or WebSocket has one stream; HTTP has one per exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl StreamId {
    /// The first stream that a connection opens; on a pipe, the only one.
    pub const FIRST: Self = Self {
        index: 0,
        generation: 0,
    };
}

/// Key of one request of the peer in flight: its stream, and its slot and generation there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallKey {
    pub(crate) stream: StreamId,
    pub(crate) incoming: IncomingKey,
}

impl CallKey {
    /// The key of a call that is run for a task and is in flight nowhere; `number` tells such calls apart.
    #[cfg(feature = "server")]
    pub(crate) fn detached(stream: StreamId, number: u64) -> Self {
        Self {
            stream,
            incoming: IncomingKey::detached(number),
        }
    }

    /// Whether it is the key of such a call.
    #[cfg(feature = "server")]
    pub(crate) fn is_detached(self) -> bool {
        self.incoming.is_detached()
    }

    /// The stream on which the request arrived.
    pub fn stream(self) -> StreamId {
        self.stream
    }
}

/// The place of a request in a batch of requests on the same stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// The request that brought the batch.
    pub outer: IncomingKey,
    pub index: usize,
}
