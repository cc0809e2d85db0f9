//! The program's verifier of credentials, a function of JavaScript. The engine awaits its verdict.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hashbrown::HashMap;
use mcpbolt::connection::{Principal, Rejection};
use mcpbolt::policy::{Credentials, Policy};
use napi::Status;
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::oneshot;

use crate::error::{Result, misuse};

type Verdict = std::result::Result<Principal, Rejection>;
type Tell = ThreadsafeFunction<String, (), String, Status, false, true, 0>;

/// The verdict when the function gives none: it throws, returns something else, or JavaScript has ended.
const FAILED: Rejection =
    Rejection::Unavailable(Cow::Borrowed("the verification of the credentials failed"));
/// The verdict on credentials that the program does not accept.
const REFUSED: Rejection = Rejection::Refused(Cow::Borrowed("the credentials are not accepted"));

/// Passes credentials to JavaScript as JSON, `{number, kind, secret, certificate}`, which gives its verdict by
/// [`end`](Self::end); `{number}` alone if nobody waits for that verdict any more.
pub struct Verifier {
    tell: Tell,
    waiting: Mutex<Waiting>,
}

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

/// The verifications in progress. The policy bounds how many there are.
#[derive(Default)]
struct Waiting {
    last: u32,
    verdicts: HashMap<u32, oneshot::Sender<Verdict>>,
}

impl Verifier {
    /// A verifier that calls `verify`, which does not keep the process alive.
    pub fn new(verify: &Function<'_, String, ()>) -> Result<Arc<Self>> {
        let tell = verify.build_threadsafe_function::<String>().weak::<true>();
        Ok(Arc::new(Self {
            tell: tell.build().map_err(misuse)?,
            waiting: Mutex::default(),
        }))
    }

    /// Has the policy verify clients by this verifier.
    pub fn of(self: &Arc<Self>, policy: Policy) -> Policy {
        let this = self.clone();
        policy.async_verifier(move |credentials| this.begin(credentials))
    }

    fn begin(self: &Arc<Self>, credentials: &Credentials<'_>) -> Verification {
        let (sender, verdict) = oneshot::channel();
        let number = {
            let mut waiting = self.lock();
            waiting.last = waiting.last.wrapping_add(1);
            let number = waiting.last;
            waiting.verdicts.insert(number, sender);
            number
        };
        let mut brought = match credentials {
            Credentials::Bearer(token) => json!({ "kind": "bearer", "secret": token }),
            Credentials::ApiKey(key) => json!({ "kind": "apiKey", "secret": key }),
            Credentials::Basic { user, password } => {
                json!({ "kind": "basic", "user": user, "secret": password })
            }
            Credentials::Certificate(der) => json!({ "kind": "certificate", "certificate": der }),
            _ => json!({ "kind": "none" }),
        };
        brought["number"] = number.into();
        self.say(number, brought.to_string());
        Verification {
            verdict,
            number,
            verifier: self.clone(),
        }
    }

    /// Without JavaScript's event loop, there is no verdict.
    fn say(&self, number: u32, json: String) {
        let status = self
            .tell
            .call(json, ThreadsafeFunctionCallMode::NonBlocking);
        if status != Status::Ok {
            self.lock().verdicts.remove(&number);
        }
    }

    /// Gives a verdict, unless nobody waits for it.
    pub fn end(&self, number: u32, granted: Option<&str>, failed: bool) {
        let sender = self.lock().verdicts.remove(&number);
        let granted = granted.map(serde_json::from_str::<Granted>);
        let (granted, failed) = match granted.transpose() {
            Ok(granted) => (granted, failed),
            Err(_) => (None, true),
        };
        let principal = granted.map(Granted::principal);
        let rejection = if failed { FAILED } else { REFUSED };
        if let Some(sender) = sender {
            drop(sender.send(principal.ok_or(rejection)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Every critical section leaves the map whole, also when it panics.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The verdict to come. Dropping it cancels the verification.
struct Verification {
    verdict: oneshot::Receiver<Verdict>,
    number: u32,
    verifier: Arc<Verifier>,
}

impl Future for Verification {
    type Output = Verdict;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Verdict> {
        let verdict = Pin::new(&mut self.verdict).poll(cx);
        verdict.map(|verdict| verdict.unwrap_or(Err(FAILED)))
    }
}

impl Drop for Verification {
    fn drop(&mut self) {
        let number = self.number;
        let abandoned = self.verifier.lock().verdicts.remove(&number);
        if abandoned.is_some() {
            let json = json!({ "number": number }).to_string();
            self.verifier.say(number, json);
        }
    }
}
