//! Discovery: the metadata of the MCP server (RFC 9728) and of its authorization server (RFC 8414, OpenID
//! Connect Discovery).

use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::error::{LoginError, LoginStage, quoted};
use super::guard::{UrlGuard, check_shown, shown};
use super::steps::{Mailbox, OAuthRequest};

/// The revision that requests for metadata name (R-AUC-02).
const PROTOCOL_VERSION: &str = "2025-11-25";

/// Most redirects that are followed for one document.
const MAX_REDIRECTS: usize = 3;

/// The metadata of an MCP server.
#[derive(Debug, Deserialize)]
pub(super) struct ResourceMetadata {
    /// The server's identifier, exactly as it was written (R-AUC-08).
    pub resource: String,
    #[serde(default)]
    pub authorization_servers: Vec<String>,
    #[serde(default)]
    pub scopes_supported: Vec<String>,
    #[serde(default)]
    pub dpop_bound_access_tokens_required: bool,
}

/// The metadata of an authorization server.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ServerMetadata {
    pub issuer: String,
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: Option<String>,
    pub registration_endpoint: Option<String>,
    pub device_authorization_endpoint: Option<String>,
    pub revocation_endpoint: Option<String>,
    #[serde(default)]
    pub scopes_supported: Vec<String>,
    pub code_challenge_methods_supported: Option<Vec<String>>,
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    pub dpop_signing_alg_values_supported: Vec<String>,
}

impl ServerMetadata {
    pub fn token_endpoint(&self) -> Result<&str, LoginError> {
        let missing = "the authorization server's metadata has no token_endpoint; ask its operator";
        self.token_endpoint
            .as_deref()
            .ok_or_else(|| LoginError::new(LoginStage::Discovery, missing))
    }

    /// Refuses endpoints that must not be used.
    fn check(&self, guard: UrlGuard) -> Result<(), LoginError> {
        let wrong = |name: &str, why| {
            let why = format!("the authorization server's {name}: {why}; ask its operator");
            LoginError::new(LoginStage::Discovery, why)
        };
        for (name, endpoint) in [
            ("token_endpoint", &self.token_endpoint),
            ("registration_endpoint", &self.registration_endpoint),
            (
                "device_authorization_endpoint",
                &self.device_authorization_endpoint,
            ),
            ("revocation_endpoint", &self.revocation_endpoint),
        ] {
            if let Some(endpoint) = endpoint {
                guard.check(endpoint).map_err(|why| wrong(name, why))?;
            }
        }
        if let Some(page) = &self.authorization_endpoint {
            check_shown(page).map_err(|why| wrong("authorization_endpoint", why))?;
        }
        Ok(())
    }
}

/// What is known about an MCP server before a login.
#[derive(Debug)]
pub(super) struct Discovered {
    /// `None` if the server has no such metadata, as in 2025-03-26.
    pub resource: Option<ResourceMetadata>,
    pub server: ServerMetadata,
}

impl Discovered {
    /// Whether this is a server of 2025-03-26, which is its own authorization server.
    pub fn is_first_revision(&self) -> bool {
        self.resource.is_none()
    }
}

pub(super) struct Discovery<'a> {
    pub mailbox: &'a Mailbox,
    pub guard: UrlGuard,
}

impl Discovery<'_> {
    /// Finds out who gives tokens for the server at `url`. `hint` is the address of the metadata in the
    /// server's challenge, `issuer` the authorization server to choose if there are several.
    pub async fn run(
        &self,
        url: &Url,
        hint: Option<&str>,
        issuer: Option<&str>,
    ) -> Result<Discovered, LoginError> {
        let Some(resource) = self.resource(url, hint).await? else {
            let server = self.first_revision(url).await?;
            return Ok(Discovered {
                resource: None,
                server,
            });
        };
        let servers = &resource.authorization_servers;
        let named = servers.iter().find(|own| Some(&***own) == issuer);
        let Some(chosen) = named.or(servers.first()) else {
            let why = "the server's metadata names no authorization server; ask its operator";
            return Err(LoginError::new(LoginStage::Resource, why));
        };
        let server = self.server(chosen).await?;
        Ok(Discovered {
            server,
            resource: Some(resource),
        })
    }

    /// The metadata of the MCP server (R-AUC-03, R-AUC-04).
    async fn resource(
        &self,
        url: &Url,
        hint: Option<&str>,
    ) -> Result<Option<ResourceMetadata>, LoginError> {
        const STAGE: LoginStage = LoginStage::Resource;
        if let Some(hint) = hint {
            let document = self.document(STAGE, hint).await?;
            let resource = document.map_err(|why| {
                LoginError::new(
                    STAGE,
                    format!(
                        "the metadata that the challenge names: {why}; ask the server's operator"
                    ),
                )
            })?;
            return checked(url, resource).map(Some);
        }
        let mut places = vec![well_known(url, "oauth-protected-resource")];
        if url.path() != "/" || url.query().is_some() {
            places.push(at_root(url, "oauth-protected-resource"));
        }
        for place in places {
            if let Ok(resource) = self.document(STAGE, &place).await? {
                return checked(url, resource).map(Some);
            }
        }
        Ok(None)
    }

    /// The metadata of the authorization server of that issuer (R-AUC-05, R-AUC-06).
    async fn server(&self, issuer: &str) -> Result<ServerMetadata, LoginError> {
        const STAGE: LoginStage = LoginStage::Discovery;
        let url = self.guard.check(issuer);
        let url = url.map_err(|why| {
            LoginError::new(
                STAGE,
                format!("the authorization server's issuer: {why}; ask the MCP server's operator"),
            )
        })?;
        let mut places = vec![
            well_known(&url, "oauth-authorization-server"),
            well_known(&url, "openid-configuration"),
        ];
        if url.path() != "/" {
            let issuer = issuer.trim_end_matches('/');
            places.push(format!("{issuer}/.well-known/openid-configuration"));
        }
        let mut last = String::new();
        for place in places {
            match self.document::<ServerMetadata>(STAGE, &place).await? {
                Ok(server) if server.issuer == issuer => {
                    server.check(self.guard)?;
                    return Ok(server);
                }
                Ok(server) => {
                    let (said, asked) = (quoted(&server.issuer), quoted(issuer));
                    let why = format!(
                        "its metadata says that the issuer is {said}, where {asked} was asked; they must be equal, letter by letter; ask its operator"
                    );
                    return Err(LoginError::new(STAGE, why));
                }
                Err(why) => last = why,
            }
        }
        let why = format!("{} has no metadata: {last}; ask its operator", shown(&url));
        Err(LoginError::new(STAGE, why))
    }

    /// The MCP server as its own authorization server: metadata at the root, or else default paths
    /// (R-AUC-02).
    async fn first_revision(&self, url: &Url) -> Result<ServerMetadata, LoginError> {
        let origin = url.origin().ascii_serialization();
        let place = at_root(url, "oauth-authorization-server");
        let found = self.document(LoginStage::Discovery, &place).await?;
        let server: ServerMetadata = found.unwrap_or_else(|_| ServerMetadata {
            issuer: origin.clone(),
            authorization_endpoint: Some(format!("{origin}/authorize")),
            token_endpoint: Some(format!("{origin}/token")),
            registration_endpoint: Some(format!("{origin}/register")),
            ..ServerMetadata::default()
        });
        if server.issuer.trim_end_matches('/') != origin {
            let said = quoted(&server.issuer);
            let why = format!(
                "the metadata of {origin} says that the issuer is {said}; ask its operator"
            );
            return Err(LoginError::new(LoginStage::Discovery, why));
        }
        server.check(self.guard)?;
        Ok(server)
    }

    /// Gets a document. What was wrong with one that is not there, or is no such document, is the inner
    /// error. A server that is overloaded or broken says nothing about what is there.
    async fn document<T: DeserializeOwned>(
        &self,
        stage: LoginStage,
        url: &str,
    ) -> Result<Result<T, String>, LoginError> {
        let mut url = url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let checked = self.guard.check(&url);
            let wrong = |why| LoginError::new(stage, format!("{why}; ask the server's operator"));
            let checked = checked.map_err(wrong)?;
            let request = OAuthRequest {
                method: "GET",
                url: url.clone(),
                headers: vec![
                    ("accept", "application/json".into()),
                    ("mcp-protocol-version", PROTOCOL_VERSION.into()),
                ],
                body: String::new(),
            };
            let response = self.mailbox.send(stage, request).await?;
            let status = response.status;
            let place = shown(&checked);
            if matches!(status, 301 | 302 | 303 | 307 | 308) {
                let to = response.header("location");
                let Some(to) = to.and_then(|to| checked.join(to).ok()) else {
                    return Ok(Err(format!("{place} redirects to no URL")));
                };
                url = to.into();
                continue;
            }
            if matches!(status, 408 | 429 | 500..) {
                let why = format!("{place} answered with status {status}; try again later");
                return Err(LoginError::new(stage, why));
            }
            if status != 200 {
                return Ok(Err(format!("{place} answered with status {status}")));
            }
            let document = serde_json::from_slice(&response.body);
            return Ok(
                document.map_err(|error| quoted(&format!("{place} is no such document: {error}")))
            );
        }
        Ok(Err("it redirects on and on".to_owned()))
    }
}

/// Refuses metadata of another server: what it names is where the token may be used.
fn checked(url: &Url, metadata: ResourceMetadata) -> Result<ResourceMetadata, LoginError> {
    let covers = Url::parse(&metadata.resource).is_ok_and(|resource| {
        let (own, of) = (url.path(), resource.path().trim_end_matches('/'));
        let rest = own.strip_prefix(of);
        resource.origin() == url.origin()
            && resource.fragment().is_none()
            && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    match covers {
        true => Ok(metadata),
        false => {
            let (said, asked) = (quoted(&metadata.resource), shown(url));
            let why = format!(
                "the metadata is that of {said}, not of {asked}: a token for the one must not be sent to the other; connect to the URL that the metadata names"
            );
            Err(LoginError::new(LoginStage::Resource, why))
        }
    }
}

/// The address of a document between the host and the path of `url`.
fn well_known(url: &Url, name: &str) -> String {
    let path = url.path().trim_end_matches('/');
    let query = url
        .query()
        .map_or(String::new(), |query| format!("?{query}"));
    format!("{}{path}{query}", at_root(url, name))
}

fn at_root(url: &Url, name: &str) -> String {
    format!("{}/.well-known/{name}", url.origin().ascii_serialization())
}
