//! How an access token is got: the grants.

use serde_json::Value;
use url::form_urlencoded;

use super::credentials::{Origin, Registration, method};
use super::error::{LoginError, LoginStage};
use super::flow::Flow;
use super::guard::check_shown;
use super::jose::{self, DpopKey};
use super::metadata::{Discovered, ServerMetadata};
use super::options::{Grant, IdentityProvider};
use super::scopes::Scopes;
use super::steps::{AssertionRequest, AuthorizationPage};
use super::token::{Endpoint, Form};
use crate::encoding::with_parameters;
use crate::jwk::sha256_base64url;
use crate::tokens::TokenResponse;

pub(super) const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// What the grants need to know.
pub(super) struct Asked<'a> {
    pub discovered: &'a Discovered,
    pub origin: &'a Origin,
    pub redirect_uri: &'a str,
    pub scopes: &'a Scopes,
    pub key: Option<&'a DpopKey>,
}

impl Flow {
    /// Asks for tokens as the grant says.
    pub(super) async fn granted(&self, asked: &Asked<'_>) -> Result<TokenResponse, LoginError> {
        match &self.options.grant {
            Grant::AuthorizationCode => self.by_code(asked).await,
            Grant::DeviceCode => self.by_device(asked).await,
            Grant::ClientCredentials => {
                self.ask(asked, vec![("grant_type", "client_credentials")])
                    .await
            }
            Grant::WorkloadJwt => {
                let assertion = self.assertion(asked).await?;
                self.by_assertion(asked, &assertion).await
            }
            Grant::EnterpriseManaged(provider) => {
                let id_token = self.assertion(asked).await?;
                let grant = self.exchange(asked, provider, &id_token).await?;
                self.by_assertion(asked, &grant).await
            }
        }
    }

    /// Asks the token endpoint, for the scopes and the server that the tokens are for (R-AUC-08).
    pub(super) async fn ask<'f>(
        &self,
        asked: &'f Asked<'_>,
        mut form: Form<'f>,
    ) -> Result<TokenResponse, LoginError> {
        let scope = asked.scopes.text().unwrap_or_default();
        let is_code = form
            .iter()
            .any(|(name, _)| matches!(*name, "code" | "device_code"));
        if !scope.is_empty() && !is_code {
            form.push(("scope", &scope));
        }
        form.push(("resource", &asked.origin.resource));
        let endpoint = self.endpoint(asked.origin).await?;
        let url = &asked.origin.token_endpoint;
        endpoint
            .tokens(LoginStage::Token, url, &form, asked.key)
            .await
    }

    /// The client at the authorization server of `origin`, which may have its secret.
    pub(super) async fn endpoint<'a>(
        &'a self,
        origin: &'a Origin,
    ) -> Result<Endpoint<'a>, LoginError> {
        self.entrust(origin).await?;
        Ok(self.client_at(&origin.client, &origin.issuer))
    }

    fn client_at<'a>(&'a self, client: &'a Registration, issuer: &'a str) -> Endpoint<'a> {
        Endpoint {
            mailbox: &self.mailbox,
            options: &self.options,
            client,
            issuer,
        }
    }

    async fn assertion(&self, asked: &Asked<'_>) -> Result<String, LoginError> {
        let request = AssertionRequest {
            issuer: asked.origin.issuer.clone(),
            resource: asked.origin.resource.clone(),
        };
        self.mailbox.assertion(request).await
    }

    /// By an assertion about whom the token is for (RFC 7523, section 2.1).
    async fn by_assertion(
        &self,
        asked: &Asked<'_>,
        assertion: &str,
    ) -> Result<TokenResponse, LoginError> {
        let form = vec![("grant_type", JWT_BEARER), ("assertion", assertion)];
        self.ask(asked, form).await
    }

    /// Has the identity provider vouch for the user: an ID token is exchanged for a grant (RFC 8693).
    async fn exchange(
        &self,
        asked: &Asked<'_>,
        provider: &IdentityProvider,
        id_token: &str,
    ) -> Result<String, LoginError> {
        let wrong = |why: &str| LoginError::new(LoginStage::Token, why);
        check_shown(&provider.token_endpoint).map_err(|why| {
            LoginError::new(
                LoginStage::Options,
                format!("the identity provider: {why}; give another token_endpoint"),
            )
        })?;
        let mut client = Registration {
            client_secret: provider.client_secret.clone(),
            ..Registration::new(&provider.client_id)
        };
        client.authentication = Some(match client.client_secret {
            Some(_) => method::BASIC.into(),
            None => method::NONE.into(),
        });
        let scope = asked.scopes.text().unwrap_or_default();
        let mut form = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("audience", &*asked.origin.issuer),
            ("resource", &asked.origin.resource),
            ("subject_token", id_token),
            ("subject_token_type", ID_TOKEN),
        ];
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let url = &provider.token_endpoint;
        let endpoint = self.client_at(&client, url);
        let response = endpoint.answer(LoginStage::Token, url, &form, None).await?;
        let said: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        if said["issued_token_type"] != ID_JAG {
            return Err(wrong(
                "the identity provider did not answer with an id-jag; ask its operator",
            ));
        }
        let grant = said["access_token"].as_str();
        grant.map(str::to_owned).ok_or_else(|| {
            wrong("the identity provider's answer has no access_token; ask its operator")
        })
    }

    /// By the user's consent in a browser, with PKCE (R-AUC-07).
    async fn by_code(&self, asked: &Asked<'_>) -> Result<TokenResponse, LoginError> {
        const STAGE: LoginStage = LoginStage::Authorization;
        let server = &asked.discovered.server;
        let methods = server.code_challenge_methods_supported.as_ref();
        let has_pkce = match methods {
            Some(methods) => methods.iter().any(|method| method == "S256"),
            None => asked.discovered.is_first_revision(),
        };
        if !has_pkce {
            let why = "the authorization server does not offer PKCE with S256, without which a stolen code could be used; ask its operator";
            return Err(LoginError::new(STAGE, why));
        }
        let Some(page) = &server.authorization_endpoint else {
            let why = "the authorization server's metadata has no authorization_endpoint; log in on another device, or ask its operator";
            return Err(LoginError::new(LoginStage::Discovery, why));
        };
        let (verifier, state) = (jose::random()?, jose::random()?);
        let challenge = sha256_base64url(verifier.as_bytes());
        let client_id = &asked.origin.client.client_id;
        let scope = asked.scopes.text().unwrap_or_default();
        let thumbprint = asked.key.map(DpopKey::thumbprint).unwrap_or_default();
        let mut query = vec![
            ("response_type", "code"),
            ("client_id", client_id),
            ("redirect_uri", asked.redirect_uri),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &asked.origin.resource),
        ];
        if !scope.is_empty() {
            query.push(("scope", &scope));
        }
        if asked.scopes.has("offline_access") {
            // Without it, OpenID Connect ignores that scope (Core, section 11).
            query.push(("prompt", "consent"));
        }
        if !thumbprint.is_empty() {
            query.push(("dpop_jkt", thumbprint));
        }
        let page = AuthorizationPage {
            url: with_parameters(page, query),
            redirect_uri: asked.redirect_uri.to_owned(),
            state: state.clone(),
        };
        let callback = self.mailbox.authorize(page).await?;
        let code = code(server, &state, &callback)?;
        let form = vec![
            ("grant_type", "authorization_code"),
            ("code", &*code),
            ("redirect_uri", asked.redirect_uri),
            ("code_verifier", &verifier),
        ];
        self.ask(asked, form).await
    }
}

/// The code with which the browser came back (R-AUC-14, R-AUC-18).
fn code(server: &ServerMetadata, state: &str, callback: &str) -> Result<String, LoginError> {
    const STAGE: LoginStage = LoginStage::Authorization;
    let wrong = |why: &str| LoginError::new(STAGE, why);
    let query = callback
        .split_once('?')
        .map_or(callback, |(_, query)| query);
    let query = query.split('#').next().unwrap_or_default();
    let parameters: Vec<_> = form_urlencoded::parse(query.as_bytes()).take(64).collect();
    let get = |name: &str| {
        let mut all = parameters.iter().filter(|(own, _)| own == name);
        match (all.next(), all.next()) {
            (Some(_), Some(_)) => Err(wrong(
                "the browser came back with a parameter twice; log in again",
            )),
            (one, _) => Ok(one.map(|(_, value)| &**value)),
        }
    };
    if get("state")? != Some(state) {
        return Err(wrong(
            "the browser came back from another login (state); log in again",
        ));
    }
    match get("iss")? {
        // Compared letter by letter: another server's answer must not be taken for this one's (RFC 9207).
        Some(issuer) if issuer != server.issuer => {
            let (said, asked) = (
                super::error::quoted(issuer),
                super::error::quoted(&server.issuer),
            );
            let why = format!(
                "the answer is from {said}, and {asked} was asked (iss); log in again, and consent to nothing else meanwhile"
            );
            return Err(LoginError::new(STAGE, why));
        }
        None if server.authorization_response_iss_parameter_supported => {
            let why = "the answer does not say who it is from (iss), which this authorization server promises to; ask its operator";
            return Err(wrong(why));
        }
        _ => {}
    }
    if let Some(error) = get("error")? {
        let description = get("error_description")?.unwrap_or_default();
        let whose = "the authorization server";
        return Err(LoginError::said(STAGE, whose, error, description));
    }
    let code = get("code")?.filter(|code| !code.is_empty());
    code.map(str::to_owned)
        .ok_or_else(|| wrong("the browser came back without a code; log in again"))
}
