//! How messages travel, as an observer is told.

use crate::mcp::TraceContext;

/// A transport by its name in OpenTelemetry's `network.transport`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NetworkTransport {
    /// Standard input and output, or those of a child process.
    #[default]
    Pipe,
    /// TCP, with whatever is on top of it.
    Tcp,
    /// A Unix socket.
    Unix,
}

impl NetworkTransport {
    /// The value of `network.transport`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Tcp => "tcp",
            Self::Unix => "unix",
        }
    }
}

/// How the messages of a connection, or of one of its streams, travel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Channel {
    /// The transport.
    pub transport: NetworkTransport,
    /// The protocol on top of it, `http` or `websocket`, with its version if that is known.
    pub protocol: Option<(&'static str, Option<&'static str>)>,
    /// The name or address of the peer, if it has one, and its port, if that is known.
    pub peer: Option<(Box<str>, Option<u16>)>,
    /// The id of the HTTP session.
    pub session: Option<Box<str>>,
    /// The trace context in the head of the HTTP request.
    pub trace: Option<TraceContext>,
}

impl Channel {
    /// Messages that travel over a transport, on their own.
    pub fn new(transport: NetworkTransport) -> Self {
        Self {
            transport,
            ..Self::default()
        }
    }

    /// Messages in the requests and answers of HTTP of that version.
    pub fn http(version: Option<&'static str>) -> Self {
        Self {
            protocol: Some(("http", version)),
            ..Self::new(NetworkTransport::Tcp)
        }
    }

    /// Messages on a WebSocket.
    pub fn websocket() -> Self {
        Self {
            protocol: Some(("websocket", None)),
            ..Self::new(NetworkTransport::Tcp)
        }
    }

    /// Sets the name or address of the peer, and its port.
    #[must_use]
    pub fn peer(mut self, address: impl Into<Box<str>>, port: Option<u16>) -> Self {
        self.peer = Some((address.into(), port));
        self
    }
}
