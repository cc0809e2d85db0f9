//! Requests to a token endpoint, and to others that a client authenticates itself at.

use serde_json::Value;
use url::form_urlencoded;

use super::credentials::{Registration, method};
use super::error::{LoginError, LoginStage};
use super::jose::{self, DpopKey};
use super::options::LoginOptions;
use super::steps::{Mailbox, OAuthRequest, OAuthResponse};
use crate::encoding::basic;
use crate::tokens::TokenResponse;

/// Most nonces that a server may ask for in one exchange.
const MAX_NONCES: usize = 2;

/// A client at an authorization server.
pub(super) struct Endpoint<'a> {
    pub mailbox: &'a Mailbox,
    pub options: &'a LoginOptions,
    pub client: &'a Registration,
    /// Who assertions of the client are for.
    pub issuer: &'a str,
}

/// The parameters of a form, in order.
pub(super) type Form<'a> = Vec<(&'a str, &'a str)>;

impl Endpoint<'_> {
    /// Asks for tokens, with a proof by `key` if there is one.
    pub async fn tokens(
        &self,
        stage: LoginStage,
        url: &str,
        form: &Form<'_>,
        key: Option<&DpopKey>,
    ) -> Result<TokenResponse, LoginError> {
        let response = self.answer(stage, url, form, key).await?;
        let tokens: Result<TokenResponse, _> = serde_json::from_slice(&response.body);
        // The error's text could quote a token.
        let tokens = tokens.map_err(|_| {
            let why = "the token endpoint's answer is no token response; ask the operator of the authorization server";
            LoginError::new(stage, why)
        })?;
        if tokens.access_token.is_empty() {
            return Err(LoginError::new(
                stage,
                "the token endpoint answered with an empty token; ask its operator",
            ));
        }
        Ok(tokens)
    }

    /// Posts a form, and again with a nonce where the server asks for one (RFC 9449, section 8). Returns
    /// the successful answer.
    pub async fn answer(
        &self,
        stage: LoginStage,
        url: &str,
        form: &Form<'_>,
        key: Option<&DpopKey>,
    ) -> Result<OAuthResponse, LoginError> {
        let mut nonce: Option<String> = None;
        for _ in 0..=MAX_NONCES {
            let mut request = self.request(url, form)?;
            if let Some(key) = key {
                let now = self.mailbox.now();
                let proof = key.proof("POST", url, None, nonce.as_deref(), now)?;
                request.headers.push(("dpop", proof));
            }
            let secrets = self.secrets(&request);
            let response = self.mailbox.send(stage, request).await?;
            if response.status == 200 {
                return Ok(response);
            }
            let error = refused(stage, &response, &secrets);
            let asked = response.header("dpop-nonce").map(str::to_owned);
            if key.is_some() && error.is("use_dpop_nonce") && asked.is_some() && asked != nonce {
                nonce = asked;
                continue;
            }
            return Err(error);
        }
        let why = "the token endpoint asks for one nonce after another; ask its operator";
        Err(LoginError::new(stage, why))
    }

    /// What a request has that no error may repeat.
    fn secrets(&self, request: &OAuthRequest) -> Vec<String> {
        let sent = form_urlencoded::parse(request.body.as_bytes());
        let sent = sent.filter(|(name, _)| SECRETS.contains(&&**name));
        let secret = self.client.client_secret.as_ref();
        let secret = secret.map(|secret| secret.expose().to_owned());
        sent.map(|(_, value)| value.into_owned())
            .chain(secret)
            .collect()
    }

    /// A form with the client's authentication.
    fn request(&self, url: &str, form: &Form<'_>) -> Result<OAuthRequest, LoginError> {
        let client = self.client;
        let secret = client.client_secret.as_ref();
        let secret = secret.map_or("", |secret| secret.expose());
        let mut headers = vec![
            ("accept", "application/json".to_owned()),
            (
                "content-type",
                "application/x-www-form-urlencoded".to_owned(),
            ),
        ];
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(form);
        match client.authentication.as_deref() {
            Some(method::BASIC) => {
                headers.push(("authorization", basic(&client.client_id, secret)));
            }
            Some(method::POST) => {
                body.append_pair("client_id", &client.client_id);
                body.append_pair("client_secret", secret);
            }
            Some(method::PRIVATE_KEY_JWT) => {
                let Some(key) = &self.options.signing_key else {
                    let why = "the authorization server wants assertions of the client; give its signing key";
                    return Err(LoginError::new(LoginStage::Options, why));
                };
                let now = self.mailbox.now();
                let assertion = jose::assertion(key, &client.client_id, self.issuer, now)?;
                body.append_pair("client_id", &client.client_id);
                body.append_pair("client_assertion_type", ASSERTION_TYPE);
                body.append_pair("client_assertion", &assertion);
            }
            _ => drop(body.append_pair("client_id", &client.client_id)),
        }
        Ok(OAuthRequest {
            method: "POST",
            url: url.to_owned(),
            headers,
            body: body.finish(),
        })
    }
}

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Parameters whose values no error repeats.
const SECRETS: [&str; 8] = [
    "assertion",
    "client_assertion",
    "code",
    "code_verifier",
    "device_code",
    "refresh_token",
    "subject_token",
    "token",
];

/// The error in a response of an authorization server, without these secrets of the request.
pub(super) fn refused(
    stage: LoginStage,
    response: &OAuthResponse,
    secrets: &[String],
) -> LoginError {
    let said: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let code = said["error"].as_str();
    // Such a code may come with any status.
    let is_trouble = matches!(code, Some("server_error" | "temporarily_unavailable"));
    let is_away = is_trouble || matches!(response.status, 408 | 429 | 500..);
    // Another answer may be that of a proxy on the way, or of a login page.
    let is_refusal = code.is_some() && matches!(response.status, 400 | 401);
    let error = match code {
        Some(code) => {
            let description = said["error_description"].as_str().unwrap_or_default();
            // Before they are cut: a secret that is cut is not recognised.
            let (code, description) = (without(code, secrets), without(description, secrets));
            LoginError::said(stage, "the authorization server", &code, &description)
        }
        None => {
            let todo = match is_away {
                true => "try again later",
                false if stage == LoginStage::Refresh => {
                    "ask its operator, or log out and log in again"
                }
                false => "ask its operator",
            };
            let status = response.status;
            let why = format!("the authorization server answered with status {status}; {todo}");
            LoginError::new(stage, why)
        }
    };
    match (is_away, is_refusal) {
        (true, _) => error.away(),
        (false, true) => error.refusal(),
        (false, false) => error,
    }
}

/// A text without these secrets. Very short ones stay: they occur in ordinary words.
fn without(text: &str, secrets: &[String]) -> String {
    let secrets = secrets.iter().filter(|secret| secret.len() >= 6);
    secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
}

/// How the client is to authenticate itself: as it was registered, or with what it has and the server
/// takes.
pub(super) fn authentication(
    client: &Registration,
    options: &LoginOptions,
    supported: Option<&[String]>,
) -> &'static str {
    let takes =
        |method: &str| supported.is_none_or(|supported| supported.iter().any(|own| own == method));
    let registered = client.authentication.as_deref();
    for own in [
        method::NONE,
        method::BASIC,
        method::POST,
        method::PRIVATE_KEY_JWT,
    ] {
        if registered == Some(own) {
            return own;
        }
    }
    match client.client_secret {
        _ if options.signing_key.is_some() => method::PRIVATE_KEY_JWT,
        None => method::NONE,
        // Some servers list one method, and mean the other; a list that has neither says nothing.
        Some(_) if takes(method::BASIC) || !takes(method::POST) => method::BASIC,
        Some(_) => method::POST,
    }
}
