//! Authenticates the sender of an HTTP request with the server's verifier, before the request is
//! processed any further.

use std::time::{Duration, Instant};

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::http::Extensions;
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};

use super::actions;
use super::answers::{self, Refusal};
use super::body::HttpBody;
use super::endpoint::Peer;
use super::forwarded::{self, Network};
use crate::action::ErrorType;
use crate::connection::{Principal, Source};
use crate::io::Auth;
use crate::limits::whole_seconds;
use crate::policy::{Credentials, Policy};

const UNKNOWN: Refusal = Refusal::new(
    StatusCode::UNAUTHORIZED,
    "who asks is not known: credentials that this server takes are needed",
);

/// The client certificate of the TLS connection, in DER. The owner of the connection puts it into the
/// extensions of each request.
#[derive(Clone, Debug)]
pub struct PeerCertificate(pub std::sync::Arc<[u8]>);

const TOO_OFTEN: Refusal = Refusal::new(
    StatusCode::TOO_MANY_REQUESTS,
    "too many wrong credentials came from there: try again later",
);

/// Verifies the credentials of a request (R-AUX-03). Only wrong credentials are counted, per address:
/// right ones from the same address are still accepted.
///
/// # Errors
/// The refusal of a sender whose credentials are missing or wrong.
pub fn identify(
    policy: &Policy,
    trusted: &[Network],
    request: &Parts,
    peer: Option<Peer>,
    in_actions: bool,
) -> Result<Principal, Box<Response<HttpBody>>> {
    let why = match is_repeated(&request.headers) {
        true => "credentials came more than once".to_owned(),
        false => match policy.verify(&brought(&request.headers, &request.extensions)) {
            Ok(principal) => return Ok(principal),
            Err(why) => why,
        },
    };
    let from = source(trusted, &request.headers, peer);
    Err(Box::new(
        match policy.refused(&from, &why, Instant::now()) {
            Err(wait) => too_often(in_actions, wait),
            Ok(()) => unknown(in_actions, &why),
        },
    ))
}

/// The source of a request by its address, if that is known.
pub fn source(trusted: &[Network], headers: &HeaderMap, peer: Option<Peer>) -> Source {
    let address = peer.map(|peer| forwarded::client(trusted, peer.0.ip(), headers));
    address.map_or(Source::Unknown, Source::of_address)
}

/// The refusal of a sender that is not known (R-ACT-22, R-AUS-01).
fn unknown(in_actions: bool, why: &str) -> Response<HttpBody> {
    let mut response = match in_actions {
        true => actions::error(UNKNOWN.status, ErrorType::AuthenticationFailed, why, None),
        false => answers::refused(UNKNOWN),
    };
    challenge(&mut response, None);
    response
}

fn too_often(in_actions: bool, wait: Duration) -> Response<HttpBody> {
    let seconds = whole_seconds(wait);
    let mut response = match in_actions {
        true => {
            let details = format!("{{\"retry_after_seconds\":{seconds}}}");
            let kind = ErrorType::RateLimitExceeded;
            actions::error(TOO_OFTEN.status, kind, TOO_OFTEN.why, Some(&details))
        }
        false => answers::refused(TOO_OFTEN),
    };
    if let Ok(seconds) = HeaderValue::from_str(&seconds.to_string()) {
        response.headers_mut().insert(RETRY_AFTER, seconds);
    }
    response
}

/// Whether a header with credentials has more than one value. A proxy in front may have checked another one
/// than the first.
fn is_repeated(headers: &HeaderMap) -> bool {
    let is_repeated = |name: &str| headers.get_all(name).iter().nth(1).is_some();
    is_repeated(AUTHORIZATION.as_str()) || is_repeated(Auth::API_KEY_HEADER)
}

/// The credentials in the headers of a request or in its connection. Credentials in the URI are ignored
/// (R-AUS-10).
fn brought<'a>(headers: &'a HeaderMap, extensions: &'a Extensions) -> Credentials<'a> {
    let text = |value: &'a HeaderValue| value.to_str().ok();
    let said = headers.get(AUTHORIZATION).and_then(text);
    let token = said.and_then(|said| {
        let (scheme, token) = said.split_once(' ')?;
        scheme
            .eq_ignore_ascii_case("bearer")
            .then_some(token.trim())
    });
    let key = headers.get(Auth::API_KEY_HEADER).and_then(text);
    let certificate = extensions.get::<PeerCertificate>();
    match (token, key, certificate) {
        (Some(token), ..) => Credentials::Bearer(token),
        (None, Some(key), _) => Credentials::ApiKey(key),
        (None, None, Some(shown)) => Credentials::Certificate(&shown.0),
        (None, None, None) => Credentials::None,
    }
}

/// Says in `WWW-Authenticate` what is needed: any credentials, or those with these scopes (RFC 6750,
/// 3).
pub fn challenge(response: &mut Response<HttpBody>, scope: Option<&str>) {
    let said = match scope {
        None => "Bearer".to_owned(),
        Some(scope) => format!(
            "Bearer error=\"insufficient_scope\", scope={}",
            quoted(scope)
        ),
    };
    if let Ok(said) = HeaderValue::from_str(&said) {
        response.headers_mut().insert(WWW_AUTHENTICATE, said);
    }
}

/// A quoted string for a header (RFC 9110, 5.6.4): quotes and backslashes are escaped, and characters
/// that a header cannot carry become question marks.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            ' '..='~' => out.push(char),
            _ => out.push('?'),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-AUS-06: a scope cannot inject a parameter.
    #[test]
    fn a_scope_stays_within_its_quotes() {
        for (scope, said) in [
            (
                "files:read files:write",
                r#"scope="files:read files:write""#,
            ),
            (r#"a", realm="b"#, r#"scope="a\", realm=\"b""#),
            (r"a\", r#"scope="a\\""#),
            ("a\r\nSet-Cookie: b=c", r#"scope="a??Set-Cookie: b=c""#),
            ("é", r#"scope="?""#),
        ] {
            let mut response = answers::with(StatusCode::FORBIDDEN, HttpBody::empty());
            challenge(&mut response, Some(scope));
            let header = response.headers()[WWW_AUTHENTICATE].to_str().unwrap();
            let expected = format!("Bearer error=\"insufficient_scope\", {said}");
            assert_eq!(header, expected, "{scope}");
        }
    }
}
