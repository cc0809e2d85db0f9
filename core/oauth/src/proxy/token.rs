//! `/token` and `/revoke`: codes and refresh tokens become tokens for the MCP server.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::authorize::{names_resource, scopes};
use super::callback::LoginCode;
use super::clients::mark;
use super::form::Form;
use super::options::ConsentProxyError;
use super::redemptions::{Begun, Issued, Redemption};
use super::reply::{ProxyReply, ProxyRequest};
use super::seal::{Purpose, digest, equal};
use super::server::ConsentProxy;
use super::upstream::{Fetch, UpstreamFault, UpstreamTokens};
use crate::encoding::random;
use crate::server::MAX_TOKEN_BYTES;

/// The sealed content of a refresh token.
#[derive(Debug, Serialize, Deserialize)]
struct RefreshToken {
    client: String,
    scopes: Vec<String>,
    subject: String,
    /// The login that it comes from: when its code or a refresh token is used twice, all of the login is over.
    login: String,
    /// The provider's refresh token.
    upstream: String,
    until: u64,
}

/// The claims of an access token (RFC 9068).
#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: String,
    client_id: String,
    scope: String,
    iat: u64,
    exp: u64,
    jti: String,
    /// The provider's access token, sealed.
    upstream: String,
}

/// The content of an access token.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyToken {
    /// The user's name at the identity provider, or a name of the login if it gives none.
    pub subject: String,
    /// The client that the user allowed.
    pub client_id: String,
    /// The scopes that the user granted it.
    pub scopes: Vec<String>,
    /// When the token ends, in seconds since the epoch.
    pub expires_at: u64,
}

/// Whom tokens are for.
struct Grant {
    client: String,
    scopes: Vec<String>,
    /// The login: the digest of its code.
    login: String,
    /// The subject of a login that goes on.
    subject: Option<String>,
}

/// Why there are no tokens: `error` of RFC 6749, section 5.2, and its description.
type Refusal = (&'static str, String);

fn refusal<T>(error: &'static str, why: &str) -> Result<T, Refusal> {
    Err((error, why.to_owned()))
}

pub async fn handle(
    proxy: &ConsentProxy,
    request: &ProxyRequest<'_>,
    now: u64,
    http: &dyn Fetch,
) -> ProxyReply {
    let reply = match Form::read(request.body) {
        _ if !request
            .content_type
            .starts_with("application/x-www-form-urlencoded") =>
        {
            refusal(
                "invalid_request",
                "the body is a form: application/x-www-form-urlencoded",
            )
        }
        Err(why) => Err(("invalid_request", why)),
        Ok(form) => match form.get("grant_type") {
            Some("authorization_code") => redeem(proxy, request, &form, now, http).await,
            Some("refresh_token") => refresh(proxy, request, &form, now, http).await,
            _ => refusal(
                "unsupported_grant_type",
                "grant_type is authorization_code or refresh_token",
            ),
        },
    };
    let reply = reply.unwrap_or_else(|(error, why)| {
        let status = if error == "temporarily_unavailable" {
            503
        } else {
            400
        };
        ProxyReply::error(status, error, &why)
    });
    reply.readable_anywhere()
}

async fn redeem(
    proxy: &ConsentProxy,
    request: &ProxyRequest<'_>,
    form: &Form<'_>,
    now: u64,
    http: &dyn Fetch,
) -> Result<ProxyReply, Refusal> {
    let need = |name| form.need(name).map_err(|why| ("invalid_request", why));
    let (sealed, client, verifier) = (need("code")?, need("client_id")?, need("code_verifier")?);
    let code: Option<LoginCode> = proxy.seal.open(Purpose::Code, sealed);
    let out_of_date = "the code is out of date, or none of this server";
    let Some(code) = code else {
        return refusal("invalid_grant", out_of_date);
    };
    let asked = &code.request;
    let fits = equal(&mark(client), &asked.client)
        && equal(&digest(verifier), &asked.challenge)
        && form
            .get("redirect_uri")
            .is_none_or(|uri| uri == asked.redirect);
    if !fits {
        let why = "the code belongs to another client, redirect_uri or code_verifier";
        return refusal("invalid_grant", why);
    }
    if !names_resource(proxy, form) {
        return refusal(
            "invalid_target",
            "resource is not the one of the authorization",
        );
    }
    let (codes, login) = (&proxy.used.codes, digest(sealed));
    let redemption = match codes.begin(login.clone(), &asked.scopes, code.until, now) {
        Begun::Now(redemption) => redemption,
        Begun::Before(reply) => return Ok(reply),
        Begun::OtherScopes => return other_scopes(),
        Begun::Busy => return busy(),
        Begun::Ended => return refusal("invalid_grant", out_of_date),
        Begun::Used => {
            // Somebody else has it (RFC 6749, section 4.1.2).
            end_login(proxy, &login, 0, now);
            return refusal("invalid_grant", "the code was used before: log in again");
        }
    };
    let back = proxy.options.callback();
    let parameters = [
        ("grant_type", "authorization_code"),
        ("code", &code.upstream),
        ("redirect_uri", &back),
        ("code_verifier", &code.verifier),
    ];
    let tokens = proxy.options.upstream.tokens(http, &parameters).await;
    let tokens = match tokens {
        Ok(tokens) => tokens,
        Err(fault) => return refused_upstream(fault, redemption, "the login"),
    };
    let grant = Grant {
        client: asked.client.clone(),
        scopes: asked.scopes.clone(),
        login,
        subject: None,
    };
    let issued = issue(proxy, client, grant, tokens, None, now)?;
    Ok(redemption.end(issued, request, now))
}

async fn refresh(
    proxy: &ConsentProxy,
    request: &ProxyRequest<'_>,
    form: &Form<'_>,
    now: u64,
    http: &dyn Fetch,
) -> Result<ProxyReply, Refusal> {
    let need = |name| form.need(name).map_err(|why| ("invalid_request", why));
    let (sealed, client) = (need("refresh_token")?, need("client_id")?);
    let token: Option<RefreshToken> = proxy.seal.open(Purpose::Refresh, sealed);
    let token = token.filter(|it| equal(&mark(client), &it.client));
    let no_longer_good = "the refresh token is no longer good: log in again";
    let Some(token) = token.filter(|token| !proxy.used.logins.has(&token.login)) else {
        return refusal("invalid_grant", no_longer_good);
    };
    if !names_resource(proxy, form) {
        return refusal(
            "invalid_target",
            "resource is not the one of the authorization",
        );
    }
    let asked = form.get("scope").map(|asked| scopes(proxy, Some(asked)));
    let granted = |all: &Vec<String>| all.iter().all(|scope| token.scopes.contains(scope));
    let scopes = match asked {
        None => token.scopes.clone(),
        Some(asked) => match asked.filter(granted) {
            Some(scopes) => scopes,
            None => return refusal("invalid_scope", "a scope was not granted at the login"),
        },
    };
    let used = &proxy.used.tokens;
    let redemption = match used.begin(digest(sealed), &scopes, token.until, now) {
        Begun::Now(redemption) => redemption,
        Begun::Before(reply) => return Ok(reply),
        Begun::OtherScopes => return other_scopes(),
        Begun::Busy => return busy(),
        Begun::Ended => return refusal("invalid_grant", no_longer_good),
        Begun::Used => {
            // Somebody else has it (RFC 9700, section 4.14.2).
            end_login(proxy, &token.login, token.until, now);
            return refusal(
                "invalid_grant",
                "the refresh token was used before: log in again",
            );
        }
    };
    let parameters = [
        ("grant_type", "refresh_token"),
        ("refresh_token", &token.upstream),
    ];
    let tokens = proxy.options.upstream.tokens(http, &parameters).await;
    let tokens = match tokens {
        Ok(tokens) => tokens,
        Err(fault) => return refused_upstream(fault, redemption, "the refresh"),
    };
    let grant = Grant {
        client: token.client,
        scopes,
        login: token.login,
        subject: Some(token.subject),
    };
    // RFC 6749, section 6: without a new one the provider's old one stays good.
    let old = Some((token.upstream, token.scopes));
    let issued = issue(proxy, client, grant, tokens, old, now)?;
    Ok(redemption.end(issued, request, now))
}

/// Ends a login. Its newest tokens may live longer than what ends it, which lives until `until`.
fn end_login(proxy: &ConsentProxy, login: &str, until: u64, now: u64) {
    let newest = now.saturating_add(proxy.options.refresh_lifetime);
    proxy.used.logins.mark(login, newest.max(until), now);
}

/// What a client is told whose reply is kept for other scopes than it asks for now.
fn other_scopes<T>() -> Result<T, Refusal> {
    refusal(
        "invalid_scope",
        "an earlier request with this code or token asked for other scopes: ask for those",
    )
}

/// What a client is told that asks again while it is being answered: it may have given up too early.
fn busy<T>() -> Result<T, Refusal> {
    refusal(
        "temporarily_unavailable",
        "an earlier request with this code or token is being answered: try again",
    )
}

/// What the client is told. While the provider is away, what was to be redeemed stays good.
fn refused_upstream<T>(
    fault: UpstreamFault,
    redemption: Redemption<'_>,
    what: &str,
) -> Result<T, Refusal> {
    match fault {
        UpstreamFault::Refused => refusal(
            "invalid_grant",
            &format!("the identity provider refused {what}"),
        ),
        UpstreamFault::Away => {
            redemption.undo();
            refusal(
                "temporarily_unavailable",
                "the identity provider cannot be asked now: try again",
            )
        }
    }
}

/// Issues tokens. `old` is the provider's refresh token so far, and the scopes of the login.
fn issue(
    proxy: &ConsentProxy,
    client_id: &str,
    grant: Grant,
    answer: UpstreamTokens,
    old: Option<(String, Vec<String>)>,
    now: u64,
) -> Result<Issued, Refusal> {
    let failed = || {
        (
            "server_error",
            "the server has no random numbers".to_owned(),
        )
    };
    let (options, tokens) = (&proxy.options, &answer.tokens);
    let id = random().ok_or_else(failed)?;
    let login = grant.login;
    let subject = grant.subject.or_else(|| answer.subject());
    let subject = subject.filter(|it| !it.is_empty());
    let subject = subject.unwrap_or_else(|| format!("login:{login}"));
    let lifetime = options
        .token_lifetime
        .min(tokens.expires_in.unwrap_or(u64::MAX));
    let sealed = proxy.seal.seal(Purpose::Upstream, &tokens.access_token);
    let scope = grant.scopes.join(" ");
    let end = now.saturating_add(lifetime);
    let token = proxy.signer.sign(&Claims {
        iss: options.issuer.clone(),
        sub: subject.clone(),
        aud: options.resource.clone(),
        client_id: client_id.to_owned(),
        scope: scope.clone(),
        iat: now,
        exp: end,
        jti: id,
        upstream: sealed.ok_or_else(failed)?,
    });
    let token = token.ok_or_else(failed)?;
    if token.len() > MAX_TOKEN_BYTES {
        let why =
            "the identity provider's access token is too long: have it put fewer claims into it";
        return refusal("server_error", why);
    }
    let mut body = json!({"access_token": token, "token_type": "Bearer"});
    if !scope.is_empty() {
        body["scope"] = scope.into();
    }
    let scopes = grant.scopes;
    let (old, of_login) = match old {
        Some((old, of_login)) => (Some(old), of_login),
        None => (None, scopes.clone()),
    };
    if let Some(upstream) = answer.tokens.refresh_token.or(old) {
        let refresh = RefreshToken {
            client: grant.client,
            scopes: of_login,
            subject,
            login,
            upstream,
            until: now.saturating_add(options.refresh_lifetime),
        };
        let sealed = proxy.seal.seal(Purpose::Refresh, &refresh);
        body["refresh_token"] = sealed.ok_or_else(failed)?.into();
    }
    Ok(Issued { body, scopes, end })
}

/// Revokes a token of the client that asks (RFC 7009): of a refresh token, the whole login; of an access token that has
/// not ended, the provider's token behind it. The access token itself stays good until it ends.
pub async fn revoke(
    proxy: &ConsentProxy,
    request: &ProxyRequest<'_>,
    now: u64,
    http: &dyn Fetch,
) -> ProxyReply {
    let form = match Form::read(request.body) {
        Ok(form) => form,
        Err(why) => return ProxyReply::error(400, "invalid_request", &why).readable_anywhere(),
    };
    let token = form.get("token").unwrap_or_default();
    let client = form.get("client_id").unwrap_or_default();
    let refresh: Option<RefreshToken> = proxy.seal.open(Purpose::Refresh, token);
    let upstream = match refresh.filter(|it| equal(&it.client, &mark(client))) {
        Some(refresh) => {
            end_login(proxy, &refresh.login, refresh.until, now);
            Some(refresh.upstream)
        }
        None => verify(proxy, token, now)
            .ok()
            .filter(|it| equal(&it.client_id, client))
            .and_then(|_| upstream_of(proxy, token)),
    };
    if let Some(upstream) = upstream {
        proxy.options.upstream.revoke(http, &upstream).await;
    }
    ProxyReply::json(200, &json!({})).readable_anywhere()
}

/// Why a token is refused that another server signed, or nobody.
pub const FOREIGN: &str = "the token is none of this server";

pub fn verify(
    proxy: &ConsentProxy,
    token: &str,
    now: u64,
) -> Result<ProxyToken, ConsentProxyError> {
    let token = proxy.signer.signed(token);
    let token = token.ok_or_else(|| ConsentProxyError::new(FOREIGN))?;
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let info = proxy.rules.check(&token, now as f64);
    let info = info.map_err(|refusal| ConsentProxyError::new(refusal.why))?;
    let claims: Claims = token
        .claims()
        .map_err(|_| ConsentProxyError::new(FOREIGN))?;
    Ok(ProxyToken {
        subject: info.subject,
        client_id: claims.client_id,
        scopes: info.scopes,
        expires_at: claims.exp,
    })
}

/// The provider's token within an access token of this server.
pub fn upstream_of(proxy: &ConsentProxy, token: &str) -> Option<String> {
    let claims: Claims = proxy.signer.signed(token)?.claims().ok()?;
    proxy.seal.open(Purpose::Upstream, &claims.upstream)
}
