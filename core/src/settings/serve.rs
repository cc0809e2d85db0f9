//! Options of a server on the network.

use std::path::PathBuf;
#[cfg(feature = "redis")]
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::{SettingsError, set};
#[cfg(feature = "redis")]
use crate::io::http::SharedSessions;
use crate::io::http::{HttpOptions, Network};
use crate::io::{Address, ServeOptions, TlsOptions};
#[cfg(feature = "redis")]
use crate::io::{RedisOptions, RedisStore, read_store_keys};

/// Options of a server on the network; they are explained at [`ServeOptions`], [`HttpOptions`] and
/// [`Limits`](crate::limits::Limits).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the options they set")]
pub struct ServeSettings<T> {
    pub path: Option<String>,
    pub hosts: Option<Vec<String>>,
    pub origins: Option<Vec<String>>,
    pub anonymous: Option<bool>,
    pub cors: Option<bool>,
    pub sse: Option<bool>,
    pub websocket: Option<bool>,
    #[serde(default, deserialize_with = "networks")]
    pub trusted_proxies: Option<Vec<Network>>,
    pub max_sessions: Option<usize>,
    pub max_sessions_per_peer: Option<usize>,
    pub session_ttl: Option<T>,
    pub action_ttl: Option<T>,
    pub replay_bytes: Option<usize>,
    pub header_timeout: Option<T>,
    pub comment_interval: Option<T>,
    pub heartbeat: Option<T>,
    pub grace: Option<T>,
    pub max_message_bytes: Option<usize>,
    pub max_depth: Option<usize>,
    pub max_incoming: Option<usize>,
    pub keepalive_interval: Option<T>,
    pub idle_timeout: Option<T>,
    pub stall_timeout: Option<T>,
    pub tls: Option<TlsSettings>,
    #[cfg(feature = "redis")]
    pub store: Option<SharedStoreSettings>,
    pub threads: Option<usize>,
    pub max_connections: Option<usize>,
    pub max_connections_per_peer: Option<usize>,
}

/// Paths of PEM files: see [`TlsOptions`].
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the options they set")]
pub struct TlsSettings {
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub clients: Option<PathBuf>,
}

/// The store of a server's processes: see [`SharedSessions`].
#[cfg(feature = "redis")]
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedStoreSettings {
    /// The address of a Redis or Valkey: see [`RedisStore::open`].
    pub url: String,
    /// The path of a file of keys: see [`read_store_keys`].
    pub keys: PathBuf,
    /// See [`RedisOptions::prefix`].
    pub prefix: Option<String>,
    /// The path of a file of certificates in PEM: see [`RedisOptions::root_certificates`].
    pub ca: Option<PathBuf>,
}

#[cfg(feature = "redis")]
impl SharedStoreSettings {
    /// How sessions are shared, and the policy of their server. Reads the files, and does not wait for the store.
    ///
    /// # Errors
    /// When the address or a file is not valid.
    fn sessions(self) -> Result<SharedSessions, SettingsError> {
        let keys = read_store_keys(&self.keys);
        let keys = keys.map_err(|why| SettingsError::at("store.keys", why))?;
        let certificates = self.ca.iter().map(std::fs::read);
        let certificates = certificates.collect::<std::io::Result<_>>();
        let mut options = RedisOptions {
            root_certificates: certificates.map_err(|why| SettingsError::at("store.ca", why))?,
            ..RedisOptions::default()
        };
        set(&mut options.prefix, self.prefix);
        let store = RedisStore::open(&self.url, &options);
        let store = store.map_err(|why| SettingsError::at("store", why))?;
        Ok(SharedSessions {
            scope: options.prefix.into(),
            shares_policy: true,
            ..SharedSessions::new(Arc::new(store), Arc::new(keys))
        })
    }
}

impl<T: Into<Duration>> ServeSettings<T> {
    /// The options for an address.
    ///
    /// # Errors
    /// When a host or an origin is not written as [`HttpOptions`] wants it, the store's address or files are not valid, or there is a
    /// store, and the address is not one of HTTP.
    pub fn serve(mut self, address: &Address) -> Result<ServeOptions, SettingsError> {
        #[cfg(feature = "redis")]
        if self.store.is_some() && !matches!(address, Address::Http(_)) {
            let why = format!(
                "a store shares sessions of HTTP, and {address} has none; serve at an address such as http://127.0.0.1:8000/mcp"
            );
            return Err(SettingsError::at("store", why));
        }
        let _ = address;
        let mut options = ServeOptions {
            tls: self.tls.take().map(|tls| TlsOptions {
                certificate: tls.certificate,
                key: tls.key,
                clients: tls.clients,
            }),
            threads: self.threads,
            max_connections_per_peer: self.max_connections_per_peer,
            ..ServeOptions::default()
        };
        set(&mut options.max_connections, self.max_connections);
        options.http = self.http()?;
        Ok(options)
    }

    /// The options of HTTP alone, for a server that is mounted in another one.
    ///
    /// # Errors
    /// When a host or an origin is not written as [`HttpOptions`] wants it, or the store's address or files are not valid.
    pub fn http(self) -> Result<HttpOptions, SettingsError> {
        let mut http = HttpOptions {
            max_sessions_per_peer: self.max_sessions_per_peer,
            ..HttpOptions::default()
        };
        set(&mut http.path, self.path);
        set(&mut http.hosts, self.hosts);
        set(&mut http.origins, self.origins);
        set(&mut http.anonymous, self.anonymous);
        set(&mut http.cors, self.cors);
        set(&mut http.sse, self.sse);
        set(&mut http.websocket, self.websocket);
        set(&mut http.trusted_proxies, self.trusted_proxies);
        set(&mut http.max_sessions, self.max_sessions);
        set(&mut http.replay_bytes, self.replay_bytes);
        set(&mut http.session_ttl, self.session_ttl);
        set(&mut http.action_ttl, self.action_ttl);
        set(&mut http.header_timeout, self.header_timeout);
        set(&mut http.comment_interval, self.comment_interval);
        set(
            &mut http.heartbeat,
            self.heartbeat.map(Into::into).map(Some),
        );
        set(&mut http.grace, self.grace);
        let limits = &mut http.limits;
        set(&mut limits.max_message_bytes, self.max_message_bytes);
        set(&mut limits.max_depth, self.max_depth);
        set(&mut limits.max_incoming, self.max_incoming);
        set(&mut limits.stall_timeout, self.stall_timeout);
        let [keepalive, idle] =
            [self.keepalive_interval, self.idle_timeout].map(|time| time.map(Into::into).map(Some));
        set(&mut limits.keepalive_interval, keepalive);
        set(&mut limits.idle_timeout, idle);
        #[cfg(feature = "redis")]
        if let Some(store) = self.store {
            http.shared_sessions = Some(store.sessions()?);
        }
        http.check()
            .map_err(|reason| SettingsError::at("", reason))?;
        Ok(http)
    }
}

fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Network>>, D::Error> {
    let texts = Option::<Vec<String>>::deserialize(deserializer)?;
    let read = |texts: Vec<String>| texts.iter().map(|text| text.parse()).collect();
    texts
        .map(read)
        .transpose()
        .map_err(serde::de::Error::custom)
}
