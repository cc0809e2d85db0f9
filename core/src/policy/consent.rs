//! A consent proxy as the issuer of a server's tokens.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcpbolt_oauth::proxy::{ConsentProxy, ConsentProxyError, ConsentProxyOptions, Upstream};
use mcpbolt_oauth::server::KeySet;
use serde::Deserialize;

use super::{Policy, ResourceError, ResourceServer};
use crate::limits::millis;

impl Policy {
    /// Makes the server a [resource server](ResourceServer) whose tokens a consent proxy issues: an
    /// authorization server at the same address, in front of an identity provider that knows no registration of
    /// clients. Over HTTP, the proxy's paths are answered beside the endpoint.
    ///
    /// A [verifier](Self::verifier) of the policy verifies all credentials other than tokens.
    ///
    /// # Errors
    /// When the proxy's resource or issuer is no URL of a resource server or an issuer.
    pub fn consent_proxy(mut self, proxy: Arc<ConsentProxy>) -> Result<Self, ResourceError> {
        let keys = KeySet::parse(proxy.keys().as_bytes()).map_err(ResourceError::new)?;
        let resource = ResourceServer::new(proxy.resource())
            .issuer(proxy.issuer())
            .keys(keys)
            .leeway(Duration::from_secs(proxy.rules().leeway))
            .build()?;
        self.consent = Some(proxy);
        Ok(self.resource(resource))
    }

    /// The consent proxy that issues the server's tokens.
    pub(crate) fn issuer(&self) -> Option<&Arc<ConsentProxy>> {
        self.consent.as_ref()
    }
}

/// The member `consentProxy` of a policy. Its members are those of [`ConsentProxyOptions`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConsentSettings {
    issuer: String,
    resource: String,
    secret: String,
    upstream: UpstreamSettings,
    name: Option<String>,
    #[serde(default)]
    scopes: Vec<String>,
    #[serde(default)]
    redirect_hosts: Vec<String>,
    token_lifetime: Option<Millis>,
    refresh_lifetime: Option<Millis>,
}

#[derive(Deserialize)]
struct Millis(#[serde(deserialize_with = "millis")] Duration);

/// See [`Upstream`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UpstreamSettings {
    authorization_endpoint: String,
    token_endpoint: String,
    client_id: String,
    revocation_endpoint: Option<String>,
    issuer: Option<String>,
    client_secret: Option<String>,
    scopes: Option<Vec<String>>,
    #[serde(default)]
    parameters: BTreeMap<String, String>,
}

impl ConsentSettings {
    /// # Errors
    /// When an option is wrong; the error says which.
    pub fn read(self) -> Result<Arc<ConsentProxy>, ConsentProxyError> {
        let said = self.upstream;
        let mut upstream = Upstream::new(
            said.authorization_endpoint,
            said.token_endpoint,
            said.client_id,
        );
        upstream.revocation_endpoint = said.revocation_endpoint;
        upstream.issuer = said.issuer;
        upstream.client_secret = said.client_secret;
        upstream.scopes = said.scopes.unwrap_or(upstream.scopes);
        upstream.parameters = said.parameters.into_iter().collect();
        let mut options = ConsentProxyOptions::new(self.issuer, self.resource, upstream);
        options.name = self.name.unwrap_or(options.name);
        options.scopes = self.scopes;
        options.redirect_hosts = self.redirect_hosts;
        let seconds = |time: Option<Millis>| time.map(|Millis(time)| time.as_secs());
        options.token_lifetime = seconds(self.token_lifetime).unwrap_or(options.token_lifetime);
        options.refresh_lifetime =
            seconds(self.refresh_lifetime).unwrap_or(options.refresh_lifetime);
        ConsentProxy::new(options, self.secret.as_bytes()).map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Credentials;

    const SETTINGS: &str = r#"{"consentProxy": {
        "issuer": "https://api.example", "resource": "https://api.example/mcp",
        "secret": "a secret that is 32 bytes or more", "scopes": ["files:read"], "tokenLifetime": 60000,
        "upstream": {"authorizationEndpoint": "https://login.example/a", "tokenEndpoint": "https://login.example/t",
            "clientId": "one", "clientSecret": "two", "parameters": {"access_type": "offline"}}},
        "keys": {"k-1f9a": {"client": "alice"}}}"#;

    #[test]
    fn tokens_are_the_proxys_and_other_credentials_the_verifiers() {
        let policy = Policy::from_json(SETTINGS).unwrap();
        let key = policy.verify(&Credentials::ApiKey("k-1f9a")).unwrap();
        assert_eq!(key.as_str(), "key:alice");
        assert!(
            policy.has_token_source(),
            "the proxy's tokens are not the verifier's"
        );
        let policy = policy.verifier(|_| Err("no"));
        assert!(
            policy.has_token_source(),
            "nor those of one that is set later"
        );
        let document = policy.resource_document().unwrap();
        assert!(
            document.contains(r#""authorization_servers":["https://api.example"]"#),
            "{document}"
        );
        assert!(
            policy
                .issuer()
                .is_some_and(|proxy| proxy.serves("/authorize"))
        );
        let shown = format!("{policy:?}");
        assert!(
            !shown.contains("two") && !shown.contains("32 bytes"),
            "{shown}"
        );

        let wrong = SETTINGS.replace("a secret that is 32 bytes or more", "short");
        let why = Policy::from_json(&wrong).unwrap_err().to_string();
        assert!(
            why.starts_with("`consentProxy`: the secret has fewer than 32 bytes"),
            "{why}"
        );
        assert!(Policy::from_json(&SETTINGS.replace("tokenLifetime", "lifetime")).is_err());
    }
}
