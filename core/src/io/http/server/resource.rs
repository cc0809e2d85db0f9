//! The sender of a request to a resource server of OAuth, and what clients are told about tokens.

use std::time::Duration;

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue,
    WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use mcpbolt_oauth::challenge::Challenge;
use mcpbolt_oauth::server::{PresentedToken, RefusalKind, TokenRefusal, UsedProof};
use smallvec::smallvec;

use super::body::HttpBody;
use super::credentials::{
    Denied, Heard, REPEATED, Sender, Unidentified, VerifierAnswer, brought, is_repeated, timed,
};
use super::peer::PeerCertificate;
use super::refusal::{HttpRefusal, UNAUTHENTICATED};
use super::response::{add_challenges, empty, json};
use crate::connection::{Principal, Rejection};
use crate::policy::{Credentials, Policy, ResourceServer, TokenRequest};

const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// Why a token is refused that the program's verifier does not accept.
const NOT_ACCEPTED: TokenRefusal = TokenRefusal::token("the token is not accepted");

/// Why a token is refused about which the program's verifier says nothing.
const NO_VERDICT: TokenRefusal = TokenRefusal::unavailable("the token cannot be verified now");

const LACKS_SCOPES: TokenRefusal = TokenRefusal {
    kind: RefusalKind::InsufficientScope,
    why: "the credentials lack scopes that every request requires",
};

/// Verifies the token of a request, unless a verdict on it was `heard` already. Tokens in the URI are ignored
/// (R-AUS-10).
///
/// # Errors
/// As [`identify`](super::credentials::identify).
pub fn identify(
    resource: &ResourceServer,
    heard: Option<Heard>,
    sender: &Sender<'_>,
    is_endpoint: bool,
) -> Result<Principal, Unidentified> {
    let (policy, headers) = (sender.policy, &sender.request.headers);
    let verdict = match heard {
        Some(Heard::Sender(who)) => {
            return who.map_err(|denied| refused(resource, sender, denied).into());
        }
        Some(Heard::Credentials(verdict)) => Some(verdict),
        None => None,
    };
    let denied = match PresentedToken::read(values(sender.request, &AUTHORIZATION)) {
        Ok(token) => match verified(resource, verdict, sender, &token)? {
            Ok(who) => match check(resource, sender, Some(&token), &who, is_endpoint) {
                Ok(proof) => return marked(policy, proof, who),
                Err(refusal) => refusal.into(),
            },
            Err(denied) => denied,
        },
        Err(refusal) if refusal.kind == RefusalKind::Missing && policy.has_own_verifier() => {
            let mut pair = String::new();
            match brought(headers, &sender.request.extensions, &mut pair) {
                Credentials::None | Credentials::Bearer(_) => refusal.into(),
                _ if is_repeated(headers) => TokenRefusal::malformed(REPEATED).into(),
                other => match answer(policy, verdict, &other)? {
                    Ok(who) => match check(resource, sender, None, &who, is_endpoint) {
                        Ok(_) => return Ok(who),
                        Err(refusal) => refusal.into(),
                    },
                    Err(denied) => denied,
                },
            }
        }
        Err(refusal) => refusal.into(),
    };
    Err(refused(resource, sender, denied).into())
}

/// The verdict on a token: what is known, what is passed, or what the policy's verifier says at once.
fn verified(
    resource: &ResourceServer,
    verdict: Option<VerifierAnswer>,
    sender: &Sender<'_>,
    presented: &PresentedToken<'_>,
) -> Result<VerifierAnswer, Unidentified> {
    let (policy, token) = (sender.policy, presented.token);
    let digest = match resource.digest(token) {
        Ok(digest) => digest,
        Err(refusal) => return Ok(Err(refusal.into())),
    };
    if verdict.is_none()
        && let Some(known) = resource.known(&digest)
    {
        return Ok(known.map_err(Into::into));
    }
    if policy.has_token_source() {
        return verdict.ok_or_else(|| {
            let verification = resource.verify(token, digest);
            let limit = policy.verification_limit();
            Unidentified::Unverified(Box::pin(async move {
                let verdict = tokio::time::timeout(limit, verification).await;
                let late = TokenRefusal::unavailable("the verification of the token took too long");
                Heard::Credentials(verdict.unwrap_or(Err(late)).map_err(Denied::from))
            }))
        });
    }
    let verdict = answer(policy, verdict, &Credentials::Bearer(token))?;
    let known = verdict.as_ref().map_err(Denied::refusal);
    resource.remember(digest, &known.cloned());
    Ok(verdict)
}

/// The verdict of the policy's verifier.
fn answer(
    policy: &Policy,
    verdict: Option<VerifierAnswer>,
    credentials: &Credentials<'_>,
) -> Result<VerifierAnswer, Unidentified> {
    if let Some(verdict) = verdict {
        return Ok(verdict);
    }
    match policy.begin_verification(credentials) {
        Some((verification, limit)) => Err(Unidentified::Unverified(timed(verification, limit))),
        None => Ok(policy.verify(credentials).map_err(Denied::from)),
    }
}

/// Accepts a sender whose proof no other process has seen: at once, if there is none or this process is alone.
fn marked(
    policy: &Policy,
    proof: Option<UsedProof>,
    who: Principal,
) -> Result<Principal, Unidentified> {
    let (Some(proof), Some(store)) = (proof, policy.shared_store().cloned()) else {
        return Ok(who);
    };
    Err(Unidentified::Unverified(Box::pin(async move {
        let name = format!("proof {:032x}", proof.mark);
        // By the clock of another process, it may still be good then.
        let keep = Duration::from_secs(proof.lifetime.saturating_mul(2));
        Heard::Sender(match store.once(&name, keep).await {
            Ok(true) => Ok(who),
            Ok(false) => Err(UsedProof::BEFORE.into()),
            Err(why) => {
                event!(warn, %why, "requests with proofs are refused while the store is away");
                let _ = why;
                Err(
                    TokenRefusal::unavailable("nobody knows whether the proof was used before")
                        .into(),
                )
            }
        })
    })))
}

/// Checks what verified credentials are bound to, that they have not ended meanwhile, and their scopes. `presented` is
/// `None` for credentials other than tokens.
fn check(
    resource: &ResourceServer,
    sender: &Sender<'_>,
    presented: Option<&PresentedToken<'_>>,
    who: &Principal,
    is_endpoint: bool,
) -> Result<Option<UsedProof>, TokenRefusal> {
    if who.has_expired() {
        return Err(TokenRefusal::unfit("the credentials have expired"));
    }
    let request = sender.request;
    let proofs: Vec<_> = values(request, &DPOP).collect();
    let certificate = request.extensions.get::<PeerCertificate>();
    let request = TokenRequest {
        method: request.method.as_str(),
        path: request.uri.path(),
        is_endpoint,
        proofs: &proofs,
        certificate: certificate.map(|it| &*it.0),
    };
    let proof = resource.check_possession(presented, who, &request)?;
    match sender.policy.lacks_any(who) {
        true => Err(LACKS_SCOPES),
        false => Ok(proof),
    }
}

impl Denied {
    /// What the client is told.
    fn refusal(&self) -> TokenRefusal {
        match self {
            Self::Rejected(Rejection::Refused(_)) => NOT_ACCEPTED,
            Self::Rejected(Rejection::Unavailable(_)) => NO_VERDICT,
            Self::Token(refusal) => *refusal,
        }
    }
}

fn refused(resource: &ResourceServer, sender: &Sender<'_>, denied: Denied) -> HttpRefusal {
    let refusal = denied.refusal();
    let is_unavailable = refusal.kind == RefusalKind::Unavailable;
    let told = HttpRefusal {
        status: refusal.kind.status(),
        retry_after: is_unavailable.then_some(1),
        challenges: match is_unavailable {
            true => Vec::new(),
            false => resource.challenges(&refusal, None),
        },
        ..UNAUTHENTICATED.because(refusal.why)
    };
    match refusal.kind {
        // Clients begin without a token and without a nonce.
        RefusalKind::Missing | RefusalKind::NonceNeeded => told,
        // A client has guessed only if nobody issued its token: not if the token has ended.
        kind => sender.refused(told, denied.why(), kind == RefusalKind::InvalidToken),
    }
}

fn values<'a>(request: &'a Parts, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    let values = request.headers.get_all(name).iter();
    values.map(HeaderValue::as_bytes)
}

/// The resource server at an endpoint.
pub struct ResourceEndpoint {
    resource: ResourceServer,
    document: String,
}

impl ResourceEndpoint {
    /// `None` if the policy has no resource server.
    pub fn of(policy: &Policy) -> Option<Self> {
        Some(Self {
            resource: policy.resource_server()?.clone(),
            document: policy.resource_document()?,
        })
    }

    /// Answers requests for the metadata, from pages of every origin: it is the same for everybody.
    pub fn metadata(&self, parts: &Parts) -> Option<Response<HttpBody>> {
        if !self.resource.has_metadata_at(parts.uri.path()) {
            return None;
        }
        let fixed = HeaderValue::from_static;
        let mut response = match parts.method {
            Method::GET | Method::HEAD => {
                let document = self.document.clone().into_bytes();
                let mut response = json(StatusCode::OK, smallvec![document.into()]);
                let headers = response.headers_mut();
                headers.insert(CONTENT_TYPE, fixed("application/json"));
                headers.insert(CACHE_CONTROL, fixed("public, max-age=3600"));
                response
            }
            Method::OPTIONS => {
                let mut response = empty(StatusCode::NO_CONTENT);
                let headers = response.headers_mut();
                headers.insert(ACCESS_CONTROL_ALLOW_METHODS, fixed("GET, HEAD"));
                headers.insert(
                    ACCESS_CONTROL_ALLOW_HEADERS,
                    fixed("*, mcp-protocol-version"),
                );
                headers.insert(ACCESS_CONTROL_MAX_AGE, fixed("86400"));
                response
            }
            _ => {
                let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
                response
                    .headers_mut()
                    .insert(hyper::header::ALLOW, fixed("GET, HEAD, OPTIONS"));
                response
            }
        };
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, fixed("*"));
        Some(response)
    }

    /// Completes the challenges of a refusal that was written further in, and adds the nonce for the next proof.
    pub fn completed(&self, mut response: Response<HttpBody>) -> Response<HttpBody> {
        let kind = match response.status() {
            StatusCode::UNAUTHORIZED => RefusalKind::InvalidToken,
            StatusCode::FORBIDDEN => RefusalKind::InsufficientScope,
            _ => RefusalKind::Missing,
        };
        let said = response.headers().get(WWW_AUTHENTICATE);
        let said = said.map(|said| Challenge::parse_all([said.as_bytes()]));
        let said = said.as_ref().and_then(|said| said.first());
        if let Some(said) = said.filter(|said| said.get("resource_metadata").is_none()) {
            let why = match kind {
                RefusalKind::InsufficientScope => {
                    "the credentials lack scopes that the request requires"
                }
                _ => "the credentials have expired",
            };
            let refusal = TokenRefusal { kind, why };
            let challenges = self.resource.challenges(&refusal, said.get("scope"));
            let headers = response.headers_mut();
            headers.remove(WWW_AUTHENTICATE);
            add_challenges(headers, &challenges);
        }
        if let Some(nonce) = self.resource.nonce()
            && let Ok(nonce) = HeaderValue::try_from(nonce)
        {
            response.headers_mut().insert(DPOP_NONCE, nonce);
        }
        response
    }
}
