//! The course of a login, from what an MCP server asked for to tokens.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use url::Url;

use super::credentials::{DAMAGED_KEY, Origin, ServerCredentials, canonical, login_key};
use super::error::{LoginError, LoginStage};
use super::grants::Asked;
use super::guard::UrlGuard;
use super::jose::DpopKey;
use super::metadata::{Discovered, Discovery};
use super::occasion::Occasion;
use super::options::LoginOptions;
use super::pin::FirstUse;
use super::scopes::Scopes;
use super::steps::Mailbox;
use crate::store::CredentialStore;
use crate::tokens::{self, Refresh, TokenResponse, Tokens};

pub(super) struct Flow {
    pub mailbox: Mailbox,
    pub options: Arc<LoginOptions>,
    pub store: Arc<dyn CredentialStore>,
    pub guard: UrlGuard,
    /// The first use of the client's secret, until the authorization server accepts it.
    pub first_use: Mutex<Option<FirstUse>>,
}

impl Flow {
    pub(super) fn first_use(&self) -> MutexGuard<'_, Option<FirstUse>> {
        self.first_use
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub async fn run(self, occasion: Occasion) -> Result<ServerCredentials, LoginError> {
        let url = Url::parse(&occasion.url)
            .map_err(|_| LoginError::new(LoginStage::Options, "the server's URL is no URL"))?;
        if let Some(held) = &occasion.held
            && !occasion.is_step_up()
            && !occasion.is_refreshed
        {
            match self.refreshed(held).await? {
                Some(fresh) => return Ok(fresh),
                None if occasion.status == 0 => return Err(LoginError::login_needed()),
                None => {}
            }
        }
        // There is one login at a time: other processes take over what it gives.
        let lock = self.store.lock(&login_key(&url)).await;
        let _lock = lock.map_err(of_store)?;
        match self.taken_over(&occasion).await? {
            Some(credentials) => Ok(credentials),
            None => self.log_in(&url, &occasion).await,
        }
    }

    /// The credentials of a login by another process since this one last looked.
    async fn taken_over(
        &self,
        occasion: &Occasion,
    ) -> Result<Option<ServerCredentials>, LoginError> {
        let stored = ServerCredentials::load(&*self.store, &occasion.url).await;
        let Some(mut stored) = stored.map_err(of_store)? else {
            return Ok(None);
        };
        let held = occasion.held.as_ref();
        if held.is_some_and(|held| held.tokens.access_token == stored.tokens.access_token) {
            return Ok(None);
        }
        if occasion.is_step_up() {
            let scopes = Scopes::parse(stored.tokens.scope.as_deref().unwrap_or_default());
            let wanted = Scopes::parse(occasion.parameter("scope").unwrap_or_default());
            if wanted.is_empty() || !scopes.has_all(&wanted) {
                return Ok(None);
            }
        }
        if stored.tokens.wants_refresh(self.mailbox.now()) {
            return self.refreshed(&stored).await;
        }
        stored.is_refreshed = true;
        Ok(Some(stored))
    }

    /// Replaces an access token that has ended; `None` if a new login is needed.
    async fn refreshed(
        &self,
        held: &ServerCredentials,
    ) -> Result<Option<ServerCredentials>, LoginError> {
        let fresh = self.refresh(held).await;
        if !matches!(fresh, Ok(Some(_))) {
            // The secret was not accepted, and others need not wait for the login that follows.
            *self.first_use() = None;
        }
        fresh
    }

    async fn refresh(
        &self,
        held: &ServerCredentials,
    ) -> Result<Option<ServerCredentials>, LoginError> {
        let key = held.origin.tokens_key();
        let origin = self.origin_of_now(&held.origin);
        // Before the tokens are locked: a login that uses the secret first locks its tokens after it.
        let endpoint = self.endpoint(&origin).await?;
        let now = self.mailbox.now();
        let refresh = tokens::refresh(&self.store, &key, &held.tokens, now).await;
        let with = |tokens| ServerCredentials {
            asked: held.asked.clone(),
            is_refreshed: true,
            ..ServerCredentials::new(tokens, held.origin.clone())
        };
        let own = match refresh.map_err(of_store)? {
            Refresh::TakenOver(tokens) => return Ok(Some(with(tokens))),
            Refresh::LoginNeeded => return Ok(None),
            Refresh::Ask(own) => own,
        };
        let form = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", own.refresh_token()),
            ("resource", &*held.origin.resource),
        ];
        let key = own.tokens().dpop_key.as_deref();
        let dpop = key.and_then(DpopKey::read);
        if key.is_some() && dpop.is_none() {
            return Err(LoginError::new(LoginStage::Store, DAMAGED_KEY));
        }
        // A refresh binds nothing to a key that it does not have.
        if key.is_none() && self.options.dpop == Some(true) {
            return Ok(None);
        }
        let url = &origin.token_endpoint;
        // A stored document chose the URL; the guard applies to it all the same. A new login finds another.
        if self.guard.check(url).is_err() {
            return Ok(None);
        }
        let answer = endpoint.tokens(LoginStage::Refresh, url, &form, dpop.as_ref());
        match answer.await {
            Ok(response) => {
                let binding = self.binding(LoginStage::Refresh, &response, dpop.as_ref());
                let response = match &binding {
                    Ok(_) => response,
                    // The refresh token may be a new one, and is kept, with the key. The access token is not used.
                    Err(_) => TokenResponse {
                        expires_in: Some(0),
                        token_type: own.tokens().token_type.clone(),
                        ..response
                    },
                };
                let kept = async {
                    // The new tokens are valid even if they, or the pin, could not be kept.
                    let (tokens, _) = own.granted(response, self.mailbox.now()).await;
                    let _ = self.accepted().await;
                    tokens
                };
                let tokens = self.mailbox.keeping(kept).await;
                binding.map(|_| Some(with(tokens)))
            }
            Err(error) if error.is("invalid_grant") => {
                own.refused().await.map_err(of_store)?;
                Ok(None)
            }
            // The client is no longer known there.
            Err(error) if error.is("invalid_client") || error.is("unauthorized_client") => {
                self.forget_registration(&held.origin).await?;
                Ok(None)
            }
            Err(error) if error.is_refusal() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn log_in(
        &self,
        url: &Url,
        occasion: &Occasion,
    ) -> Result<ServerCredentials, LoginError> {
        let discovery = Discovery {
            mailbox: &self.mailbox,
            guard: self.guard,
        };
        let held = occasion.held.as_ref();
        let preferred = self
            .options
            .issuer
            .as_deref()
            .or(held.map(ServerCredentials::issuer));
        let discovered = discovery
            .run(url, occasion.parameter("resource_metadata"), preferred)
            .await?;
        let scopes = self.scopes(&discovered, occasion)?;
        let (client, redirect_uri) = self.client(&discovered.server).await?;
        let origin = Origin {
            version: Origin::version(),
            issuer: discovered.server.issuer.clone(),
            resource: match &discovered.resource {
                Some(metadata) => metadata.resource.clone(),
                None => canonical(url),
            },
            url: Some(canonical(url)),
            client,
            token_endpoint: discovered.server.token_endpoint()?.to_owned(),
            revocation_endpoint: discovered.server.revocation_endpoint.clone(),
            reach: self.guard.reach,
        };
        let key = match self.wants_dpop(&discovered, occasion) {
            true => Some(DpopKey::generate()?),
            false => None,
        };
        let asked = Asked {
            discovered: &discovered,
            origin: &origin,
            redirect_uri: &redirect_uri,
            scopes: &scopes,
            key: key.as_ref(),
        };
        let response = match self.granted(&asked).await {
            Err(error) if error.is("invalid_client") || error.is("unauthorized_client") => {
                self.forget_registration(&origin).await?;
                return Err(error);
            }
            answer => answer?,
        };
        let tokens = self.taken(response, &scopes, key.as_ref())?;
        let mut credentials = ServerCredentials {
            asked: scopes,
            ..ServerCredentials::new(tokens, origin)
        };
        let kept = async {
            let kept = credentials.keep(&*self.store, &occasion.url).await;
            kept.map_err(of_store)?;
            self.accepted().await
        };
        self.mailbox.keeping(kept).await?;
        Ok(credentials)
    }

    /// The key that the tokens of an answer are bound to, if they are. Refuses those that are of no use.
    fn binding(
        &self,
        stage: LoginStage,
        response: &TokenResponse,
        key: Option<&DpopKey>,
    ) -> Result<Option<String>, LoginError> {
        let kind = response.token_type.to_ascii_lowercase();
        let bound = match (&*kind, key) {
            ("bearer", _) => None,
            ("dpop", Some(key)) => Some(key.document().to_owned()),
            _ => {
                let why = format!(
                    "the token endpoint answered with a token of the type {}, which this client cannot use; ask its operator",
                    super::error::quoted(&response.token_type)
                );
                return Err(LoginError::new(stage, why));
            }
        };
        if self.options.dpop == Some(true) && bound.is_none() {
            let why = "the authorization server does not bind tokens to a key; leave out dpop to use tokens without";
            return Err(LoginError::new(stage, why));
        }
        Ok(bound)
    }

    /// The tokens of an answer.
    fn taken(
        &self,
        response: TokenResponse,
        scopes: &Scopes,
        key: Option<&DpopKey>,
    ) -> Result<Tokens, LoginError> {
        let bound = self.binding(LoginStage::Token, &response, key)?;
        let mut tokens = Tokens::new(response, self.mailbox.now());
        tokens.dpop_key = bound;
        // Left out, it is as asked (RFC 6749, section 5.1).
        tokens.scope = tokens.scope.or_else(|| scopes.text());
        Ok(tokens)
    }

    /// The scopes to ask for (R-AUC-15, R-AUC-16, R-AUC-17).
    fn scopes(&self, discovered: &Discovered, occasion: &Occasion) -> Result<Scopes, LoginError> {
        let mut scopes = Scopes::default();
        let challenged = occasion.parameter("scope").map(Scopes::parse);
        let challenged = challenged.unwrap_or_default();
        if let Some(held) = occasion.held.as_ref().filter(|_| occasion.is_step_up()) {
            if held.asked.has_all(&challenged) && !held.asked.is_empty() || challenged.is_empty() {
                let scope = challenged.text().unwrap_or_default();
                let why = format!(
                    "the server still refuses after a login that asked for its scopes ({scope}); the user may not have them"
                );
                return Err(LoginError::new(LoginStage::StepUp, why));
            }
            scopes.add(held.tokens.scope.as_deref().unwrap_or_default().split(' '));
            scopes.add(held.asked.iter());
        }
        match &discovered.resource {
            Some(metadata) if challenged.is_empty() => {
                scopes.add(metadata.scopes_supported.iter().map(|scope| &**scope));
            }
            _ => scopes.add(challenged.iter()),
        }
        scopes.add(self.options.scopes.iter().map(|scope| &**scope));
        let offline = "offline_access";
        let offers = discovered
            .server
            .scopes_supported
            .iter()
            .any(|own| own == offline);
        // Alone it would replace the scopes that the server gives by default.
        if offers && self.options.grant.has_user() && !scopes.is_empty() {
            scopes.add([offline]);
        }
        Ok(scopes)
    }

    /// Whether the tokens are to be bound to a key.
    fn wants_dpop(&self, discovered: &Discovered, occasion: &Occasion) -> bool {
        self.options.dpop.unwrap_or_else(|| {
            let has = |scheme: &str| occasion.challenges.iter().any(|it| it.is(scheme));
            let resource = discovered.resource.as_ref();
            let algorithms = &discovered.server.dpop_signing_alg_values_supported;
            let offered = algorithms.iter().any(|own| own == "ES256");
            resource.is_some_and(|metadata| metadata.dpop_bound_access_tokens_required)
                || has("dpop") && (offered || !has("bearer"))
        })
    }

    /// Keeps a document.
    pub(super) async fn save(
        &self,
        key: &str,
        document: &impl Serialize,
    ) -> Result<(), LoginError> {
        let text = serde_json::to_string(document).map_err(io::Error::other);
        match text {
            Ok(text) => self.store.save(key, &text).await.map_err(of_store),
            Err(error) => Err(of_store(error)),
        }
    }
}

pub(super) fn of_store(error: io::Error) -> LoginError {
    LoginError::new(LoginStage::Store, super::error::quoted(&error.to_string()))
}
