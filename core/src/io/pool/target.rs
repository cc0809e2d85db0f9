//! Servers at addresses, as keys of a pool.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::{Pool, PoolOptions};
use crate::client::ClientBuilder;
use crate::io::{Address, ConnectOptions};

/// A server at an address, and how to connect to it. Two targets are the same if both are: connections with
/// different credentials, headers or certificates are never used for one another (R-POL-01).
#[derive(Clone, Debug)]
pub struct PoolTarget {
    /// Where the server is.
    pub address: Address,
    /// Credentials and other options. What tells targets apart are `auth`, `headers`, `protocols`,
    /// `root_certificates` and `certificate`.
    pub options: ConnectOptions,
    /// A word that tells targets apart which are the same otherwise: a user's name, or a revision that the
    /// pool's builder is given.
    pub label: String,
}

impl PoolTarget {
    /// The server at an address, with the usual options.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            options: ConnectOptions::default(),
            label: String::new(),
        }
    }

    fn identity(&self) -> impl Hash + Eq + '_ {
        let options = &self.options;
        let certificate = options.certificate.as_ref();
        (
            (&self.address, &self.label),
            options.auth.header().ok().flatten(),
            (&options.headers, &options.protocols),
            (
                &options.root_certificates,
                certificate.map(|it| (&it.certificates, &it.key)),
            ),
        )
    }
}

impl PartialEq for PoolTarget {
    fn eq(&self, other: &Self) -> bool {
        self.options.auth == other.options.auth && self.identity() == other.identity()
    }
}

impl Eq for PoolTarget {}

impl Hash for PoolTarget {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl fmt::Display for PoolTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl Pool<PoolTarget> {
    /// A pool of clients of servers at addresses. Each has a builder of its own, which `builder` makes.
    pub fn to_addresses(
        builder: impl Fn() -> ClientBuilder + Send + Sync + 'static,
        options: PoolOptions,
    ) -> Self {
        let open = move |target: &PoolTarget| {
            let (builder, target) = (builder(), target.clone());
            async move { builder.open(&target.address, target.options).await }
        };
        Self::new(open, options)
    }
}
