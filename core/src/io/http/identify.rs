//! Who sends a request of HTTP: what it brings is held against the server's verifier before
//! anything else is made of it.

use std::time::{Duration, Instant};

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::http::Extensions;
use hyper::{Request, Response, StatusCode};

use super::actions;
use super::answers;
use super::body::HttpBody;
use super::endpoint::Peer;
use super::guard::Refusal;
use crate::action::ErrorType;
use crate::connection::Principal;
use crate::io::Auth;
use crate::limits::whole_seconds;
use crate::policy::{Credentials, Policy};

const UNKNOWN: Refusal = Refusal::new(
    StatusCode::UNAUTHORIZED,
    "who asks is not known: credentials that this server takes are needed",
);

/// The certificate that a client has shown below HTTP, in DER: put into the extensions of its
/// requests by who has its connection.
#[derive(Clone, Debug)]
pub struct PeerCertificate(pub std::sync::Arc<[u8]>);

const TOO_OFTEN: Refusal = Refusal::new(
    StatusCode::TOO_MANY_REQUESTS,
    "too many wrong credentials came from there: try again later",
);

/// Finds out who asks, where nobody has before, and notes it in the request (R-AUX-03). How often
/// wrong credentials may come from one address, the policy says.
///
/// # Errors
/// The refusal of who cannot prove it.
pub fn identify<B>(
    policy: &Policy,
    request: &mut Request<B>,
) -> Result<(), Box<Response<HttpBody>>> {
    if request.extensions().get::<Principal>().is_some() {
        return Ok(());
    }
    let from = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
    let now = Instant::now();
    let why = match policy.may_try(from, now) {
        Err(wait) => Err(wait),
        Ok(()) => match policy.verify(&brought(request.headers(), request.extensions())) {
            Ok(principal) => {
                request.extensions_mut().insert(principal);
                return Ok(());
            }
            Err(why) => Ok(why),
        },
    };
    let headers = request.headers();
    let counted = policy.refused(from, why.as_deref().map_err(|wait| *wait), now);
    Err(Box::new(match (counted, why) {
        (Err(wait), _) | (_, Err(wait)) => too_often(headers, wait),
        (Ok(()), Ok(why)) => unknown(headers, &why),
    }))
}

/// R-ACT-22, R-AUS-01.
fn unknown(headers: &HeaderMap, why: &str) -> Response<HttpBody> {
    let mut response = match actions::says_so(headers) {
        true => actions::error(UNKNOWN.status, ErrorType::AuthenticationFailed, why, None),
        false => answers::refused(UNKNOWN),
    };
    challenge(&mut response, None);
    response
}

fn too_often(headers: &HeaderMap, wait: Duration) -> Response<HttpBody> {
    let seconds = whole_seconds(wait);
    let mut response = match actions::says_so(headers) {
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

/// What the headers of a request, or the connection beneath it, say of who asks. Nothing in an
/// address does (R-AUS-10).
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

/// Says what is needed: credentials at all, or those with these scopes (RFC 6750, 3).
pub fn challenge(response: &mut Response<HttpBody>, scope: Option<&str>) {
    let said = match scope {
        None => "Bearer".to_owned(),
        Some(scope) => format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\""),
    };
    if let Ok(said) = HeaderValue::from_str(&said) {
        response.headers_mut().insert(WWW_AUTHENTICATE, said);
    }
}
