//! `/authorize`: checks what a client asks for, and asks the user.

use serde::{Deserialize, Serialize};

use super::browser::{APPROVALS, Cookie, LOGIN, PAGE, cookie};
use super::clients::{RegisteredClient, mark};
use super::consent::Approvals;
use super::form::Form;
use super::page;
use super::reply::{ProxyReply, ProxyRequest};
use super::seal::{Purpose, digest};
use super::server::ConsentProxy;
use crate::encoding::{random, with_parameters};

/// How long a user may look at the page, and be at the identity provider, in seconds each.
pub const STEP_SECONDS: u64 = 600;
/// Longest `state` of a client, in bytes.
const MAX_STATE_BYTES: usize = 1024;

/// A checked authorization request of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuthorizationRequest {
    /// Stands for the client id.
    pub client: String,
    pub redirect: String,
    pub state: Option<String>,
    /// The client's PKCE challenge.
    pub challenge: String,
    pub scopes: Vec<String>,
}

impl AuthorizationRequest {
    /// Leads the browser back to the client, with the issuer (RFC 9207).
    pub fn answer(&self, proxy: &ConsentProxy, what: &[(&str, &str)]) -> ProxyReply {
        let state = self.state.as_deref().map(|state| ("state", state));
        let iss = ("iss", &*proxy.options.issuer);
        let all = what.iter().copied().chain(state).chain([iss]);
        ProxyReply::redirect(with_parameters(&self.redirect, all))
    }

    pub fn refuse(&self, proxy: &ConsentProxy, error: &str, why: &str) -> ProxyReply {
        self.answer(proxy, &[("error", error), ("error_description", why)])
    }
}

/// An authorization request that waits for consent, within the page.
#[derive(Debug, Serialize, Deserialize)]
pub struct AskedConsent {
    pub request: AuthorizationRequest,
    /// The digest of the cookie of the browser that the page was shown in.
    pub browser: String,
    pub until: u64,
}

/// `state` of a login at the identity provider.
#[derive(Debug, Serialize, Deserialize)]
pub struct LoginState {
    pub request: AuthorizationRequest,
    /// The digest of the cookie of the browser that was sent there.
    pub browser: String,
    /// The PKCE verifier of this server.
    pub verifier: String,
    pub until: u64,
}

pub fn handle(proxy: &ConsentProxy, request: &ProxyRequest<'_>, now: u64) -> ProxyReply {
    let form = match Form::read(request.query.as_bytes()) {
        Ok(form) => form,
        Err(why) => return page::refused(&why),
    };
    // Before client and URI are known to belong together, nobody is sent anywhere (RFC 6749, 4.1.2.1).
    let id = form.get("client_id").unwrap_or_default();
    let Some(client) = RegisteredClient::of(proxy, id) else {
        return page::refused(
            "This application is not registered here. Remove its login and try again.",
        );
    };
    let Some(redirect) = client.redirect(form.get("redirect_uri")) else {
        return page::refused(
            "The application asks for an answer at an address that it has not registered.",
        );
    };
    let asked = AuthorizationRequest {
        client: mark(id),
        redirect: redirect.to_owned(),
        state: form.get("state").map(Into::into),
        challenge: form.get("code_challenge").unwrap_or_default().to_owned(),
        scopes: Vec::new(),
    };
    if asked
        .state
        .as_ref()
        .is_some_and(|it| it.len() > MAX_STATE_BYTES)
    {
        return page::refused("The application sends a state of more than 1,024 bytes.");
    }
    let scopes = match fault(proxy, &form) {
        Some((error, why)) => return asked.refuse(proxy, error, why),
        None => scopes(proxy, form.get("scope")),
    };
    let Some(scopes) = scopes else {
        return asked.refuse(proxy, "invalid_scope", "a scope is not offered here");
    };
    let asked = AuthorizationRequest { scopes, ..asked };
    let approvals = Approvals::of(proxy, cookie(request.cookies, APPROVALS), now);
    if approvals.has(&asked) {
        return begin_login(proxy, asked, now);
    }
    if form.get("prompt") == Some("none") {
        return asked.refuse(proxy, "consent_required", "the user has to be asked");
    }
    ask(proxy, &client, asked, now)
}

/// The fault of a request, its scopes aside.
fn fault(proxy: &ConsentProxy, form: &Form<'_>) -> Option<(&'static str, &'static str)> {
    let challenge = form.get("code_challenge").unwrap_or_default();
    let is_challenge = challenge.len() == 43
        && challenge
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if form.get("response_type") != Some("code") {
        return Some(("unsupported_response_type", "response_type is code"));
    }
    if !is_challenge || form.get("code_challenge_method") != Some("S256") {
        return Some((
            "invalid_request",
            "PKCE is needed: code_challenge_method S256 and its code_challenge",
        ));
    }
    (!names_resource(proxy, form)).then_some((
        "invalid_target",
        "resource is not the server that this one issues tokens for",
    ))
}

/// Whether each `resource` is the MCP server (RFC 8707). Clients of the first revision name none.
pub fn names_resource(proxy: &ConsentProxy, form: &Form<'_>) -> bool {
    let own = &*proxy.options.resource;
    let is_own =
        |it: &str| it.strip_suffix('/').unwrap_or(it) == own.strip_suffix('/').unwrap_or(own);
    form.all("resource").all(is_own)
}

/// The scopes asked for; all, if none are. `None` if one is not offered.
pub fn scopes(proxy: &ConsentProxy, asked: Option<&str>) -> Option<Vec<String>> {
    let offered = &proxy.options.scopes;
    let Some(asked) = asked else {
        return Some(offered.clone());
    };
    let mut scopes: Vec<String> = Vec::new();
    // Whether there is a refresh token is decided by the identity provider.
    for scope in asked
        .split(' ')
        .filter(|it| !it.is_empty() && *it != "offline_access")
    {
        if !offered.iter().any(|own| own == scope) {
            return None;
        }
        if !scopes.iter().any(|own| own == scope) {
            scopes.push(scope.to_owned());
        }
    }
    Some(scopes)
}

/// Shows the page that asks for consent.
fn ask(
    proxy: &ConsentProxy,
    client: &RegisteredClient,
    request: AuthorizationRequest,
    now: u64,
) -> ProxyReply {
    let Some(browser) = random() else {
        return ProxyReply::failed();
    };
    let asked = AskedConsent {
        request,
        browser: digest(&browser),
        until: now.saturating_add(STEP_SECONDS),
    };
    let Some(sealed) = proxy.seal.seal(Purpose::Request, &asked) else {
        return ProxyReply::failed();
    };
    page::consent(&proxy.options, client, &asked.request, &sealed).setting(&Cookie {
        name: PAGE,
        value: &browser,
        lifetime: STEP_SECONDS,
    })
}

/// Sends the browser to the identity provider. Only now is there a state, and a cookie that it belongs to.
pub fn begin_login(proxy: &ConsentProxy, request: AuthorizationRequest, now: u64) -> ProxyReply {
    let (Some(browser), Some(verifier)) = (random(), random()) else {
        return ProxyReply::failed();
    };
    let challenge = digest(&verifier);
    let state = LoginState {
        request,
        browser: digest(&browser),
        verifier,
        until: now.saturating_add(STEP_SECONDS),
    };
    let Some(state) = proxy.seal.seal(Purpose::State, &state) else {
        return ProxyReply::failed();
    };
    let upstream = &proxy.options.upstream;
    let (scope, back) = (upstream.scopes.join(" "), proxy.options.callback());
    let own = [
        ("response_type", "code"),
        ("client_id", &upstream.client_id),
        ("redirect_uri", &back),
        ("scope", &scope),
        ("state", &state),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ];
    let own = own.into_iter().filter(|(_, value)| !value.is_empty());
    let further = upstream
        .parameters
        .iter()
        .map(|(name, value)| (&**name, &**value));
    let to = with_parameters(&upstream.authorization_endpoint, own.chain(further));
    ProxyReply::redirect(to).setting(&Cookie {
        name: LOGIN,
        value: &browser,
        lifetime: STEP_SECONDS,
    })
}
