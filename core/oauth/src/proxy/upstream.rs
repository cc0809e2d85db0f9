//! Questions to the identity provider.

use std::future::Future;
use std::pin::Pin;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use url::form_urlencoded;

use super::options::Upstream;
use crate::encoding::basic;
use crate::tokens::TokenResponse;

/// A request to send.
#[derive(Clone)]
#[non_exhaustive]
pub struct FetchRequest {
    /// The method.
    pub method: &'static str,
    /// The URL.
    pub url: String,
    /// The headers: names and values.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

impl FetchRequest {
    /// A form to post.
    pub fn post(url: String, body: String) -> Self {
        let headers = vec![
            ("accept", "application/json".to_owned()),
            (
                "content-type",
                "application/x-www-form-urlencoded".to_owned(),
            ),
        ];
        Self {
            method: "POST",
            url,
            headers,
            body,
        }
    }
}

/// Omits all that may be secret.
impl std::fmt::Debug for FetchRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FetchRequest {{ {} {}, .. }}", self.method, self.url)
    }
}

/// The response to a [`FetchRequest`].
#[derive(Clone)]
pub struct FetchResponse {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Omits the body.
impl std::fmt::Debug for FetchResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FetchResponse {{ status: {}, .. }}", self.status)
    }
}

/// The response to a request, or why there is none.
pub type Fetched<'a> = Pin<Box<dyn Future<Output = Result<FetchResponse, String>> + Send + 'a>>;

/// Sends requests over HTTPS. It follows no redirects, waits a limited time and reads limited bodies.
pub trait Fetch: Send + Sync {
    /// Sends a request.
    fn fetch(&self, request: FetchRequest) -> Fetched<'_>;
}

/// The identity provider's tokens.
#[derive(Deserialize)]
pub struct UpstreamTokens {
    #[serde(flatten)]
    pub tokens: TokenResponse,
    id_token: Option<String>,
}

impl UpstreamTokens {
    /// The user's name at the provider. The provider itself sent the token, over TLS, so its signature adds
    /// nothing (OpenID Connect Core 1.0, section 3.1.3.7).
    pub fn subject(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Claims {
            sub: String,
        }
        let claims = self.id_token.as_ref()?.split('.').nth(1)?;
        let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
        serde_json::from_slice::<Claims>(&claims)
            .ok()
            .map(|it| it.sub)
    }
}

/// Why the provider gave no tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamFault {
    /// It refuses.
    Refused,
    /// It cannot be asked now.
    Away,
}

/// What an error of the token endpoint means. Only one about the code or the refresh token ends a login: a wrong
/// secret, or a page of a proxy on the way, says nothing about the user.
fn fault(body: &[u8]) -> UpstreamFault {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    let refusal = serde_json::from_slice::<Refusal>(body);
    match refusal.as_ref().map(|it| &*it.error) {
        // The last two are GitHub's.
        Ok("invalid_grant" | "bad_verification_code" | "bad_refresh_token") => {
            UpstreamFault::Refused
        }
        _ => UpstreamFault::Away,
    }
}

impl Upstream {
    /// Asks the token endpoint.
    pub async fn tokens(
        &self,
        http: &dyn Fetch,
        parameters: &[(&str, &str)],
    ) -> Result<UpstreamTokens, UpstreamFault> {
        let request = self.request(&self.token_endpoint, parameters);
        let response = http.fetch(request).await.map_err(|_| UpstreamFault::Away)?;
        match response.status {
            // Some providers send errors with status 200, which are no tokens.
            200 => serde_json::from_slice(&response.body).map_err(|_| fault(&response.body)),
            429 | 500.. => Err(UpstreamFault::Away),
            _ => Err(fault(&response.body)),
        }
    }

    /// Revokes a token, where the provider has that. What it answers makes no difference.
    pub async fn revoke(&self, http: &dyn Fetch, token: &str) {
        if let Some(endpoint) = &self.revocation_endpoint {
            let _ = http
                .fetch(self.request(endpoint, &[("token", token)]))
                .await;
        }
    }

    fn request(&self, url: &str, parameters: &[(&str, &str)]) -> FetchRequest {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(parameters);
        let mut authorization = None;
        match &self.client_secret {
            Some(secret) => authorization = Some(basic(&self.client_id, secret)),
            None => {
                form.append_pair("client_id", &self.client_id);
            }
        }
        let mut request = FetchRequest::post(url.to_owned(), form.finish());
        let authorization = authorization.map(|value| ("authorization", value));
        request.headers.extend(authorization);
        request
    }
}
