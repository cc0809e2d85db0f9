//! Logins of a client.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::io::login::{
    Authorization, FileStore, Grant, IdentityProvider, LoginError, LoginOptions, Secret, SigningKey,
};

/// How a client logs in; the members are explained at [`LoginOptions`] and [`Authorization`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the options they set")]
pub struct LoginSettings<T> {
    pub client_name: String,
    #[serde(default)]
    pub grant: GrantName,
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    pub issuer: Option<String>,
    pub signing_key: Option<SigningKeySettings>,
    pub client_metadata_url: Option<String>,
    #[serde(default)]
    pub scopes: Vec<String>,
    pub dpop: Option<bool>,
    #[serde(default)]
    pub allows_private_addresses: bool,
    /// Only for `enterprise`.
    pub identity_provider: Option<IdentityProviderSettings>,
    /// How long the user or the program may take.
    pub timeout: Option<T>,
    #[serde(default)]
    pub store: StoreSettings,
}

/// The name of a [`Grant`].
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "see the grants")]
pub enum GrantName {
    #[default]
    Code,
    Device,
    ClientCredentials,
    Workload,
    Enterprise,
}

/// A private key: see [`SigningKey`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the key")]
pub struct SigningKeySettings {
    pub pem: Secret,
    pub algorithm: String,
    pub key_id: Option<String>,
}

/// The identity provider of an enterprise: see [`IdentityProvider`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the provider")]
pub struct IdentityProviderSettings {
    pub token_endpoint: String,
    pub client_id: String,
    pub client_secret: Option<Secret>,
}

/// Where credentials are kept: `"memory"`, `"user"` or `{"folder": PATH}`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StoreSettings {
    /// Until the process ends.
    #[default]
    Memory,
    /// In the user's own folder, which programs share.
    User,
    /// In this folder.
    Folder(PathBuf),
}

impl<T: Into<Duration>> LoginSettings<T> {
    /// The logins that are described.
    ///
    /// # Errors
    /// When the key cannot be read, members contradict each other, or there is no folder for the user's
    /// credentials.
    pub fn authorization(self) -> io::Result<Authorization> {
        let options = LoginOptions {
            grant: granted(self.grant, self.identity_provider)?,
            client_id: self.client_id,
            client_secret: self.client_secret,
            issuer: self.issuer,
            signing_key: self.signing_key.map(SigningKeySettings::read).transpose()?,
            client_metadata_url: self.client_metadata_url,
            scopes: self.scopes,
            dpop: self.dpop,
            allows_private_addresses: self.allows_private_addresses,
            ..LoginOptions::new(self.client_name)
        };
        if options.client_id.is_none()
            && (options.client_secret.is_some() || options.issuer.is_some())
        {
            return Err(wrong(
                "clientSecret and issuer belong to a clientId; add it",
            ));
        }
        let authorization = Authorization::new(options);
        let authorization = match self.store {
            StoreSettings::Memory => authorization,
            StoreSettings::User => authorization.with_store(FileStore::of_the_user()?),
            StoreSettings::Folder(folder) => authorization.with_store(FileStore::at(folder)),
        };
        Ok(match self.timeout {
            Some(timeout) => authorization.with_timeout(timeout.into()),
            None => authorization,
        })
    }
}

impl SigningKeySettings {
    fn read(self) -> io::Result<SigningKey> {
        let key = SigningKey::from_pem(self.pem.expose().as_bytes(), &self.algorithm);
        let key = key.map_err(|error: LoginError| io::Error::other(error))?;
        Ok(match self.key_id {
            Some(key_id) => key.with_key_id(key_id),
            None => key,
        })
    }
}

fn granted(name: GrantName, provider: Option<IdentityProviderSettings>) -> io::Result<Grant> {
    Ok(match (name, provider) {
        (GrantName::Code, None) => Grant::AuthorizationCode,
        (GrantName::Device, None) => Grant::DeviceCode,
        (GrantName::ClientCredentials, None) => Grant::ClientCredentials,
        (GrantName::Workload, None) => Grant::WorkloadJwt,
        (GrantName::Enterprise, Some(provider)) => Grant::EnterpriseManaged(IdentityProvider {
            token_endpoint: provider.token_endpoint,
            client_id: provider.client_id,
            client_secret: provider.client_secret,
        }),
        (GrantName::Enterprise, None) => {
            return Err(wrong("the grant enterprise needs an identityProvider"));
        }
        (_, Some(_)) => {
            return Err(wrong(
                "an identityProvider is only for the grant enterprise",
            ));
        }
    })
}

fn wrong(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
