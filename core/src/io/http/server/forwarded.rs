//! The address that a request comes from: its peer, or the client that a trusted proxy forwards for.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use hyper::header::{FORWARDED, HeaderMap, HeaderName};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// An address, or the addresses of a network in CIDR notation: `10.0.0.1`, `10.0.0.0/8`, `fd00::/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// Number of leading bits that are compared.
    prefix: u8,
}

/// The error for a text that is neither an address nor a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoNetwork(String);

impl fmt::Display for NoNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            f,
            "{text:?} is not an address or a network; write one like \"10.0.0.1\" or \"10.0.0.0/8\""
        )
    }
}

impl std::error::Error for NoNetwork {}

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let wrong = || NoNetwork(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        match prefix <= most {
            true => Ok(Self { address, prefix }),
            false => Err(wrong()),
        }
    }
}

impl Network {
    /// Whether the address belongs to the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let shift = |bits: u32| bits - u32::from(self.prefix);
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differs = own.to_bits() ^ other.to_bits();
                differs.checked_shr(shift(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differs = own.to_bits() ^ other.to_bits();
                differs.checked_shr(shift(128)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// Whether the address belongs to a trusted proxy.
pub fn is_trusted(trusted: &[Network], address: IpAddr) -> bool {
    trusted.iter().any(|network| network.contains(address))
}

/// The client of a request that came from `peer`. This is `peer` itself or, if that is a trusted proxy,
/// the last forwarded address that is not a trusted proxy. An entry that is not an address counts as
/// the proxy that wrote it. So do `Forwarded` (RFC 7239) and `X-Forwarded-For` if they name two
/// different clients: a proxy writes only one of them, and the client must not get away with writing
/// the other.
pub fn client(trusted: &[Network], peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    if !is_trusted(trusted, peer) {
        return peer;
    }
    let by = |name, entry: fn(&str) -> Option<IpAddr>| {
        headers
            .contains_key(&name)
            .then(|| last(trusted, peer, headers, &name, entry))
    };
    match (by(FORWARDED, element), by(X_FORWARDED_FOR, node)) {
        (Some(one), Some(other)) if one != other => peer,
        (Some(client), _) | (None, Some(client)) => client,
        (None, None) => peer,
    }
}

/// The client according to one header, read from the right, since proxies append.
fn last(
    trusted: &[Network],
    peer: IpAddr,
    headers: &HeaderMap,
    name: &HeaderName,
    entry: fn(&str) -> Option<IpAddr>,
) -> IpAddr {
    let mut client = peer;
    for value in headers.get_all(name).iter().rev() {
        for text in value.to_str().unwrap_or_default().rsplit(',') {
            match entry(text) {
                Some(address) if is_trusted(trusted, address) => client = address,
                Some(address) => return address,
                None => return client,
            }
        }
    }
    client
}

/// The `for` parameter of an element of `Forwarded`.
fn element(text: &str) -> Option<IpAddr> {
    let mut pairs = text.split(';').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    node(value.trim().trim_matches('"'))
}

/// An address with an optional port; an IPv6 address may be in brackets.
fn node(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix('[') {
        return rest.split_once(']')?.0.parse().ok();
    }
    let with_port = || text.rsplit_once(':')?.0.parse().ok();
    text.parse().ok().or_else(with_port)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn networks_are_read_and_hold_their_addresses() {
        let network = |text: &str| text.parse::<Network>();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for (text, within, without) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
            ("fd00::/8", "fd12::1", "2001:db8::1"),
            ("::1", "::1", "::2"),
            ("127.0.0.0/8", "::ffff:127.0.0.1", "::1"),
        ] {
            let network = network(text).unwrap();
            assert!(network.contains(address(within)), "{text}");
            assert!(!network.contains(address(without)), "{text}");
        }
        assert!(network("0.0.0.0/0").unwrap().contains(address("9.9.9.9")));
        assert!(network("::/0").unwrap().contains(address("2001:db8::1")));
        for wrong in [
            "",
            "proxy",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/-1",
            "10.0.0.0/",
        ] {
            let why = network(wrong).unwrap_err().to_string();
            assert!(why.contains("a network"), "{why}");
        }
    }

    /// RFC 7239, sections 4 and 6.
    #[test]
    fn the_last_address_that_is_not_a_proxy_is_the_client() {
        let trusted = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        let found = |peer: &str, given: &[(&str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                let name: HeaderName = name.parse().unwrap();
                headers.append(name, HeaderValue::from_static(value));
            }
            client(&trusted, peer.parse().unwrap(), &headers).to_string()
        };
        let x = |value| [("x-forwarded-for", value)];
        let forwarded = |value| [("forwarded", value)];
        assert_eq!(found("9.9.9.9", &x("1.2.3.4")), "9.9.9.9", "not trusted");
        assert_eq!(found("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(found("10.0.0.1", &x("6.6.6.6, 1.2.3.4")), "1.2.3.4");
        assert_eq!(found("10.0.0.1", &x("1.2.3.4, 10.0.0.2")), "1.2.3.4");
        assert_eq!(found("10.0.0.1", &x("1.2.3.4:4711")), "1.2.3.4");
        assert_eq!(found("10.0.0.1", &x("1.2.3.4, unknown")), "10.0.0.1");
        assert_eq!(found("10.0.0.1", &x("10.0.0.3, 10.0.0.2")), "10.0.0.3");
        let lines = [
            ("x-forwarded-for", "6.6.6.6"),
            ("x-forwarded-for", "1.2.3.4"),
        ];
        assert_eq!(found("10.0.0.1", &lines), "1.2.3.4");
        let said = "for=6.6.6.6, For=\"[2001:db8::7]:47011\";proto=https";
        assert_eq!(found("fd00::1", &forwarded(said)), "2001:db8::7");
        let hidden = forwarded("for=1.2.3.4, for=_hidden;by=10.0.0.9");
        assert_eq!(found("10.0.0.1", &hidden), "10.0.0.1");
        let mut both = [("forwarded", "for=1.2.3.4"), ("x-forwarded-for", "1.2.3.4")];
        assert_eq!(found("10.0.0.1", &both), "1.2.3.4");
        both[1].1 = "6.6.6.6";
        assert_eq!(
            found("10.0.0.1", &both),
            "10.0.0.1",
            "one of them is forged"
        );
    }
}
