//! Which URLs name this machine.

use url::{Host, Url};

/// Whether a URL names this machine: by a loopback address, by `localhost`, or by a name beneath that (RFC 6761,
/// section 6.3).
pub fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => match address.to_ipv4_mapped() {
            Some(address) => address.is_loopback(),
            None => address.is_loopback(),
        },
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_several_names() {
        for (url, expected) in [
            ("http://localhost:8000/mcp", true),
            ("http://LOCALHOST", true),
            ("http://localhost.", true),
            ("http://api.localhost", true),
            ("http://127.0.0.1", true),
            ("http://127.9.8.7", true),
            ("http://2130706433", true),
            ("http://[::1]", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("http://notlocalhost", false),
            ("http://localhost.example", false),
            ("http://127.0.0.1.example", false),
            ("http://10.0.0.1", false),
            ("http://0.0.0.0", false),
            ("http://[::2]", false),
            ("data:localhost", false),
        ] {
            assert_eq!(is_local(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
