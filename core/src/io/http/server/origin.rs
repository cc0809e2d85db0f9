//! Checks which origin a request comes from: a program, a page of the server's own origin, or a page of
//! another origin (R-HTP-06; Fetch Metadata Request Headers).
//!
//! | header | accepted |
//! |---|---|
//! | `Host` | the names in `hosts` |
//! | `Origin` | the origin that the request is sent to, and those in `origins` |
//! | `Sec-Fetch-Site` | `same-origin` and `none`; any value beside an `Origin` in `origins` |
//! | `Sec-Fetch-Mode` | without `Origin`: the modes of scripts (`cors`, `same-origin`, `websocket`) only |
//!
//! So links, frames and images are refused. Programs send only `Host`; Node's `fetch` adds
//! `Sec-Fetch-Mode: cors`. If a header occurs more than once, every value must be accepted.

use std::net::IpAddr;

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::Authority;

use super::headers::RequestHeaders;
use super::options::HttpOptions;
use super::refusal::{FOREIGN_HOST, FOREIGN_ORIGIN, FOREIGN_PAGE, HttpRefusal, NO_SCRIPT};

/// Checks `Host`, `Origin` and the Fetch Metadata headers of browsers.
///
/// # Errors
/// Why the request is refused.
pub fn check(
    uri: &Uri,
    headers: &RequestHeaders<'_>,
    options: &HttpOptions,
) -> Result<(), HttpRefusal> {
    // The host, with port, that the request is sent to.
    let named = uri.authority().map(Authority::as_str);
    let mut hosts = named
        .into_iter()
        .chain(headers.host.iter().map(|host| text(host)));
    let own = |host: &&str| options.is_own(host);
    let host = hosts.next().filter(own).ok_or(FOREIGN_HOST)?;
    if !hosts.all(|other| own(&other)) {
        return Err(FOREIGN_HOST);
    }
    let own_site = all(&headers.site, |site| matches!(site, "same-origin" | "none"));
    let by_script = |mode: &str| matches!(mode, "cors" | "same-origin" | "websocket");
    let welcome = |origin: &str| options.lists(origin) || own_site && options.is_same(origin, host);
    match headers.origin.is_empty() {
        false if all(&headers.origin, welcome) => Ok(()),
        false => Err(FOREIGN_ORIGIN),
        true if !own_site => Err(FOREIGN_PAGE),
        true if !all(&headers.mode, by_script) => Err(NO_SCRIPT),
        true => Ok(()),
    }
}

impl HttpOptions {
    /// Checks that `hosts` are names and `origins` are origins, as
    /// [`HttpService::new`](crate::io::http::HttpService::new) does.
    ///
    /// # Errors
    /// Says which entry is invalid, and what it should look like.
    pub fn check(&self) -> Result<(), String> {
        let has_port = |host: &str| match host.strip_prefix('[') {
            None => host.contains(':'),
            Some(_) => !host.ends_with(']'),
        };
        let is_name = |host: &str| !host.is_empty() && !host.contains('/') && !has_port(host);
        if let Some(host) = self.hosts.iter().find(|host| !is_name(host)) {
            return Err(format!(
                "hosts: {host:?} is not a host name: write it without scheme and port, IPv6 in brackets"
            ));
        }
        let is_origin = |origin: &str| {
            let parts = origin.split_once("://");
            origin == "*" || parts.is_some_and(|(_, host)| !host.is_empty() && !host.contains('/'))
        };
        match self.origins.iter().find(|origin| !is_origin(origin)) {
            None => Ok(()),
            Some(origin) => Err(format!(
                "origins: {origin:?} is not an origin: write scheme://host or scheme://host:port, without a path"
            )),
        }
    }

    fn is_own(&self, host: &str) -> bool {
        self.names(host) || self.hosts.iter().any(|own| own == "*")
    }

    fn names(&self, host: &str) -> bool {
        self.hosts.iter().any(|own| is_at(own, host))
    }

    /// Whether `origins` lists the origin.
    fn lists(&self, origin: &str) -> bool {
        self.origins.iter().any(|own| match own.strip_suffix(":*") {
            None => own == "*" || own.eq_ignore_ascii_case(origin),
            Some(own) => is_at(own, origin),
        })
    }

    /// Whether a page of that origin sends a request to the server that the page itself came from.
    /// Where `hosts` is `*`, the owner of a name that it does not list may have pointed the name here
    /// (DNS rebinding). That cannot happen with `localhost`, an address, or a name that TLS has
    /// verified.
    fn is_same(&self, origin: &str, host: &str) -> bool {
        let (scheme, port) = match origin.split_once("://") {
            Some(("http", _)) => ("http://", ":80"),
            Some(("https", _)) => ("https://", ":443"),
            _ => return false,
        };
        let without = |host: &'_ str| host.strip_suffix(port).unwrap_or(host).to_ascii_lowercase();
        let name = name_of(host);
        let cannot_move = || {
            let address = name.trim_start_matches('[').trim_end_matches(']');
            name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
        };
        let is_sure = || self.names(host) || scheme == "https://" || cannot_move();
        without(&origin[scheme.len()..]) == without(host) && is_sure()
    }
}

/// Whether the text is `own`, in any case, with or without a port.
fn is_at(own: &str, text: &str) -> bool {
    let is_port = |port: &str| match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => port.is_empty(),
    };
    // Nearly every client writes the name as it is listed, which takes no comparison of each byte.
    let is_own = |name: &str| own == name || own.eq_ignore_ascii_case(name);
    let split = text.split_at_checked(own.len());
    split.is_some_and(|(name, port)| is_own(name) && is_port(port))
}

/// A host without its port. Text after a colon that is not a port, such as the host after user
/// information, stays part of the name: no server has such a name.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Whether all values of a header satisfy `is`.
fn all(values: &[&HeaderValue], is: impl Fn(&str) -> bool) -> bool {
    values.iter().all(|value| is(text(value)))
}

fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn is_let_in(options: &HttpOptions, headers: &[(&str, &str)]) -> bool {
        let request = headers
            .iter()
            .fold(Request::get("/mcp"), |it, (name, value)| {
                it.header(*name, *value)
            });
        let request = request.body(()).unwrap();
        check(
            request.uri(),
            &RequestHeaders::of(request.headers()),
            options,
        )
        .is_ok()
    }

    fn of(hosts: &[&str], origins: &[&str]) -> HttpOptions {
        let owned = |all: &[&str]| all.iter().map(|&it| it.to_owned()).collect();
        HttpOptions {
            hosts: owned(hosts),
            origins: owned(origins),
            ..HttpOptions::default()
        }
    }

    /// R-HTP-06: `hosts` does not affect the origins, and `origins` does not affect the hosts.
    #[test]
    fn hosts_and_origins_are_two_settings() {
        let local = HttpOptions::default();
        let any_host = of(&["*"], &[]);
        let any_origin = of(&["a.example"], &["*"]);
        let named = of(&["a.example"], &["https://b.example", "http://c.example:*"]);
        for (options, host, origin, expected) in [
            (&local, "localhost:8000", "http://localhost:8000", true),
            (&local, "localhost:8000", "http://localhost:3000", true),
            (&local, "localhost:8000", "https://127.0.0.1", true),
            (
                &local,
                "localhost:8000",
                "http://localhost.evil.example",
                false,
            ),
            (
                &local,
                "localhost:8000",
                "http://localhost:3000.evil.example",
                false,
            ),
            (
                &local,
                "localhost:8000",
                "http://localhost@evil.example",
                false,
            ),
            (&local, "localhost:8000", "http://evil.example", false),
            (&local, "localhost:8000", "null", false),
            (&local, "evil.example:8000", "http://localhost:3000", false),
            (&any_host, "a.example", "http://evil.example", false),
            (&any_host, "evil.example", "http://evil.example", false),
            (&any_host, "a.example", "https://a.example", true),
            (&any_host, "a.example:8443", "https://a.example:8443", true),
            (&any_host, "localhost:8000", "http://localhost:8000", true),
            (&any_host, "localhost:8000", "http://localhost:3000", false),
            (&any_host, "[fe80::1]:8000", "http://[fe80::1]:8000", true),
            (&any_origin, "a.example", "http://evil.example", true),
            (&any_origin, "a.example", "null", true),
            (&any_origin, "evil.example", "http://a.example", false),
            (&named, "a.example:80", "http://a.example", true),
            (&named, "a.example", "https://a.example:443", true),
            (&named, "A.example", "http://a.EXAMPLE", true),
            (&named, "a.example", "http://a.example:81", false),
            (&named, "a.example", "ftp://a.example", false),
            (&named, "a.example", "https://b.example", true),
            (&named, "a.example", "https://b.example:81", false),
            (&named, "a.example", "http://c.example", true),
            (&named, "a.example", "http://c.example:81", true),
            (&named, "a.example", "http://c.example:81x", false),
        ] {
            let let_in = is_let_in(options, &[("host", host), ("origin", origin)]);
            assert_eq!(let_in, expected, "{host} {origin} {:?}", options.origins);
        }
    }

    /// Only a port is cut off a host.
    #[test]
    fn a_host_is_a_name_and_perhaps_a_port() {
        let options = HttpOptions::default();
        for (host, expected) in [
            ("localhost", true),
            ("localhost:", true),
            ("127.0.0.1:8000", true),
            ("[::1]", true),
            ("[::1]:8000", true),
            ("localhost:80@evil.example", false),
            ("localhost@evil.example", false),
            ("127.0.0.1:evil.example", false),
            ("[::1].evil.example", false),
            ("[::1]:80.evil.example", false),
            ("evil.example:127.0.0.1", false),
            ("", false),
        ] {
            assert_eq!(is_let_in(&options, &[("host", host)]), expected, "{host}");
        }
        let is_name = |host: &str| of(&[host], &[]).check().is_ok();
        assert!(is_name("a.example") && is_name("[::1]") && is_name("*"));
        assert!(!is_name("a.example:80") && !is_name("[::1]:80") && !is_name("a.example:x"));
    }

    /// The Fetch Metadata headers of a browser, with and without an origin.
    #[test]
    fn browsers_name_the_page_that_asks() {
        let options = of(&["localhost"], &["https://app.example"]);
        let (own, listed) = ("http://localhost", "https://app.example");
        for (origin, site, mode, expected) in [
            ("", "", "", true),
            ("", "", "cors", true),
            ("", "", "no-cors", false),
            ("", "", "navigate", false),
            ("", "same-origin", "cors", true),
            ("", "same-origin", "same-origin", true),
            ("", "same-origin", "no-cors", false),
            ("", "none", "navigate", false),
            ("", "none", "cors", true),
            ("", "same-site", "cors", false),
            ("", "cross-site", "cors", false),
            ("", "cross-site", "no-cors", false),
            ("", "cross-site", "", false),
            ("", "Same-Origin", "cors", false),
            ("", "same-origin", "nested-navigate", false),
            (own, "same-origin", "cors", true),
            (own, "same-origin", "websocket", true),
            // The same host name with another scheme.
            (own, "cross-site", "cors", false),
            (listed, "cross-site", "cors", true),
            (listed, "cross-site", "no-cors", true),
            (listed, "cross-site", "navigate", true),
            ("https://evil.example", "same-origin", "cors", false),
        ] {
            let mut headers = vec![("host", "localhost")];
            let said = [
                ("origin", origin),
                ("sec-fetch-site", site),
                ("sec-fetch-mode", mode),
            ];
            headers.extend(said.into_iter().filter(|(_, value)| !value.is_empty()));
            assert_eq!(is_let_in(&options, &headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn a_header_that_is_there_twice_has_to_be_right_twice() {
        let options = HttpOptions::default();
        let twice = |name, values: [&'static str; 2]| {
            let given = values.map(|value| (name, value));
            let host = [("host", "localhost")];
            is_let_in(&options, &[&host[..], &given].concat())
        };
        assert!(twice("origin", ["http://localhost", "http://127.0.0.1"]));
        assert!(!twice(
            "origin",
            ["http://localhost", "http://evil.example"]
        ));
        assert!(!twice("host", ["localhost", "evil.example"]));
        assert!(!twice("sec-fetch-site", ["same-origin", "cross-site"]));
        assert!(!is_let_in(&options, &[]));
    }

    #[test]
    fn invalid_hosts_and_origins_are_reported() {
        for (hosts, origins, part) in [
            (&["a.example:80"][..], &[][..], "without scheme and port"),
            (&["http://a.example"], &[], "without scheme and port"),
            (&["::1"], &[], "in brackets"),
            (&[""], &[], "hosts: \"\""),
            (&[], &["a.example"], "scheme://host"),
            (&[], &["https://a.example/"], "without a path"),
            (&[], &["null"], "origins: \"null\""),
        ] {
            let error = of(hosts, origins).check().unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(HttpOptions::default().check(), Ok(()));
        assert_eq!(of(&["*", "[::1]"], &["*"]).check(), Ok(()));
    }
}
