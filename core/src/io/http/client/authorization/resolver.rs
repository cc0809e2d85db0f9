//! Addresses of hosts, without those that a server may not choose.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use mcpbolt_oauth::client::UrlGuard;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;

use crate::sync::lock;

/// Resolves names, and refuses addresses that are not for those who named them. The check is of the
/// addresses that are connected to, so a name that changes its address does not evade it.
pub struct GuardedResolver {
    /// The guard of the login that runs.
    pub guard: Arc<Mutex<UrlGuard>>,
    /// Hosts of proxies, which the user chose.
    pub proxies: HashSet<String>,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = (!self.proxies.contains(name.as_str())).then(|| *lock(&self.guard));
        Box::pin(async move {
            let all = lookup_host((name.as_str(), 0)).await?;
            let fits = |address: &SocketAddr| guard.is_none_or(|it| it.allows(address.ip()));
            let allowed: Vec<_> = all.filter(fits).collect();
            if allowed.is_empty() {
                let why = "the name leads to an inner network, which this server may not choose; if it may, allow private addresses (--allow-private, allowsPrivateAddresses, allows_private_addresses)";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}
