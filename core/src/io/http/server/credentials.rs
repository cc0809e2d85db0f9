//! Authenticates the sender of an HTTP request with the server's verifier, before the request is
//! processed any further.

use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use hyper::http::Extensions;
use hyper::http::request::Parts;

use super::forwarded::{self, Network};
use super::peer::{PeerAddress, PeerCertificate};
use super::refusal::{HttpRefusal, TOO_OFTEN, UNAUTHENTICATED};
use crate::connection::{Principal, RequestSource};
use crate::io::Auth;
use crate::limits::whole_seconds;
use crate::policy::{Credentials, Policy, TOO_SLOW};

/// The result of a verification: the principal, or why the credentials are refused.
pub type VerifierAnswer = Result<Principal, String>;

/// A verification in progress, for a limited time.
pub type TimedVerification = Pin<Box<dyn Future<Output = VerifierAnswer> + Send>>;

/// Why the sender of a request is not identified.
pub enum Unidentified {
    /// The request is refused.
    Refused(HttpRefusal),
    /// The policy's verifier takes time: its verdict is to be passed to [`identify`].
    Unverified(TimedVerification),
}

impl From<HttpRefusal> for Unidentified {
    fn from(refusal: HttpRefusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Verifies the credentials of a request (R-AUX-03), unless there is a `verdict` on them already. Only wrong
/// credentials are counted, per address: right ones from the same address are still accepted.
///
/// # Errors
/// The refusal of a sender whose credentials are missing or wrong (R-ACT-22, R-AUS-01), or a verification that takes time.
pub fn identify(
    policy: &Policy,
    verdict: Option<VerifierAnswer>,
    trusted: &[Network],
    request: &Parts,
    peer: Option<PeerAddress>,
    in_actions: bool,
) -> Result<Principal, Unidentified> {
    let verdict = match (is_repeated(&request.headers), verdict) {
        (true, _) => Err("the request has more than one credential of a kind".to_owned()),
        (false, Some(verdict)) => verdict,
        (false, None) => {
            let brought = brought(&request.headers, &request.extensions);
            if let Some((verification, limit)) = policy.begin_verification(&brought) {
                return Err(Unidentified::Unverified(Box::pin(async move {
                    let verdict = tokio::time::timeout(limit, verification).await;
                    verdict.unwrap_or_else(|_| Err(TOO_SLOW.into()))
                })));
            }
            policy.verify(&brought)
        }
    };
    let why = match verdict {
        Ok(principal) => return Ok(principal),
        Err(why) => why,
    };
    let from = source(trusted, &request.headers, peer);
    let refusal = match policy.refused(&from, &why, Instant::now()) {
        Err(wait) => HttpRefusal {
            retry_after: u64::try_from(whole_seconds(wait)).ok(),
            ..TOO_OFTEN
        },
        Ok(()) if in_actions => UNAUTHENTICATED.because(why),
        Ok(()) => UNAUTHENTICATED,
    };
    Err(refusal.into())
}

/// The source of a request by its address, if that is known.
pub fn source(
    trusted: &[Network],
    headers: &HeaderMap,
    peer: Option<PeerAddress>,
) -> RequestSource {
    let address = peer.map(|peer| forwarded::client(trusted, peer.0.ip(), headers));
    address.map_or(RequestSource::Unknown, RequestSource::of_address)
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
