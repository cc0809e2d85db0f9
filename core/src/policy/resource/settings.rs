//! A resource server as data.

use std::time::Duration;

use hmac_sha256::Hash;
use serde::Deserialize;

use super::{ProofUse, ResourceError, ResourceServer};
use crate::limits::millis;
use crate::policy::texts::Texts;

/// The member `resource` of a policy.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceSettings {
    url: String,
    issuers: Vec<Issuer>,
    #[serde(default)]
    audience: Texts,
    #[serde(default)]
    any_audience: bool,
    #[serde(default)]
    scopes: Vec<String>,
    leeway: Option<Millis>,
    cached_for: Option<Millis>,
    key_refresh: Option<Millis>,
    key_cooldown: Option<Millis>,
    proofs: Option<Proofs>,
    proof_age: Option<Millis>,
    proof_nonces: Option<ProofNonces>,
    name: Option<String>,
    documentation: Option<String>,
    #[serde(default)]
    root_certificates: Texts,
    proxy: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Issuer {
    Name(String),
    Told(ToldIssuer),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToldIssuer {
    issuer: String,
    jwks: Option<String>,
    introspection: Option<Endpoint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Endpoint {
    url: String,
    client_id: String,
    client_secret: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Proofs {
    Off,
    Accepted,
    Required,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProofNonces {
    secret: String,
    period: Millis,
}

/// A time as a number of milliseconds.
#[derive(Clone, Copy, Deserialize)]
struct Millis(#[serde(deserialize_with = "millis")] Duration);

impl ResourceSettings {
    /// # Errors
    /// As [`build`](super::ResourceServerBuilder::build).
    pub fn read(self) -> Result<ResourceServer, ResourceError> {
        let mut server = ResourceServer::new(self.url).scopes(self.scopes);
        for issuer in self.issuers {
            let told = match issuer {
                Issuer::Told(told) => told,
                Issuer::Name(issuer) => ToldIssuer {
                    issuer,
                    jwks: None,
                    introspection: None,
                },
            };
            server = server.issuer(told.issuer);
            if let Some(url) = told.jwks {
                server = server.jwks(url);
            }
            if let Some(endpoint) = told.introspection {
                let (id, secret) = (endpoint.client_id, endpoint.client_secret);
                server = server.introspection(endpoint.url, id, secret);
            }
        }
        for audience in self.audience.as_slice() {
            server = server.audience(audience);
        }
        if self.any_audience {
            server = server.any_audience();
        }
        if let Some(Millis(leeway)) = self.leeway {
            server = server.leeway(leeway);
        }
        if let Some(Millis(time)) = self.cached_for {
            server = server.cached_for(time);
        }
        let or =
            |time: Option<Millis>, seconds| time.map_or(Duration::from_secs(seconds), |it| it.0);
        server = server.key_times(or(self.key_refresh, 600), or(self.key_cooldown, 30));
        server = server.proofs(match self.proofs {
            None | Some(Proofs::Off) => ProofUse::Off,
            Some(Proofs::Accepted) => ProofUse::Accepted,
            Some(Proofs::Required) => ProofUse::Required,
        });
        if let Some(Millis(age)) = self.proof_age {
            server = server.proof_age(age);
        }
        if let Some(ProofNonces { secret, period }) = self.proof_nonces {
            if secret.len() < 32 {
                return Err(ResourceError::new(
                    "proofNonces: use a secret of 32 random characters or more",
                ));
            }
            server = server.proof_nonces(Hash::hash(secret.as_bytes()), period.0);
        }
        if let Some(name) = self.name {
            server = server.name(name);
        }
        if let Some(url) = self.documentation {
            server = server.documentation(url);
        }
        for pem in self.root_certificates.as_slice() {
            server = server.root_certificate(pem.as_bytes());
        }
        if let Some(url) = self.proxy {
            server = server.proxy(url);
        }
        server.build()
    }
}
