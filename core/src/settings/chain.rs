//! Options of the servers of chains and of pools.

use std::time::Duration;

use serde::Deserialize;

use super::client::opening;
use super::{parsed, set};
use crate::chain::{External, Front, Isolation, Prefix};
use crate::connection::OpeningMode;
use crate::error::RequestError;
use crate::io::PoolOptions;
use crate::limits::Limits;
use crate::mcp::{Revision, Revisions};

/// How a chain talks to the server at its end.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExternalSettings<T> {
    /// How connections open: `probe`, `handshake` or `stateless`. By default in the era of the client.
    #[serde(default, deserialize_with = "opening")]
    pub opening: Option<OpeningMode>,
    /// The only revision to speak; any by default.
    #[serde(default, deserialize_with = "parsed")]
    pub revision: Option<Revision>,
    /// What clients see before the names and URIs of the server.
    #[serde(default, deserialize_with = "parsed")]
    pub prefix: Option<Prefix>,
    /// Which clients share a connection: `session`, `principal` or `shared`.
    #[serde(default, deserialize_with = "parsed")]
    pub isolation: Option<Isolation>,
    /// The most connections at a time.
    pub max_connections: Option<usize>,
    /// How long a request may go without news.
    pub timeout: Option<T>,
    /// How long a request may take, whatever news there are.
    pub max_timeout: Option<T>,
}

impl<T: Into<Duration>> ExternalSettings<T> {
    /// Sets these options.
    pub fn apply(self, mut external: External) -> External {
        if let Some(opening) = self.opening {
            external = external.opening(opening);
        }
        if let Some(revision) = self.revision {
            external = external.revisions(Revisions::only(revision));
        }
        if let Some(prefix) = self.prefix {
            external = external.prefix(prefix);
        }
        if let Some(isolation) = self.isolation {
            external = external.isolation(isolation);
        }
        if let Some(connections) = self.max_connections {
            external = external.max_connections(connections);
        }
        let mut limits = Limits::STDIO;
        set(&mut limits.request_timeout, self.timeout);
        set(&mut limits.max_request_timeout, self.max_timeout);
        external.limits(limits)
    }
}

/// Checks that servers with these names and prefixes can be joined to one front, before there are connections to them.
///
/// # Errors
/// [`RequestError::Misuse`] as [`Front::join`] has it, and for a text that is no prefix.
pub fn check_joined(servers: Vec<(String, Option<String>)>) -> Result<(), RequestError> {
    let mut front = None::<Front>;
    for (name, prefix) in servers {
        let mut external = External::new(name, |_| Box::pin(std::future::pending()) as _);
        if let Some(prefix) = prefix {
            external = external.prefix(prefix.parse()?);
        }
        front = Some(match front {
            Some(front) => front.join(external)?,
            None => Front::new(external),
        });
    }
    Ok(())
}

/// Options of a pool of connections: see [`PoolOptions`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the options they set")]
pub struct PoolSettings<T> {
    pub max_connections: Option<usize>,
    pub max_total: Option<usize>,
    pub sharing: Option<usize>,
    pub wait_timeout: Option<T>,
    pub max_waiting: Option<usize>,
    pub idle_timeout: Option<T>,
}

impl<T: Into<Duration>> PoolSettings<T> {
    /// The options.
    pub fn options(self) -> PoolOptions {
        let mut options = PoolOptions::default();
        set(&mut options.max_connections, self.max_connections);
        set(&mut options.max_total, self.max_total);
        set(&mut options.sharing, self.sharing);
        set(&mut options.wait_timeout, self.wait_timeout);
        set(&mut options.max_waiting, self.max_waiting);
        set(&mut options.idle_timeout, self.idle_timeout);
        options
    }
}
