//! How a server is reached by HTTP and on sockets, as JavaScript says it. What is not said is as
//! the engine has it.

use mcpbolt::io::http::HttpOptions;
use mcpbolt::io::{ServeOptions, TlsOptions};
use mcpbolt::limits::Limits;
use napi_derive::napi;

use crate::error::Result;
use crate::link::duration;

/// An endpoint and its bounds.
#[napi(object)]
pub struct EndpointOptions {
    /// Names, without port, that requests may be addressed to.
    pub hosts: Option<Vec<String>>,
    /// Further origins whose pages may ask.
    pub origins: Option<Vec<String>>,
    /// Whether browsers are told that pages of the welcome origins may read the answers.
    pub cors: Option<bool>,
    /// The bounds of each connection.
    pub limits: Option<ConnectionLimits>,
    /// How long the headers of a request may take, in ms.
    pub header_ms: Option<f64>,
    /// Silence on a stream after which a comment keeps it open, in ms.
    pub comment_ms: Option<f64>,
    /// Whether clients of 2024-11-05 are served.
    pub sse: Option<bool>,
    /// Sessions at a time.
    pub max_sessions: Option<u32>,
    /// How long a session is kept that nobody uses, in ms.
    pub session_ttl_ms: Option<f64>,
    /// How long an action goes on whose stream broke off.
    pub action_ttl_ms: Option<f64>,
    /// Bytes that a session keeps for clients that come back.
    pub replay_bytes: Option<f64>,
    /// Whether clients may go on as WebSockets.
    pub websocket: Option<bool>,
    /// Silence on a WebSocket after which the client is pinged, in ms.
    pub heartbeat_ms: Option<f64>,
    /// How long what is in flight may take when the server ends, in ms.
    pub grace_ms: Option<f64>,
    /// Who the server is behind TLS.
    pub tls: Option<TlsFiles>,
    /// Threads that drive sockets.
    pub threads: Option<u32>,
    /// Connections at a time.
    pub max_connections: Option<u32>,
}

/// Files in PEM.
#[napi(object)]
pub struct TlsFiles {
    /// The certificate and those that vouch for it.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// Those of which one has to vouch for each client's.
    pub clients: Option<String>,
}

/// The bounds of a connection that JavaScript may set.
#[napi(object)]
pub struct ConnectionLimits {
    /// Bytes of a message.
    pub message_bytes: Option<f64>,
    /// Depth of its nesting.
    pub depth: Option<u32>,
    /// Requests in flight.
    pub in_flight: Option<u32>,
    /// Silence after which the peer is asked for a sign of life, in ms.
    pub keepalive_ms: Option<f64>,
    /// Silence after which the connection ends, in ms.
    pub idle_ms: Option<f64>,
}

impl ConnectionLimits {
    fn apply(&self, limits: &mut Limits) -> Result<()> {
        let Self {
            message_bytes,
            depth,
            in_flight,
            keepalive_ms,
            idle_ms,
        } = self;
        set(
            &mut limits.max_message_bytes,
            message_bytes.map(|n| n as usize),
        );
        set(&mut limits.max_depth, depth.map(|n| n as usize));
        set(&mut limits.max_incoming, in_flight.map(|n| n as usize));
        let (keepalive, idle) = (keepalive_ms.map(duration), idle_ms.map(duration));
        set(
            &mut limits.keepalive_interval,
            keepalive.transpose()?.map(Some),
        );
        set(&mut limits.idle_timeout, idle.transpose()?.map(Some));
        Ok(())
    }
}

impl EndpointOptions {
    /// Those of an address.
    pub fn serve(self) -> Result<ServeOptions> {
        let own = ServeOptions::default();
        let tls = |tls: &TlsFiles| TlsOptions {
            certificate: tls.certificate.clone().into(),
            key: tls.key.clone().into(),
            clients: tls.clients.clone().map(Into::into),
        };
        let connections = self.max_connections.map(|n| n as usize);
        Ok(ServeOptions {
            tls: self.tls.as_ref().map(tls),
            threads: self.threads.map(|n| n as usize),
            max_connections: connections.unwrap_or(own.max_connections),
            http: self.http()?,
            ..own
        })
    }

    /// Those of HTTP.
    pub fn http(self) -> Result<HttpOptions> {
        let mut options = HttpOptions::default();
        set(&mut options.hosts, self.hosts);
        set(&mut options.origins, self.origins);
        set(&mut options.cors, self.cors);
        if let Some(limits) = &self.limits {
            limits.apply(&mut options.limits)?;
        }
        set(&mut options.sse, self.sse);
        set(&mut options.websocket, self.websocket);
        let heartbeat = self.heartbeat_ms.map(duration).transpose()?;
        set(&mut options.heartbeat, heartbeat.map(Some));
        set(
            &mut options.max_sessions,
            self.max_sessions.map(|n| n as usize),
        );
        set(
            &mut options.replay_bytes,
            self.replay_bytes.map(|n| n as usize),
        );
        for (place, ms) in [
            (&mut options.header_timeout, self.header_ms),
            (&mut options.comment_interval, self.comment_ms),
            (&mut options.session_ttl, self.session_ttl_ms),
            (&mut options.action_ttl, self.action_ttl_ms),
            (&mut options.grace, self.grace_ms),
        ] {
            set(place, ms.map(duration).transpose()?);
        }
        Ok(options)
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
