//! A consent proxy beside a server on HTTP.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::{SettingsError, set};
use crate::io::http::{ConsentProxy, ConsentProxyOptions, Upstream};

/// Options of a consent proxy; they are explained at [`ConsentProxyOptions`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the options they set")]
pub struct ConsentSettings<T> {
    pub issuer: String,
    pub resource: String,
    pub secret: String,
    pub upstream: UpstreamSettings,
    pub name: Option<String>,
    pub scopes: Option<Vec<String>>,
    pub redirect_hosts: Option<Vec<String>>,
    pub token_lifetime: Option<T>,
    pub refresh_lifetime: Option<T>,
}

/// An identity provider: see [`Upstream`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the options they set")]
pub struct UpstreamSettings {
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub client_id: String,
    pub revocation_endpoint: Option<String>,
    pub issuer: Option<String>,
    pub client_secret: Option<String>,
    pub scopes: Option<Vec<String>>,
    #[serde(default)]
    pub parameters: std::collections::BTreeMap<String, String>,
}

impl<T: Into<Duration>> ConsentSettings<T> {
    /// The proxy.
    ///
    /// # Errors
    /// When an option is wrong; the error says which.
    pub fn proxy(self) -> Result<Arc<ConsentProxy>, SettingsError> {
        let said = self.upstream;
        let mut upstream = Upstream::new(
            said.authorization_endpoint,
            said.token_endpoint,
            said.client_id,
        );
        upstream.revocation_endpoint = said.revocation_endpoint;
        upstream.issuer = said.issuer;
        upstream.client_secret = said.client_secret;
        set(&mut upstream.scopes, said.scopes);
        upstream.parameters = said.parameters.into_iter().collect();
        let mut options = ConsentProxyOptions::new(self.issuer, self.resource, upstream);
        set(&mut options.name, self.name);
        set(&mut options.scopes, self.scopes);
        set(&mut options.redirect_hosts, self.redirect_hosts);
        let seconds = |time: T| time.into().as_secs();
        set(
            &mut options.token_lifetime,
            self.token_lifetime.map(seconds),
        );
        set(
            &mut options.refresh_lifetime,
            self.refresh_lifetime.map(seconds),
        );
        let proxy = ConsentProxy::new(options, self.secret.as_bytes());
        proxy
            .map(Arc::new)
            .map_err(|why| SettingsError::at("consentProxy", why))
    }
}
