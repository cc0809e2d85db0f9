//! Which URLs a login uses: a server chooses them, so none may lead where that server could not go itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::local::is_local;

/// How far inside an address is. A later one is further inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Zone {
    /// The public internet.
    Public,
    /// A private network.
    Private,
    /// This machine.
    Loopback,
    /// Addresses that no server has business with: of a link (cloud metadata), multicast, reserved.
    Never,
}

impl Zone {
    /// The zone of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    /// The zone of a URL's host, unless only its addresses tell.
    pub fn of_host(url: &Url) -> Option<Self> {
        match url.host()? {
            Host::Ipv4(address) => Some(of_v4(address)),
            Host::Ipv6(address) => Some(of_v6(address)),
            Host::Domain(_) => is_local(url).then_some(Self::Loopback),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Zone {
    match address.octets() {
        [127, ..] => Zone::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Zone::Private,
        [0, ..] | [169, 254, ..] | [192, 0, 0, _] | [198, 18..=19, ..] | [224..=255, ..] => {
            Zone::Never
        }
        _ => Zone::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Zone {
    if let Some(inner) = address.to_ipv4_mapped() {
        return of_v4(inner);
    }
    let inner = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        of_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Zone::Loopback,
        // Addresses that lead to those of IPv4: translated, and 6to4.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => inner(high, low),
        [0xfc00..=0xfdff, ..] => Zone::Private,
        // Global unicast, without Teredo and what is for documents.
        [0x2001, 0 | 0xdb8, ..] => Zone::Never,
        [0x2000..=0x3fff, ..] => Zone::Public,
        _ => Zone::Never,
    }
}

/// What to do if a server may name addresses of a private network.
const ALLOW_PRIVATE: &str = "; if it may, allow private addresses (--allow-private, allowsPrivateAddresses, allows_private_addresses)";

/// Decides which URLs are used.
#[derive(Clone, Copy, Debug)]
pub struct UrlGuard {
    /// The zone furthest inside that may be reached.
    pub reach: Zone,
}

impl UrlGuard {
    /// A guard for what a server at `zone` names. With `allows_private`, a public server may name one in a
    /// private network.
    pub fn new(zone: Zone, allows_private: bool) -> Self {
        let least = match allows_private {
            true => Zone::Private,
            false => Zone::Public,
        };
        Self {
            reach: zone.max(least).min(Zone::Loopback),
        }
    }

    /// Whether a connection to this address may be made.
    pub fn allows(self, address: IpAddr) -> bool {
        Zone::of(address) <= self.reach
    }

    /// Reads a URL that a server names, to be requested by this program.
    ///
    /// # Errors
    /// Why it is not used.
    pub fn check(self, text: &str) -> Result<Url, String> {
        let url = check_shown(text)?;
        match Zone::of_host(&url) {
            Some(zone) if zone > self.reach => {
                let why = format!(
                    "{} is an address of an inner network, which this server may not choose",
                    shown(&url)
                );
                Err(match zone {
                    Zone::Private => why + ALLOW_PRIVATE,
                    _ => why,
                })
            }
            _ => Ok(url),
        }
    }
}

/// Reads a URL that the user opens: `https`, or `http` on this machine.
///
/// # Errors
/// Why it is not used.
pub fn check_shown(text: &str) -> Result<Url, String> {
    // Programs show the text, and parsers remove characters that terminals obey.
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a URL has characters that no URL has".into());
    }
    let url = Url::parse(text).map_err(|_| "a URL is not well formed".to_owned())?;
    match url.scheme() {
        "https" => {}
        "http" if is_local(&url) => {}
        "http" => return Err(format!("{} has no https", shown(&url))),
        scheme => return Err(format!("a URL has the scheme {scheme}, not https")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a URL names a user".into());
    }
    Ok(url)
}

/// A URL as errors show it: without its query.
pub fn shown(url: &Url) -> String {
    let text = format!("{}{}", url.origin().ascii_serialization(), url.path());
    super::error::quoted(&text)
}
