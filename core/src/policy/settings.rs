//! A policy as data, as configuration files and other languages have it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::clients::{self, Client, Tokens};
use super::{Permissions, Policy, Redaction};
use crate::limits::{Quota, Rate};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Settings {
    permissions: Option<Permissions>,
    rate: Option<PerSecond>,
    quota: Option<PerPeriod>,
    tool_timeout: Option<u64>,
    timeouts: BTreeMap<String, u64>,
    secrets: Vec<String>,
    audit_arguments: bool,
    audit_to_tracing: bool,
    keys: Option<BTreeMap<String, Client>>,
    jwt: Option<Tokens>,
    scopes: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PerSecond {
    burst: u32,
    per_second: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PerPeriod {
    calls: u64,
    period: u64,
}

impl Policy {
    /// That of a JSON object: `permissions`; `rate` with `burst` and `perSecond`; `quota` with
    /// `calls` and the `period` in milliseconds; `toolTimeout`, and `timeouts` by tool, in
    /// milliseconds; `secrets` to be masked; `auditArguments` and `auditToTracing`; `scopes` that
    /// tools take, by tool. Every member may be left out.
    ///
    /// Who asks is [verified](Self::verifier) by API keys, by signed tokens, or by either: `keys` are
    /// objects by the key, with the `client` and its `scopes`; `jwt` has the `algorithm` (`HS256`,
    /// `RS256` or `ES256`), the `key` (the secret, or the public key in PEM), `issuer` and `audience`, and
    /// needs the feature of that name.
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
    /// When a member is not known, or not what it must be.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        let said: Settings = serde_json::from_str(json)?;
        let timeouts = said.timeouts.into_iter();
        let mut bounded = Self::new();
        if let Some(PerSecond { burst, per_second }) = said.rate {
            bounded = bounded.rate(Rate { burst, per_second });
        }
        if let Some(PerPeriod { calls, period }) = said.quota {
            let period = Duration::from_millis(period);
            bounded = bounded.quota(Quota { calls, period });
        }
        Ok(Self {
            verifier: clients::verifier(said.keys, said.jwt)?,
            scopes: said.scopes,
            permissions: said.permissions,
            tool_timeout: said.tool_timeout.map(Duration::from_millis),
            timeouts: timeouts
                .map(|(tool, ms)| (tool, Duration::from_millis(ms)))
                .collect(),
            keeps_arguments: said.audit_arguments,
            traces: said.audit_to_tracing,
            redaction: said
                .secrets
                .into_iter()
                .fold(Redaction::new(), Redaction::secret),
            ..bounded
        })
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
        ] {
            assert!(Policy::from_json(wrong).is_err(), "{wrong}");
        }
    }
}
