//! The program's verifier of credentials, a function of JavaScript. The engine awaits its verdict.

use std::borrow::Cow;
use std::sync::Arc;

use mcpbolt::connection::{Principal, Rejection};
use mcpbolt::policy::{Credentials, Policy};
use napi::bindgen_prelude::Function;
use serde::Deserialize;

use crate::awaited::AwaitedQuestions;
use crate::error::Result;
use crate::json::quote;

type Verdict = std::result::Result<Principal, Rejection>;

/// The verdict when the function gives none: it throws, returns something else, or JavaScript has ended.
const FAILED: Rejection =
    Rejection::Unavailable(Cow::Borrowed("the verification of the credentials failed"));
/// The verdict on credentials that the program does not accept.
const REFUSED: Rejection = Rejection::Refused(Cow::Borrowed("the credentials are not accepted"));

/// Passes credentials to JavaScript, `{number, kind, secret, certificate}`, which gives its verdict by [`end`](Self::end). The
/// policy bounds how many verifications are in progress.
#[derive(Clone)]
pub struct Verifier(Arc<AwaitedQuestions<Verdict>>);

/// The principal that JavaScript returns.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Granted {
    name: String,
    #[serde(default)]
    scopes: Vec<String>,
    expires_at: Option<f64>,
    bound_key: Option<String>,
    bound_certificate: Option<String>,
}

impl Granted {
    fn principal(self) -> Principal {
        let mut principal = Principal::new(self.name).with_scopes(self.scopes);
        if let Some(end) = self.expires_at {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturates"
            )]
            let end = end as u64;
            principal = principal.with_expiry(end);
        }
        if let Some(key) = self.bound_key {
            principal = principal.bound_to_key(key);
        }
        if let Some(certificate) = self.bound_certificate {
            principal = principal.bound_to_certificate(certificate);
        }
        principal
    }
}

impl Verifier {
    /// A verifier that calls `verify`, which does not keep the process alive.
    pub fn new(verify: &Function<'_, String, ()>) -> Result<Self> {
        AwaitedQuestions::new(verify).map(Self)
    }

    /// Has the policy verify clients by this verifier.
    pub fn of(&self, policy: Policy) -> Policy {
        let questions = self.0.clone();
        policy.async_verifier(move |credentials| {
            let verdict = questions.ask(&question(credentials));
            async move { verdict.await.unwrap_or(Err(FAILED)) }
        })
    }

    /// Gives a verdict, unless nobody waits for it.
    pub fn end(&self, number: u32, granted: Option<&str>, failed: bool) {
        let granted = granted.map(serde_json::from_str::<Granted>);
        let (granted, failed) = match granted.transpose() {
            Ok(granted) => (granted, failed),
            Err(_) => (None, true),
        };
        let principal = granted.map(Granted::principal);
        let rejection = if failed { FAILED } else { REFUSED };
        self.0.answer(number, principal.ok_or(rejection));
    }
}

/// The credentials, as members of JSON.
fn question(credentials: &Credentials<'_>) -> String {
    let (kind, members) = match credentials {
        Credentials::Bearer(token) => ("bearer", vec![("secret", *token)]),
        Credentials::ApiKey(key) => ("apiKey", vec![("secret", *key)]),
        Credentials::Basic { user, password } => {
            ("basic", vec![("user", *user), ("secret", *password)])
        }
        Credentials::Certificate(der) => {
            return format!("\"kind\":\"certificate\",\"certificate\":{der:?}");
        }
        _ => ("none", Vec::new()),
    };
    let mut question = format!("\"kind\":\"{kind}\"");
    for (name, value) in members {
        question.push_str(",\"");
        question.push_str(name);
        question.push_str("\":");
        quote(&mut question, value);
    }
    question
}
