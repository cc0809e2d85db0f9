//! Which client this program is at an authorization server (R-AUC-10).

use serde::Deserialize;
use serde_json::{Value, json};

use super::credentials::{Origin, Registration, document, method};
use super::error::{LoginError, LoginStage};
use super::flow::Flow;
use super::grants::DEVICE_CODE;
use super::guard::{Zone, check_shown};
use super::metadata::ServerMetadata;
use super::options::Grant;
use super::secret::Secret;
use super::steps::OAuthRequest;
use super::token::{authentication, refused};

const STAGE: LoginStage = LoginStage::Registration;
const AUTHORIZATION_CODE: &str = "authorization_code";

/// The answer of a registration endpoint (RFC 7591, section 3.2.1).
#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<Secret>,
    #[serde(default)]
    client_secret_expires_at: Option<Value>,
    token_endpoint_auth_method: Option<String>,
}

impl Flow {
    /// The client, and where the user's browser comes back to, if it does.
    pub(super) async fn client(
        &self,
        server: &ServerMetadata,
    ) -> Result<(Registration, String), LoginError> {
        let named = self.named(server)?;
        let stored = match &named {
            Some(_) => None,
            None => self.stored(server).await?,
        };
        let mut redirect_uri = String::new();
        if self.options.grant == Grant::AuthorizationCode {
            let known = stored
                .as_ref()
                .and_then(|it| it.redirect_uris.first().cloned());
            redirect_uri = self.mailbox.redirect_uri(known).await?;
            check_shown(&redirect_uri).map_err(|why| {
                LoginError::new(
                    LoginStage::Options,
                    format!("the redirect URI: {why}; give another"),
                )
            })?;
        }
        let stored = stored.filter(|client| {
            redirect_uri.is_empty() || client.redirect_uris.contains(&redirect_uri)
        });
        let mut client = match named.or(stored) {
            Some(client) => client,
            None => self.register(server, &redirect_uri).await?,
        };
        // The user is not asked in vain.
        self.is_pinned(&server.issuer).await?;
        let supported = server.token_endpoint_auth_methods_supported.as_deref();
        client.authentication = Some(authentication(&client, &self.options, supported).into());
        Ok((client, redirect_uri))
    }

    /// The client that the program names: registered by hand, or by a document.
    fn named(&self, server: &ServerMetadata) -> Result<Option<Registration>, LoginError> {
        let options = &self.options;
        if let Some(client_id) = &options.client_id {
            if let Some(issuer) = options.issuer.as_ref().filter(|own| **own != server.issuer) {
                let why = format!(
                    "the client is registered with {issuer}, and the server wants tokens of {}; register there, too, or leave out client_id",
                    super::error::quoted(&server.issuer)
                );
                return Err(LoginError::new(STAGE, why));
            }
            return Ok(Some(Registration {
                client_secret: options.client_secret.clone(),
                ..Registration::new(client_id)
            }));
        }
        let document = options.client_metadata_url.as_ref();
        let Some(url) = document.filter(|_| server.client_id_metadata_document_supported) else {
            return Ok(None);
        };
        let is_address = url::Url::parse(url)
            .is_ok_and(|parsed| parsed.scheme() == "https" && parsed.path() != "/");
        match is_address {
            true => Ok(Some(Registration::new(url))),
            false => {
                let why = "client_metadata_url is no https URL with a path";
                Err(LoginError::new(LoginStage::Options, why))
            }
        }
    }

    /// Where tokens came from, with the credentials that the program has for the client now: a secret may
    /// have been replaced since.
    pub(super) fn origin_of_now(&self, origin: &Origin) -> Origin {
        let mut origin = origin.clone();
        let options = &self.options;
        let is_own = options.client_id.as_ref() == Some(&origin.client.client_id)
            && options
                .issuer
                .as_ref()
                .is_none_or(|own| *own == origin.issuer);
        if !is_own {
            return origin;
        }
        let client = &mut origin.client;
        client.client_secret.clone_from(&options.client_secret);
        let before = client.authentication.take();
        client.authentication = match before.as_deref() {
            // Other ways to send the same secret are as good.
            Some(method::BASIC | method::POST)
                if client.client_secret.is_some() && options.signing_key.is_none() =>
            {
                before
            }
            _ => Some(authentication(client, options, None).into()),
        };
        origin
    }

    /// The registration of an earlier login with this authorization server.
    async fn stored(&self, server: &ServerMetadata) -> Result<Option<Registration>, LoginError> {
        let stored: Option<Registration> =
            document(&*self.store, &Registration::key(&server.issuer))
                .await
                .map_err(super::flow::of_store)?;
        let now = self.mailbox.now();
        Ok(stored.filter(|client| {
            let grant = client.grant.as_deref().unwrap_or(AUTHORIZATION_CODE);
            client.expires_at.is_none_or(|end| end > now)
                && Some(grant) == registered_grant(&self.options.grant)
        }))
    }

    /// Removes the registration that the authorization server refused, so that the next login registers
    /// anew. One that another process has made since stays.
    pub(super) async fn forget_registration(&self, origin: &Origin) -> Result<(), LoginError> {
        let key = Registration::key(&origin.issuer);
        let of_store = super::flow::of_store;
        let stored: Option<Registration> = document(&*self.store, &key).await.map_err(of_store)?;
        match stored {
            Some(stored) if stored.client_id == origin.client.client_id => {
                self.store.remove(&key).await.map_err(of_store)
            }
            _ => Ok(()),
        }
    }

    /// Registers the client (R-AUC-12).
    async fn register(
        &self,
        server: &ServerMetadata,
        redirect_uri: &str,
    ) -> Result<Registration, LoginError> {
        let options = &self.options;
        let Some(endpoint) = &server.registration_endpoint else {
            let why = format!(
                "{} has no registration for programs; register this one there by hand, and give its client_id",
                super::error::quoted(&server.issuer)
            );
            return Err(LoginError::new(STAGE, why));
        };
        let Some(grant) = registered_grant(&options.grant) else {
            let why = "a program without a user is registered by hand; give its client_id";
            return Err(LoginError::new(LoginStage::Options, why));
        };
        let supported = server.token_endpoint_auth_methods_supported.as_deref();
        let takes =
            |method: &&&str| supported.is_some_and(|all| all.iter().any(|own| own == **method));
        let offered = [method::NONE, method::BASIC, method::POST];
        let authentication = offered.iter().find(takes).unwrap_or(&method::NONE);
        let mut body = json!({
            "client_name": options.client_name,
            "application_type": application_type(redirect_uri),
            "grant_types": [grant, "refresh_token"],
            "token_endpoint_auth_method": authentication,
        });
        if options.grant == Grant::AuthorizationCode {
            body["redirect_uris"] = json!([redirect_uri]);
            body["response_types"] = json!(["code"]);
        }
        let request = OAuthRequest {
            method: "POST",
            url: endpoint.clone(),
            headers: vec![
                ("accept", "application/json".into()),
                ("content-type", "application/json".into()),
            ],
            body: body.to_string(),
        };
        let response = self.mailbox.send(STAGE, request).await?;
        if !matches!(response.status, 200 | 201) {
            return Err(refused(STAGE, &response, &[]));
        }
        let registered: Registered = serde_json::from_slice(&response.body).map_err(|_| {
            let why = "the registration endpoint's answer is no registration; register this program by hand, and give its client_id";
            LoginError::new(STAGE, why)
        })?;
        let ends = registered
            .client_secret_expires_at
            .and_then(|end| end.as_u64());
        let client = Registration {
            authentication: registered.token_endpoint_auth_method.or_else(|| {
                // It did not say: as it was asked for, unless that does not fit what it gave.
                let fits = registered.client_secret.is_none() || supported.is_some();
                fits.then(|| (*authentication).to_owned())
            }),
            client_secret: registered.client_secret,
            expires_at: ends.filter(|&end| end > 0),
            redirect_uris: vec![redirect_uri.to_owned()],
            grant: Some(grant.into()),
            ..Registration::new(registered.client_id)
        };
        let key = Registration::key(&server.issuer);
        self.mailbox.keeping(self.save(&key, &client)).await?;
        Ok(client)
    }
}

/// The grant that a client is registered for, if it registers itself.
fn registered_grant(grant: &Grant) -> Option<&'static str> {
    match grant {
        Grant::AuthorizationCode => Some(AUTHORIZATION_CODE),
        Grant::DeviceCode => Some(DEVICE_CODE),
        _ => None,
    }
}

/// The kind of application that a browser comes back to (R-AUC-12).
fn application_type(redirect_uri: &str) -> &'static str {
    let url = url::Url::parse(redirect_uri).ok();
    let is_local = url.is_none_or(|url| Zone::of_host(&url) == Some(Zone::Loopback));
    if is_local { "native" } else { "web" }
}
