//! A server on the network: many connections, made and driven by threads of the engine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpbolt::connection::{Config, Handle};
use mcpbolt::io::http::{HttpOptions, NoNetwork};
use mcpbolt::io::{ServeOptions, TlsOptions};
use mcpbolt::policy::Policy;
use mcpbolt::server::{AnyExecutor, Hosting, ServerHost};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::bridge::Bridge;
use crate::client_setup::seconds;
use crate::hub::Hub;
use crate::setup::wrong;

/// Makes the host for each connection of a server on the network.
pub struct Hosted(pub Arc<Hub>);

impl Hosting for Hosted {
    fn config(&self) -> &Arc<Config> {
        &self.0.catalog.config
    }

    fn host(&self, handle: Handle, _timers: Option<&Handle>) -> ServerHost<AnyExecutor> {
        let live = self.0.catalog.live.clone();
        let bridge = Bridge::new(&self.0, handle.clone());
        ServerHost::live(live, handle, Box::new(bridge))
    }

    fn policy(&self) -> Option<Arc<Policy>> {
        self.0.catalog.live.offer().registry.policy().cloned()
    }

    fn wants_heads(&self) -> bool {
        self.0.catalog.kernel.is_some()
    }
}

/// The Python `ServeOptions`. Times are in seconds; `None` is the engine's default.
#[derive(FromPyObject)]
pub struct Options {
    hosts: Option<Vec<String>>,
    origins: Option<Vec<String>>,
    anonymous: Option<bool>,
    max_message_bytes: Option<usize>,
    header_timeout: Option<f64>,
    stall_timeout: Option<f64>,
    comment_interval: Option<f64>,
    sse: Option<bool>,
    trusted_proxies: Option<Vec<String>>,
    max_sessions: Option<usize>,
    max_sessions_per_peer: Option<usize>,
    session_ttl: Option<f64>,
    action_ttl: Option<f64>,
    replay_bytes: Option<usize>,
    cors: Option<bool>,
    websocket: Option<bool>,
    heartbeat: Option<f64>,
    /// The PEM files of the certificate and its key.
    tls: Option<(PathBuf, PathBuf)>,
    tls_clients: Option<PathBuf>,
    threads: Option<usize>,
    max_connections: Option<usize>,
    max_connections_per_peer: Option<usize>,
}

fn not_trusted(why: NoNetwork) -> PyErr {
    PyValueError::new_err(format!("trusted_proxies: {why}"))
}

impl Options {
    /// The options for any address.
    pub fn serve(self, grace: f64) -> PyResult<ServeOptions> {
        let own = ServeOptions::default();
        let tls = |(certificate, key): &(PathBuf, PathBuf)| TlsOptions {
            certificate: certificate.clone(),
            key: key.clone(),
            clients: self.tls_clients.clone(),
        };
        Ok(ServeOptions {
            tls: self.tls.as_ref().map(tls),
            threads: self.threads,
            max_connections: self.max_connections.unwrap_or(own.max_connections),
            max_connections_per_peer: self.max_connections_per_peer,
            http: self.http(own.http.path, grace)?,
            stdio: own.stdio,
        })
    }

    /// The options for HTTP.
    pub fn http(self, path: String, grace: f64) -> PyResult<HttpOptions> {
        let mut http = HttpOptions::default();
        let time = |given: Option<f64>, own| given.map_or(Ok(own), seconds);
        http.path = path;
        http.hosts = self.hosts.unwrap_or(http.hosts);
        http.origins = self.origins.unwrap_or(http.origins);
        http.anonymous = self.anonymous.unwrap_or(http.anonymous);
        let limits = &mut http.limits;
        limits.max_message_bytes = self.max_message_bytes.unwrap_or(limits.max_message_bytes);
        limits.stall_timeout = time(self.stall_timeout, limits.stall_timeout)?;
        http.header_timeout = time(self.header_timeout, http.header_timeout)?;
        http.comment_interval = time(self.comment_interval, http.comment_interval)?;
        http.sse = self.sse.unwrap_or(http.sse);
        let proxies = self.trusted_proxies.unwrap_or_default();
        let proxies = proxies.iter().map(|proxy| proxy.parse());
        http.trusted_proxies = proxies.collect::<Result<_, _>>().map_err(not_trusted)?;
        http.max_sessions = self.max_sessions.unwrap_or(http.max_sessions);
        http.max_sessions_per_peer = self.max_sessions_per_peer;
        http.session_ttl = time(self.session_ttl, http.session_ttl)?;
        http.action_ttl = time(self.action_ttl, http.action_ttl)?;
        http.replay_bytes = self.replay_bytes.unwrap_or(http.replay_bytes);
        http.cors = self.cors.unwrap_or(http.cors);
        http.websocket = self.websocket.unwrap_or(http.websocket);
        if let Some(given) = self.heartbeat {
            http.heartbeat = Some(seconds(given)?);
        }
        http.grace = Duration::try_from_secs_f64(grace).unwrap_or_default();
        http.check().map_err(wrong)?;
        Ok(http)
    }
}
