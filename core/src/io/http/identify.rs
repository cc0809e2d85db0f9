//! Who sends a request of HTTP: what it brings is held against the server's verifier before
//! anything else is made of it.

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::http::Extensions;
use hyper::{Request, Response, StatusCode};

use super::actions;
use super::answers;
use super::body::HttpBody;
use super::guard::Refusal;
use crate::action::ErrorType;
use crate::connection::Principal;
use crate::io::Auth;
use crate::policy::{Credentials, Policy};

const UNKNOWN: Refusal = Refusal::new(
    StatusCode::UNAUTHORIZED,
    "who asks is not known: credentials that this server takes are needed",
);

/// The certificate that a client has shown below HTTP, in DER: put into the extensions of its
/// requests by who has its connection.
#[derive(Clone, Debug)]
pub struct PeerCertificate(pub std::sync::Arc<[u8]>);

/// Finds out who asks, where nobody has before, and notes it in the request (R-AUX-03).
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
    let brought = brought(request.headers(), request.extensions());
    match policy.verify(&brought) {
        Ok(principal) => {
            request.extensions_mut().insert(principal);
            Ok(())
        }
        Err(why) => {
            let mut response = match actions::says_so(request.headers()) {
                true => {
                    let kind = ErrorType::AuthenticationFailed;
                    actions::error(UNKNOWN.status, kind, &why, None)
                }
                false => answers::refused(UNKNOWN),
            };
            challenge(&mut response, None);
            Err(Box::new(response))
        }
    }
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
