//! `/callback`: the identity provider's answer becomes an answer of this server.

use serde::{Deserialize, Serialize};

use super::authorize::{AuthorizationRequest, LoginState};
use super::browser::{Cookie, LOGIN, cookie};
use super::form::Form;
use super::page;
use super::reply::{ProxyReply, ProxyRequest};
use super::seal::{Purpose, digest, equal};
use super::server::ConsentProxy;

/// How long a code may be redeemed, in seconds.
const CODE_LIFETIME: u64 = 60;
/// Longest code of an identity provider, in bytes.
const MAX_CODE_BYTES: usize = 2048;

/// A code of this server. It holds the provider's, which is redeemed with it: so it is good once, as that
/// one is, whichever process redeems it.
#[derive(Debug, Serialize, Deserialize)]
pub struct LoginCode {
    pub request: AuthorizationRequest,
    /// The provider's code, and the PKCE verifier that belongs to it.
    pub upstream: String,
    pub verifier: String,
    pub until: u64,
}

pub fn handle(proxy: &ConsentProxy, request: &ProxyRequest<'_>, now: u64) -> ProxyReply {
    let form = match Form::read(request.query.as_bytes()) {
        Ok(form) => form,
        Err(why) => return page::refused(&why),
    };
    let sealed = form.get("state").unwrap_or_default();
    let state: Option<LoginState> = proxy.seal.open(Purpose::State, sealed);
    let Some(state) = state.filter(|state| now < state.until) else {
        return page::refused("The login took too long, or was not begun here. Begin it again.");
    };
    let browser = cookie(request.cookies, LOGIN).map(digest);
    if !browser.is_some_and(|browser| equal(&browser, &state.browser)) {
        return page::refused("The login was begun in another browser. Begin it again.");
    }
    answer(proxy, &form, state, now).setting(&Cookie {
        name: LOGIN,
        value: "",
        lifetime: 0,
    })
}

fn answer(proxy: &ConsentProxy, form: &Form<'_>, state: LoginState, now: u64) -> ProxyReply {
    let asked = state.request;
    let issuer = proxy.options.upstream.issuer.as_deref();
    let said = form.get("iss");
    // RFC 9207, section 2.4: another provider's answer, sent here.
    if issuer.is_some() && said != issuer {
        let why = "the answer comes from another identity provider than the one asked";
        return asked.refuse(proxy, "server_error", why);
    }
    match (form.get("error"), form.get("code")) {
        (Some("access_denied"), _) => asked.refuse(
            proxy,
            "access_denied",
            "the identity provider refused the login",
        ),
        (Some("temporarily_unavailable"), _) => asked.refuse(
            proxy,
            "temporarily_unavailable",
            "the identity provider is not available",
        ),
        (None, Some(code)) if code.len() <= MAX_CODE_BYTES => {
            let code = LoginCode {
                request: asked.clone(),
                upstream: code.to_owned(),
                verifier: state.verifier,
                until: now.saturating_add(CODE_LIFETIME),
            };
            match proxy.seal.seal(Purpose::Code, &code) {
                Some(code) => asked.answer(proxy, &[("code", &code)]),
                None => ProxyReply::failed(),
            }
        }
        _ => asked.refuse(
            proxy,
            "server_error",
            "the identity provider did not log the user in",
        ),
    }
}
