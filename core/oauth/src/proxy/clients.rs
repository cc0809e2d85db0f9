//! Registration (RFC 7591). A client id holds, sealed, what was registered: nothing is kept, so nobody can
//! fill a table.

use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use super::options::ConsentProxyOptions;
use super::reply::{ProxyReply, ProxyRequest};
use super::seal::{Purpose, digest};
use super::server::ConsentProxy;
use crate::local::is_local;

/// Longest client id that is read, in bytes.
const MAX_ID_BYTES: usize = 4096;
/// Most redirect URIs of a client, and their bytes together.
const MAX_REDIRECTS: usize = 10;
const MAX_REDIRECT_BYTES: usize = 1500;
/// Longest name of a client that is shown, in characters.
const MAX_NAME_CHARS: usize = 80;

/// A registered client.
#[derive(Debug, Serialize, Deserialize)]
pub struct RegisteredClient {
    pub name: String,
    pub redirects: Vec<String>,
    /// When it was registered, in seconds since the epoch.
    at: u64,
}

#[derive(Deserialize)]
struct Registration {
    #[serde(default)]
    redirect_uris: Vec<String>,
    client_name: Option<String>,
    #[serde(default)]
    response_types: Vec<String>,
    #[serde(default)]
    grant_types: Vec<String>,
    application_type: Option<String>,
}

impl RegisteredClient {
    pub fn of(proxy: &ConsentProxy, id: &str) -> Option<Self> {
        (id.len() <= MAX_ID_BYTES).then(|| proxy.seal.open(Purpose::Client, id))?
    }

    /// The URI that an answer is sent to: the one asked for, if it is registered, or the only one.
    pub fn redirect<'a>(&'a self, asked: Option<&'a str>) -> Option<&'a str> {
        match (asked, &*self.redirects) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(asked), all) => all.iter().any(|own| is_same(own, asked)).then_some(asked),
        }
    }
}

/// Whether a URI is the registered one, character by character. On this machine any port is right, since a
/// program takes the one that is free (RFC 8252, section 7.3).
fn is_same(registered: &str, asked: &str) -> bool {
    if registered == asked {
        return true;
    }
    match (without_port(registered), without_port(asked)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// The text of a URL of this machine before and after its port.
fn without_port(uri: &str) -> Option<(&str, &str)> {
    Url::parse(uri).ok().filter(is_local)?;
    let rest = uri.strip_prefix("http://")?;
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    // The colons of an IPv6 address are in brackets.
    let host_end = host.rfind(']').map_or(0, |at| at + 1);
    match host.get(host_end..)?.find(':') {
        Some(at) => {
            let (host, port) = host.split_at(host_end + at);
            let is_port = port.bytes().skip(1).all(|b| b.is_ascii_digit());
            is_port.then_some((host, path))
        }
        None => Some((host, path)),
    }
}

/// The fault of a redirect URI (R-AUC-18).
fn fault(options: &ConsentProxyOptions, uri: &str) -> Option<&'static str> {
    let Ok(url) = Url::parse(uri) else {
        return Some("is no absolute URL");
    };
    if uri.contains(['#', '\\'])
        || uri.bytes().any(|b| b <= b' ' || b == 0x7f)
        || !url.username().is_empty()
    {
        return Some("has a fragment, a name or a character that none may have");
    }
    match url.scheme() {
        "http" if is_local(&url) => None,
        "https" if is_local(&url) || is_named(options, &url) => None,
        "https" => Some("leads to a host that this server does not allow"),
        _ => Some("is neither one of https nor one of http on this machine"),
    }
}

fn is_named(options: &ConsentProxyOptions, url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let named = |own: &String| match own.strip_prefix("*.") {
        Some(above) => host.strip_suffix(above).is_some_and(|it| it.ends_with('.')),
        None => host == own,
    };
    options.redirect_hosts.is_empty() || options.redirect_hosts.iter().any(named)
}

pub fn register(proxy: &ConsentProxy, request: &ProxyRequest<'_>, now: u64) -> ProxyReply {
    let refused = |error, why: &str| ProxyReply::error(400, error, why).readable_anywhere();
    let wrong = |why: &str| refused("invalid_client_metadata", why);
    let said: Registration = match serde_json::from_slice(request.body) {
        Ok(said) => said,
        Err(_) => return wrong("the body is no JSON object with the metadata of a client"),
    };
    let all = &said.redirect_uris;
    if all.is_empty() {
        return refused(
            "invalid_redirect_uri",
            "redirect_uris names at least one URI",
        );
    }
    if all.len() > MAX_REDIRECTS || all.iter().map(String::len).sum::<usize>() > MAX_REDIRECT_BYTES
    {
        return refused(
            "invalid_redirect_uri",
            "at most 10 redirect URIs of 1,500 bytes together can be registered",
        );
    }
    if let Some((uri, why)) = all
        .iter()
        .find_map(|uri| Some((uri, fault(&proxy.options, uri)?)))
    {
        let shown: String = uri.chars().take(100).collect();
        return refused("invalid_redirect_uri", &format!("{shown:?} {why}"));
    }
    if !said.response_types.is_empty() && !said.response_types.iter().any(|it| it == "code") {
        return wrong("response_types: this server answers with a code alone");
    }
    if !said.grant_types.is_empty() && !said.grant_types.iter().any(|it| it == "authorization_code")
    {
        return wrong("grant_types: this server needs authorization_code among them");
    }
    let name = said
        .client_name
        .as_deref()
        .unwrap_or("an application without a name");
    let client = RegisteredClient {
        name: name
            .chars()
            .filter(|it| !it.is_control())
            .take(MAX_NAME_CHARS)
            .collect(),
        redirects: said.redirect_uris,
        at: now,
    };
    let Some(id) = proxy.seal.seal(Purpose::Client, &client) else {
        return ProxyReply::failed();
    };
    let body = json!({
        "client_id": id,
        "client_id_issued_at": now,
        "client_name": client.name,
        "redirect_uris": client.redirects,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": said.application_type.as_deref().unwrap_or("web"),
    });
    ProxyReply::json(201, &body).readable_anywhere()
}

/// Identifies a client in sealed texts, since its id is long.
pub fn mark(client_id: &str) -> String {
    digest(client_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_this_machine_only_the_port_may_differ() {
        for (own, asked, same) in [
            ("http://127.0.0.1:1/a?b", "http://127.0.0.1:9/a?b", true),
            ("http://[::1]/a", "http://[::1]:9/a", true),
            ("http://localhost", "http://localhost:9", true),
            (
                "http://127.0.0.1:1/callback",
                "http://127.0.0.1:1/call\nback",
                false,
            ),
            ("http://127.0.0.1:1/a", "http://127.0.0.1:1/b/../a", false),
            ("http://127.0.0.1:1/a", "http://127.0.0.1:1\\a", false),
            ("http://127.0.0.1/a", "http://evil@127.0.0.1/a", false),
            ("http://127.0.0.1/a", "http://localhost/a", false),
            ("https://a.example/a", "https://a.example:9/a", false),
        ] {
            assert_eq!(is_same(own, asked), same, "{own} {asked:?}");
        }
    }
}
