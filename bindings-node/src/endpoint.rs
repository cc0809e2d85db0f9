//! Options of a server on HTTP and sockets, from JavaScript. Options that are not set have the engine's
//! defaults.

use mcpbolt::io::http::{HttpOptions, Network};
use mcpbolt::io::{ServeOptions, TlsOptions};
use mcpbolt::limits::Limits;
use napi_derive::napi;

use crate::error::{Result, error};
use crate::link::duration;

/// Options of an endpoint.
#[napi(object)]
pub struct EndpointOptions {
    /// Host names, without port, that requests may be addressed to.
    pub hosts: Option<Vec<String>>,
    /// Origins whose pages may send requests.
    pub origins: Option<Vec<String>>,
    /// Whether clients without credentials are served beyond this machine.
    pub anonymous: Option<bool>,
    /// Whether browsers let pages of these origins read the answers (CORS).
    pub cors: Option<bool>,
    /// The limits of each connection.
    pub limits: Option<ConnectionLimits>,
    /// How long a client may take to send the headers of a request, in ms.
    pub header_ms: Option<f64>,
    /// Silence on a stream after which a comment keeps it open, in ms.
    pub comment_ms: Option<f64>,
    /// Whether clients of 2024-11-05 are served.
    pub sse: Option<bool>,
    /// Addresses and networks of proxies whose forwarding headers are trusted.
    pub trusted_proxies: Option<Vec<String>>,
    /// Maximum number of sessions.
    pub max_sessions: Option<u32>,
    /// Maximum number of sessions of one client.
    pub max_sessions_per_peer: Option<u32>,
    /// How long an unused session is kept, in ms.
    pub session_ttl_ms: Option<f64>,
    /// How long an action continues after its stream broke off, in ms.
    pub action_ttl_ms: Option<f64>,
    /// Bytes of messages that a session keeps for clients that resume their stream.
    pub replay_bytes: Option<f64>,
    /// Whether clients may upgrade to WebSocket.
    pub websocket: Option<bool>,
    /// Silence on a WebSocket after which the client is pinged, in ms.
    pub heartbeat_ms: Option<f64>,
    /// How long calls in flight may take when the server shuts down, in ms.
    pub grace_ms: Option<f64>,
    /// The files for TLS.
    pub tls: Option<TlsFiles>,
    /// Number of threads that drive sockets.
    pub threads: Option<u32>,
    /// Maximum number of connections.
    pub max_connections: Option<u32>,
    /// Maximum number of connections from one address.
    pub max_connections_per_peer: Option<u32>,
}

/// Paths of PEM files.
#[napi(object)]
pub struct TlsFiles {
    /// The certificate with its chain.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// CA certificates, one of which must have signed each client's certificate.
    pub clients: Option<String>,
}

/// The limits of a connection that JavaScript may set.
#[napi(object)]
pub struct ConnectionLimits {
    /// Maximum size of a message in bytes.
    pub message_bytes: Option<f64>,
    /// Maximum nesting depth of a message.
    pub depth: Option<u32>,
    /// Maximum number of requests in flight.
    pub in_flight: Option<u32>,
    /// Silence after which the peer is pinged, in ms.
    pub keepalive_ms: Option<f64>,
    /// Time without traffic or requests in flight after which the connection is closed, in ms.
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
    /// The options of an address.
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
            max_connections_per_peer: self.max_connections_per_peer.map(|n| n as usize),
            http: self.http()?,
            ..own
        })
    }

    /// The options of HTTP.
    pub fn http(self) -> Result<HttpOptions> {
        let mut options = HttpOptions::default();
        set(&mut options.hosts, self.hosts);
        set(&mut options.origins, self.origins);
        set(&mut options.anonymous, self.anonymous);
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
        options.max_sessions_per_peer = self.max_sessions_per_peer.map(|n| n as usize);
        let proxies = self.trusted_proxies.unwrap_or_default();
        let proxies = proxies.iter().map(|proxy| proxy.parse::<Network>());
        options.trusted_proxies = proxies
            .collect::<std::result::Result<_, _>>()
            .map_err(|why| error("ERR_MCP_MISUSE", format!("trustedProxies: {why}")))?;
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
        let wrong = |why| error("ERR_MCP_MISUSE", why);
        options.check().map_err(wrong)?;
        Ok(options)
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
