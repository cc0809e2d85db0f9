//! Options of one call of an action.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::set;
use crate::client::{ActionCall, BreakerPolicy, Client, RetryPolicy};

/// Options of one call of an action; they are explained at [`ActionCall`].
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the call they set")]
pub struct ActionSettings<T> {
    pub tool: Option<String>,
    pub context: Option<String>,
    pub metadata: Option<Value>,
    pub timeout: Option<T>,
    #[serde(default)]
    pub streamed: bool,
    pub retry: Option<RetrySettings<T>>,
    pub breaker: Option<BreakerSettings<T>>,
    pub fallback: Option<FallbackAction>,
}

/// How transient failures are retried: see [`RetryPolicy`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the policy they set")]
pub struct RetrySettings<T> {
    pub tries: Option<u32>,
    pub base: Option<T>,
    pub longest: Option<T>,
}

/// When the circuit breaker opens: see [`BreakerPolicy`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the members are those of the policy they set")]
pub struct BreakerSettings<T> {
    pub failures: Option<u32>,
    pub pause: Option<T>,
}

/// The action to call if the first one fails; it is given as a pair of its name and its params.
#[derive(Deserialize)]
pub struct FallbackAction(pub String, pub Box<RawValue>);

impl<T: Copy + Into<Duration>> ActionSettings<T> {
    /// Makes a call of an action with these options, and with the fallback if there is one.
    pub fn call(&self, client: &Client, name: &str, params: &RawValue) -> ActionCall {
        let call = self.one(client, name, params);
        match &self.fallback {
            Some(FallbackAction(name, params)) => call.or(self.one(client, name, params)),
            None => call,
        }
    }

    fn one(&self, client: &Client, name: &str, params: &RawValue) -> ActionCall {
        let mut call = client.action(name, &params);
        if let Some(tool) = &self.tool {
            call = call.tool(tool);
        }
        if let Some(context) = &self.context {
            call = call.context(context);
        }
        if let Some(metadata) = &self.metadata {
            call = call.metadata(metadata);
        }
        if let Some(timeout) = self.timeout {
            call = call.timeout(timeout.into());
        }
        if self.streamed {
            call = call.streamed();
        }
        if let Some(given) = &self.retry {
            let mut retry = RetryPolicy::default();
            set(&mut retry.tries, given.tries);
            set(&mut retry.base, given.base);
            set(&mut retry.longest, given.longest);
            call = call.retry(retry);
        }
        if let Some(given) = &self.breaker {
            let mut breaker = BreakerPolicy::default();
            set(&mut breaker.failures, given.failures);
            set(&mut breaker.pause, given.pause);
            call = call.breaker(breaker);
        }
        call
    }
}
