//! Authenticates the sender of an HTTP request with the server's verifier, before the request is
//! processed any further.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use hyper::http::Extensions;
use hyper::http::request::Parts;
#[cfg(feature = "resource-server")]
use mcpbolt_oauth::server::TokenRefusal;

use super::forwarded::{self, Network};
use super::peer::{PeerAddress, PeerCertificate};
use super::refusal::{HttpRefusal, TOO_OFTEN, UNAUTHENTICATED, UNVERIFIED};
use crate::connection::{Principal, Rejection, RequestSource};
use crate::io::Auth;
use crate::limits::whole_seconds;
use crate::policy::{Credentials, Policy, TOO_SLOW, Verification};

pub const REPEATED: &str = "the request has more than one credential of a kind";

/// The result of a verification: the principal, or why the credentials are refused.
pub type VerifierAnswer = Result<Principal, Denied>;

/// What was waited for to identify a sender.
pub enum Heard {
    /// The verdict on the credentials.
    Credentials(VerifierAnswer),
    /// Also whether they may be used: nothing is left to check.
    #[cfg(feature = "resource-server")]
    Sender(VerifierAnswer),
}

/// Why credentials are not accepted.
pub enum Denied {
    /// The policy's verifier says so.
    Rejected(Rejection),
    /// The resource server says so.
    #[cfg(feature = "resource-server")]
    Token(TokenRefusal),
}

impl Denied {
    /// The reason.
    pub fn why(self) -> Cow<'static, str> {
        match self {
            Self::Rejected(Rejection::Refused(why) | Rejection::Unavailable(why)) => why,
            #[cfg(feature = "resource-server")]
            Self::Token(refusal) => refusal.why.into(),
        }
    }
}

impl From<Rejection> for Denied {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

#[cfg(feature = "resource-server")]
impl From<TokenRefusal> for Denied {
    fn from(refusal: TokenRefusal) -> Self {
        Self::Token(refusal)
    }
}

/// A request whose sender is to be identified.
pub struct Sender<'a> {
    pub policy: &'a Policy,
    pub request: &'a Parts,
    pub peer: Option<PeerAddress>,
    pub trusted: &'a [Network],
    pub in_actions: bool,
}

impl Sender<'_> {
    /// The refusal of the sender, which is audited, and counted if the credentials were guessed. Only clients of actions
    /// are told the reason.
    pub fn refused(
        &self,
        refusal: HttpRefusal,
        why: Cow<'static, str>,
        is_guess: bool,
    ) -> HttpRefusal {
        let from = source(self.trusted, &self.request.headers, self.peer);
        let kind = (refusal.status, is_guess);
        match self.policy.refused(&from, &why, kind, Instant::now()) {
            Err(wait) => HttpRefusal {
                retry_after: u64::try_from(whole_seconds(wait)).ok(),
                ..TOO_OFTEN
            },
            Ok(()) if self.in_actions => refusal.because(why),
            Ok(()) => refusal,
        }
    }
}

/// A verification in progress, for a limited time.
pub type TimedVerification = Pin<Box<dyn Future<Output = Heard> + Send>>;

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

/// Verifies the credentials of a request (R-AUX-03), unless a verdict on them was `heard` already. Only wrong
/// credentials are counted, per address: right ones from the same address are still accepted.
///
/// # Errors
/// The refusal of a sender whose credentials are missing or wrong (R-ACT-22, R-AUS-01), or a verification that takes time.
pub fn identify(sender: &Sender<'_>, heard: Option<Heard>) -> Result<Principal, Unidentified> {
    let Sender {
        policy, request, ..
    } = sender;
    let verdict = match (is_repeated(&request.headers), heard) {
        (true, _) => Err(Rejection::from(REPEATED).into()),
        (false, Some(Heard::Credentials(verdict))) => verdict,
        #[cfg(feature = "resource-server")]
        (false, Some(Heard::Sender(verdict))) => verdict,
        (false, None) => {
            let mut pair = String::new();
            let brought = brought(&request.headers, &request.extensions, &mut pair);
            if let Some((verification, limit)) = policy.begin_verification(&brought) {
                return Err(Unidentified::Unverified(timed(verification, limit)));
            }
            policy.verify(&brought).map_err(Denied::from)
        }
    };
    let denied = match verdict {
        Ok(principal) => return Ok(principal),
        Err(denied) => denied,
    };
    // Without a verdict the credentials may be right.
    let (refusal, is_guess) = match &denied {
        Denied::Rejected(Rejection::Unavailable(_)) => (UNVERIFIED, false),
        _ => (UNAUTHENTICATED, true),
    };
    Err(sender.refused(refusal, denied.why(), is_guess).into())
}

/// A verification that is given up after a time.
pub fn timed(verification: Verification, limit: Duration) -> TimedVerification {
    Box::pin(async move {
        let verdict = tokio::time::timeout(limit, verification).await;
        let verdict = verdict.unwrap_or(Err(TOO_SLOW));
        Heard::Credentials(verdict.map_err(Denied::from))
    })
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
pub fn is_repeated(headers: &HeaderMap) -> bool {
    let is_repeated = |name: &str| headers.get_all(name).iter().nth(1).is_some();
    is_repeated(AUTHORIZATION.as_str()) || is_repeated(Auth::API_KEY_HEADER)
}

/// The credentials in the headers of a request or in its connection. Credentials in the URI are ignored
/// (R-AUS-10).
pub fn brought<'a>(
    headers: &'a HeaderMap,
    extensions: &'a Extensions,
    pair: &'a mut String,
) -> Credentials<'a> {
    let text = |value: &'a HeaderValue| value.to_str().ok();
    let said = headers.get(AUTHORIZATION).and_then(text);
    let said = said.and_then(|said| said.split_once(' '));
    let authorized = said.map_or(Credentials::None, |(scheme, secret)| match scheme {
        it if it.eq_ignore_ascii_case("bearer") => Credentials::Bearer(secret.trim()),
        it if it.eq_ignore_ascii_case("basic") => Credentials::of_basic(secret, pair),
        _ => Credentials::None,
    });
    let key = headers.get(Auth::API_KEY_HEADER).and_then(text);
    let certificate = extensions.get::<PeerCertificate>();
    match (authorized, key, certificate) {
        (Credentials::None, Some(key), _) => Credentials::ApiKey(key),
        (Credentials::None, None, Some(shown)) => Credentials::Certificate(&shown.0),
        (authorized, ..) => authorized,
    }
}
