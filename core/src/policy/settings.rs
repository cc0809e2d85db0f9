//! A policy as data, for configuration files and other languages.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde::de::Error as _;

use super::clients::{self, KeyOwner};
#[cfg(feature = "consent-proxy")]
use super::consent::ConsentSettings;
#[cfg(feature = "jwt")]
use super::jwt_settings::TokenChecks;
use super::per_client::{Quotas, Rates};
#[cfg(feature = "resource-server")]
use super::resource::ResourceSettings;
use super::scopes::Scopes;
use super::verifier::Verifier;
use super::{AuditQueue, Permissions, Policy, Redaction, WhenFull};
use crate::limits::{MAX_AUDIT_EVENTS, Quota, Rate, millis};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Settings {
    permissions: Option<Permissions>,
    rate: Option<Rate>,
    quota: Option<Quota>,
    tool_timeout: Option<Millis>,
    timeouts: BTreeMap<String, Millis>,
    secrets: Vec<String>,
    audit_arguments: bool,
    audit_to_tracing: bool,
    audit_queue: Option<Queue>,
    keys: Option<BTreeMap<String, KeyOwner>>,
    #[cfg(feature = "jwt")]
    jwt: Option<TokenChecks>,
    #[cfg(not(feature = "jwt"))]
    jwt: Option<serde::de::IgnoredAny>,
    scopes: BTreeMap<String, Vec<String>>,
    resource_scopes: BTreeMap<String, Vec<String>>,
    prompt_scopes: BTreeMap<String, Vec<String>>,
    implied_scopes: BTreeMap<String, Vec<String>>,
    filter_lists: bool,
    #[cfg(feature = "resource-server")]
    resource: Option<ResourceSettings>,
    #[cfg(not(feature = "resource-server"))]
    resource: Option<serde::de::IgnoredAny>,
    #[cfg(feature = "consent-proxy")]
    consent_proxy: Option<ConsentSettings>,
    #[cfg(not(feature = "consent-proxy"))]
    consent_proxy: Option<serde::de::IgnoredAny>,
    verifier_timeout: Option<Millis>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Queue {
    events: usize,
    when_full: WhenFull,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            events: MAX_AUDIT_EVENTS,
            when_full: WhenFull::default(),
        }
    }
}

/// A time as a number of milliseconds.
#[derive(Deserialize)]
struct Millis(#[serde(deserialize_with = "millis")] Duration);

impl Policy {
    /// Reads a policy from a JSON object. Every member is optional:
    ///
    /// | member | value |
    /// |---|---|
    /// | `permissions` | [`Permissions`] |
    /// | `rate` | `burst` and `perSecond` |
    /// | `quota` | `calls`, and `period` in milliseconds |
    /// | `toolTimeout` | milliseconds, for every tool |
    /// | `timeouts` | milliseconds by tool |
    /// | `secrets` | texts to be masked |
    /// | `auditArguments`, `auditToTracing` | booleans |
    /// | `auditQueue` | `events`, `whenFull` (`wait`, `drop`, `refuse`): [`audit_queue`](Self::audit_queue) |
    /// | `scopes`, `promptScopes` | lists of required scopes, by tool or prompt |
    /// | `resourceScopes` | lists of required scopes, by pattern of URIs |
    /// | `impliedScopes` | lists of narrower scopes, by the broader one |
    /// | `filterLists` | whether lists omit what the caller lacks scopes for: [`filter_lists`](Self::filter_lists) |
    /// | `resource` | a resource server of OAuth; needs the feature `resource-server` |
    /// | `consentProxy` | a consent proxy, in place of `resource`; needs the feature `consent-proxy` |
    /// | `keys` | by API key: `client` and its `scopes` |
    /// | `verifierTimeout` | milliseconds: [`verifier_timeout`](Self::verifier_timeout) |
    /// | `jwt` | signed tokens; needs the feature `jwt` |
    ///
    /// Clients are [verified](Self::verifier) by `keys`, by `jwt`, or by either of them. `jwt` has an
    /// `algorithm` of [`JwtAlgorithm`](super::JwtAlgorithm) and a `key` (the secret, or the public key
    /// in PEM), or `keys`: such pairs by their `kid`. It also has the `issuer` and the `audience`, each
    /// a text or a list of texts, unless `anyIssuer` or `anyAudience` is true.
    ///
    /// `resource` is a `ResourceServer`: its `url`, and its `issuers`, each the name of an authorization server or
    /// an object with `issuer`, and `jwks` (a URL) or `introspection` (`url`, `clientId` and `clientSecret`).
    /// Optional are `scopes`, `audience` (a text or a list), `anyAudience`, `name`, `documentation`, `proofs`
    /// (`off`, `accepted` or `required`), `proofNonces` (a `secret` and a `period`), the times `leeway`,
    /// `cachedFor`, `keyRefresh`, `keyCooldown` and `proofAge` in milliseconds, `rootCertificates` (PEM) and
    /// `proxy` (a URL, or an empty text for none).
    ///
    /// `consentProxy` is a `ConsentProxy`: its `issuer`, `resource` and `secret`, and the `upstream` with
    /// `authorizationEndpoint`, `tokenEndpoint` and `clientId`. Optional are `name`, `scopes`, `redirectHosts`,
    /// `tokenLifetime` and `refreshLifetime` in milliseconds, and of `upstream` `clientSecret`, `issuer`,
    /// `revocationEndpoint`, `scopes` and `parameters` (texts by name).
    ///
    /// ```
    /// use mcpbolt::policy::Policy;
    /// let policy = Policy::from_json(r#"{
    ///     "permissions": {"tools": {"allowed": ["search"]}},
    ///     "rate": {"burst": 20, "perSecond": 5},
    ///     "timeouts": {"search": 2000},
    ///     "keys": {"k-1f9a": {"client": "alice", "scopes": ["files:read"]}},
    ///     "scopes": {"search": ["files:read"]}
    /// }"#)?;
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a member is unknown or has a wrong value.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        let said: Settings = serde_json::from_str(json)?;
        #[cfg(feature = "jwt")]
        let tokens = said.jwt.map(TokenChecks::read).transpose()?;
        #[cfg(feature = "jwt")]
        let by_token = tokens
            .clone()
            .map(|tokens| Verifier::new(move |it| tokens.verify(it)));
        #[cfg(not(feature = "jwt"))]
        let by_token: Option<Verifier> = match said.jwt {
            Some(_) => {
                return Err(serde_json::Error::custom(
                    "`jwt` needs the feature of that name",
                ));
            }
            None => None,
        };
        #[cfg(not(feature = "resource-server"))]
        if said.resource.is_some() {
            return Err(serde_json::Error::custom(
                "`resource` needs the feature `resource-server`",
            ));
        }
        #[cfg(not(feature = "consent-proxy"))]
        if said.consent_proxy.is_some() {
            return Err(serde_json::Error::custom(
                "`consentProxy` needs the feature `consent-proxy`",
            ));
        }
        let policy = Self {
            rates: said.rate.map(|rate| Rates::new(rate).into()),
            quotas: said.quota.map(|quota| Quotas::new(quota).into()),
            verifier: clients::verifier(said.keys, by_token)?,
            #[cfg(feature = "jwt")]
            tokens,
            scopes: Scopes {
                tools: said.scopes,
                prompts: said.prompt_scopes,
                resources: said.resource_scopes,
                implied: said.implied_scopes,
                filter_lists: said.filter_lists,
            },
            verifier_timeout: said.verifier_timeout.map(|Millis(time)| time),
            permissions: said.permissions,
            tool_timeout: said.tool_timeout.map(|Millis(time)| time),
            timeouts: said
                .timeouts
                .into_iter()
                .map(|(tool, Millis(time))| (tool, time))
                .collect(),
            keeps_arguments: said.audit_arguments,
            traces: said.audit_to_tracing,
            queue: said
                .audit_queue
                .map(|it| AuditQueue::new(it.events, it.when_full)),
            redaction: said
                .secrets
                .into_iter()
                .fold(Redaction::new(), Redaction::secret),
            ..Self::new()
        };
        #[cfg(feature = "consent-proxy")]
        if let Some(proxy) = said.consent_proxy {
            if said.resource.is_some() {
                let why =
                    "`consentProxy` and `resource` are two ways to say who issues tokens: give one";
                return Err(serde_json::Error::custom(why));
            }
            let wrong = |why: &dyn std::fmt::Display| {
                serde_json::Error::custom(format!("`consentProxy`: {why}"))
            };
            let proxy = proxy.read().map_err(|why| wrong(&why))?;
            return policy.consent_proxy(proxy).map_err(|why| wrong(&why));
        }
        #[cfg(feature = "resource-server")]
        if let Some(resource) = said.resource {
            let wrong = |why| serde_json::Error::custom(format!("`resource`: {why}"));
            return Ok(policy.resource(resource.read().map_err(wrong)?));
        }
        Ok(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_or_refused() {
        let policy = Policy::from_json(
            r#"{"rate":{"burst":1,"perSecond":1},"quota":{"calls":9,"period":1000},"toolTimeout":50,"timeouts":{"a":7},"secrets":["x"],"permissions":{"maxToolExecutionTime":20}}"#,
        )
        .unwrap();
        assert!(policy.has_rates() && policy.has_quotas() && policy.has_limits());
        assert_eq!(policy.limit("a"), Some(Duration::from_millis(7)));
        assert_eq!(policy.limit("b"), Some(Duration::from_millis(20)));
        assert_eq!(policy.redaction.text("x"), "***");
        let empty = Policy::from_json("{}").unwrap();
        assert!(!empty.has_rates() && !empty.has_limits() && !empty.audits());
        for wrong in [
            "[1]",
            r#"{"auditQueue":{"whenFull":"burst"}}"#,
            r#"{"rates":{}}"#,
            r#"{"rate":{"burst":-1,"perSecond":1}}"#,
            r#"{"quota":{"calls":9}}"#,
            r#"{"keys":{"k":"alice"}}"#,
            r#"{"keys":{"":{"client":"alice"}}}"#,
            r#"{"keys":{"k":{"scopes":[]}}}"#,
            r#"{"scopes":{"write":"notes:write"}}"#,
            r#"{"jwt":{"algorithm":"none","key":"s"}}"#,
            r#"{"jwt":{"algorithm":"HS256","key":""}}"#,
            r#"{"jwt":{"algorithm":"RS256","key":"s"}}"#,
            r#"{"jwt":{"algorithm":"HS256"}}"#,
            r#"{"jwt":{"algorithm":"HS256","key":"1234567890123456789012345678901","issuer":"a","audience":"b"}}"#,
            r#"{"jwt":{"algorithm":"HS256","key":"12345678901234567890123456789012","audience":"b"}}"#,
            r#"{"jwt":{"algorithm":"HS256","key":"12345678901234567890123456789012","issuer":"a"}}"#,
            r#"{"jwt":{"keys":{"k":{"algorithm":"HS256","key":"short"}},"anyIssuer":true,"anyAudience":true}}"#,
            r#"{"jwt":{"anyIssuer":true,"anyAudience":true}}"#,
        ] {
            assert!(Policy::from_json(wrong).is_err(), "{wrong}");
        }
    }
}
