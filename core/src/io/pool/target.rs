//! Servers at addresses, as keys of a pool.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::{Pool, PoolOptions};
use crate::client::ClientBuilder;
#[cfg(feature = "oauth")]
use crate::io::login::Authorization;
use crate::io::{Address, ConnectOptions};

/// A server at an address, and how to connect to it. Two targets are the same if both are: connections with
/// different credentials, headers or certificates are never used for one another (R-POL-01).
#[derive(Clone, Debug)]
pub struct PoolTarget {
    /// Where the server is.
    pub address: Address,
    /// Credentials and other options. What tells targets apart are `auth`, `headers`, `protocols`,
    /// `root_certificates`, `certificate` and, of `http`, the object that logs in.
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
            #[cfg(feature = "oauth")]
            options
                .http
                .authorization
                .as_ref()
                .map(Authorization::identity),
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

#[cfg(all(test, feature = "oauth"))]
mod tests {
    use super::*;
    use crate::io::login::LoginOptions;

    /// R-POL-01
    #[test]
    fn nobody_gets_what_another_has_logged_in_to() {
        let target = |login: Option<&Authorization>| {
            let mut target = PoolTarget::new("http://localhost/mcp".parse().unwrap());
            target.options.http.authorization = login.cloned();
            target
        };
        let login = || Authorization::new(LoginOptions::new("Test"));
        let (alice, bob) = (login(), login());
        assert_eq!(target(Some(&alice)), target(Some(&alice)));
        assert_ne!(target(Some(&alice)), target(Some(&bob)));
        assert_ne!(target(Some(&alice)), target(None));
    }
}
