//! The party that limits, rates and quotas count against: the principal if known, else the network address.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use super::principal::Principal;

/// The party that limits, rates and quotas count a connection or a request against.
///
/// A peer stays the same source however many connections or sessions it opens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestSource {
    /// No way to tell this peer from others: stdin and stdout, a Unix socket, or a host that does not
    /// know addresses.
    #[default]
    Unknown,
    /// A network address. An IPv6 address counts as its /64 network: its last 64 bits are zero.
    Address(IpAddr),
    /// A verified principal: the text of [`Principal::as_str`].
    Principal(Arc<str>),
}

impl RequestSource {
    /// The source for an address without a verified principal.
    pub fn of_address(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            address => address,
        })
    }

    /// The source of `principal` if there is one, else this source.
    #[must_use]
    pub fn or_principal(self, principal: Option<&Principal>) -> Self {
        principal.map_or(self, Self::from)
    }
}

impl From<&Principal> for RequestSource {
    fn from(principal: &Principal) -> Self {
        Self::Principal(principal.shared_text())
    }
}

impl From<IpAddr> for RequestSource {
    fn from(address: IpAddr) -> Self {
        Self::of_address(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_counts_as_its_network() {
        let source = |address: &str| RequestSource::of_address(address.parse().unwrap());
        assert_eq!(source("2001:db8:1:2::1"), source("2001:db8:1:2:ffff::9"));
        assert_ne!(source("2001:db8:1:2::1"), source("2001:db8:1:3::1"));
        assert_eq!(source("::ffff:10.0.0.1"), source("10.0.0.1"));
        assert_ne!(source("10.0.0.1"), source("10.0.0.2"));
    }

    #[test]
    fn a_principal_is_no_address() {
        let alice = Principal::new("10.0.0.1");
        let at = RequestSource::of_address("10.0.0.1".parse().unwrap());
        assert_ne!(at.clone().or_principal(Some(&alice)), at);
        assert_eq!(at.clone().or_principal(None), at);
    }
}
