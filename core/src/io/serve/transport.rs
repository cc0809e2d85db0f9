//! A server on messages that the program carries itself: a `Stream` of those that arrive, and a `Sink`
//! for those that leave.

use std::fmt;
use std::future::IntoFuture;
use std::io;

use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;

use super::{OnStream, Serve, Stored};
use crate::connection::Framing;
use crate::io::prefixed::Prefixed;
use crate::server::Server;

/// A carrier of messages.
pub struct OnTransport<T>(T);

impl<T> fmt::Debug for OnTransport<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnTransport").finish_non_exhaustive()
    }
}

impl Server {
    /// Serves one client on a carrier of the program's own, such as a message queue: a `Stream` whose items
    /// are the client's messages, and a `Sink` for the server's. Each item is one JSON-RPC message in
    /// UTF-8. The stream's end, or its first error, is the end of the client. Await it in a tokio runtime
    /// with time enabled.
    pub fn serve_transport<T, E>(&self, transport: T) -> Serve<OnTransport<T>>
    where
        T: Stream<Item = Result<Bytes, E>> + Sink<Bytes> + Unpin + Send + 'static,
    {
        Serve::new(self, OnTransport(transport))
    }
}

impl<T, E> IntoFuture for Serve<OnTransport<T>>
where
    T: Stream<Item = Result<Bytes, E>> + Sink<Bytes> + Unpin + Send + 'static,
{
    type Output = io::Result<()>;
    type IntoFuture = Stored<io::Result<()>>;

    fn into_future(self) -> Self::IntoFuture {
        let stream = Prefixed::new(self.carrier.0);
        let on_stream = Serve {
            server: self.server,
            carrier: OnStream::new(stream, Framing::Length),
            shutdown: self.shutdown,
        };
        on_stream.into_future()
    }
}
