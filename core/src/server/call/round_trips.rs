//! Multi round-trip requests: asking the client in revisions where a server sends no requests
//! (2026-07-28).
//!
//! ```text
//!   call ─▶ handler asks ─▶ dropped; answer: what is asked, and a signed state
//!   call + answers + state ─▶ handler runs anew: what it asked before is there at once …
//! ```
//!
//! A handler is written as if it waited. It runs from its beginning in every round, so code before
//! a question runs again; the server keeps nothing between the rounds (R-MRT-11). A question is
//! identified by its name or, without one, by its position and a digest of its content. A handler
//! that asks something else in the second round therefore does not get the answer to the first
//! question.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use serde_json::Value;
use serde_json::value::RawValue;

use super::state_signer::{StateSigner, Unspent, context_of};
use crate::connection::{Call, ResultWriter};
use crate::handler::guarded::{Guarded, Outcome};
use crate::json::{reader, string};
use crate::mcp::{Era, ErrorKind, Method};
use crate::message::{Field, Message};

/// The error for a state that is forged, of another request, too old, or used.
const NOT_ACCEPTED: &str = "requestState is not for this request, or too old";

/// The error for params that cannot be digested, so that no state can be bound to them.
const UNREADABLE: &str = "the params of a call that asks its client are at most 127 levels deep, with numbers that a double holds";

/// The questions and answers of one call so far.
#[derive(Debug)]
pub(in crate::server) struct RoundTrips {
    signer: StateSigner,
    message: Message,
    method: Method,
    /// The caller, if known.
    principal: Option<Box<str>>,
    /// The state that the client has brought, as long as other processes may have accepted it.
    unspent: Option<Unspent>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The client's answers from this round and earlier ones: raw JSON by key.
    answers: BTreeMap<String, Box<RawValue>>,
    /// How many questions were asked in this round.
    asked: usize,
    /// The questions without an answer.
    open: Vec<Question>,
    /// The key of an answer that was not valid.
    fault: Option<String>,
    /// The waker of the handler's task.
    waker: Option<Waker>,
}

#[derive(Debug)]
struct Question {
    key: String,
    method: Method,
    params: Option<String>,
}

impl RoundTrips {
    /// Starts a round of a call; `None` for a call whose client cannot be asked in this way.
    ///
    /// # Errors
    /// A sentence for the client when the state or the answers are not valid (R-MRT-08, R-MRT-10,
    /// R-MRT-13).
    pub fn begin(
        call: &Call,
        signer: &StateSigner,
        principal: Option<&str>,
    ) -> Result<Option<Arc<Self>>, &'static str> {
        // R-MRT-01
        let (Some(method), Era::Stateless) = (call.method, call.reply.revision().era()) else {
            return Ok(None);
        };
        if !method.may_ask() {
            return Ok(None);
        }
        let view = call.message.as_ref();
        let declared = view.raw(Field::ClientCapabilities).unwrap_or("{}");
        if reader::members(declared).next().is_none() {
            return Ok(None);
        }
        let mut trips = Self {
            signer: signer.clone(),
            message: call.message.clone(),
            method,
            principal: principal.map(Into::into),
            unspent: None,
            state: Mutex::default(),
        };
        let params = view.params().unwrap_or("{}");
        let mut answers = BTreeMap::new();
        if let Some(signed) = reader::find(params, "requestState") {
            let signed = reader::as_str(signed).ok_or("requestState is a string")?;
            let context = trips.context().ok_or(UNREADABLE)?;
            let opened = signer.open(&context, &signed);
            let opened = opened.ok_or(NOT_ACCEPTED)?;
            let read = serde_json::from_str(&opened.payload);
            answers = read.map_err(|_| "requestState is not readable")?;
            trips.unspent = opened.unspent;
        }
        if let Some(given) = reader::find(params, "inputResponses") {
            let given: BTreeMap<String, Box<RawValue>> =
                serde_json::from_str(given).map_err(|_| "inputResponses is an object")?;
            if given.values().any(|answer| !answer.get().starts_with('{')) {
                return Err("each of the inputResponses is an object");
            }
            answers.extend(given);
        }
        trips.state().answers = answers;
        Ok(Some(Arc::new(trips)))
    }

    /// Spends the state that the client has brought, if other processes may have accepted it.
    ///
    /// # Errors
    /// Why the call is not to run.
    pub async fn spend_state(&self) -> Result<(), (ErrorKind, &'static str)> {
        let Some(unspent) = &self.unspent else {
            return Ok(());
        };
        match unspent.spend().await {
            Ok(true) => Ok(()),
            Ok(false) => Err((ErrorKind::InvalidParams, NOT_ACCEPTED)),
            Err(why) => {
                #[cfg(feature = "tracing")]
                tracing::warn!(%why, "states are not accepted while the store is away");
                #[cfg(not(feature = "tracing"))]
                let _ = why;
                let why = "nobody knows whether requestState was used before: try again later";
                Err((ErrorKind::Overloaded, why))
            }
        }
    }

    /// The capabilities that the client declared on this request: a JSON object.
    pub fn capabilities(&self) -> &str {
        self.message
            .as_ref()
            .raw(Field::ClientCapabilities)
            .unwrap_or("{}")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a digest of the caller and the request, without the members that belong to a round
    /// (R-MRT-09, R-ELI-12).
    ///
    /// `None` when the params cannot be read because they are nested too deeply; no state is issued
    /// for them.
    fn context(&self) -> Option<[u8; 32]> {
        let params = self.message.as_ref().params().unwrap_or("{}");
        let mut params: Value = serde_json::from_str(params).ok()?;
        if let Some(members) = params.as_object_mut() {
            for name in ["_meta", "requestState", "inputResponses"] {
                members.remove(name);
            }
        }
        let asked = serde_json::json!([params, self.principal]);
        Some(context_of(self.method.name(), &asked))
    }

    /// Returns the answer if there is one; otherwise ends the round and never returns. An answer
    /// that `read` does not accept ends the call.
    pub async fn ask<T, E>(
        &self,
        name: Option<&str>,
        method: Method,
        params: Option<String>,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> T {
        match self.answer(name, method, params, read) {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }

    fn answer<T, E>(
        &self,
        name: Option<&str>,
        method: Method,
        params: Option<String>,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let mut state = self.state();
        state.asked += 1;
        let words = Value::from(params.as_deref().unwrap_or_default());
        let [a, b, c, d, ..] = context_of(method.name(), &words);
        let numbered = || format!("{}-{:08x}", state.asked, u32::from_le_bytes([a, b, c, d]));
        let key = name.map_or_else(numbered, str::to_owned);
        match state.answers.get(&key).map(|answer| read(answer.get())) {
            Some(Ok(answer)) => return Some(answer),
            Some(Err(_)) => state.fault = Some(key),
            None => state.open.push(Question {
                key,
                method,
                params,
            }),
        }
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        None
    }

    /// Returns whether the round is over: a question has no answer, or an answer is not valid.
    pub fn is_over(&self, waker: &Waker) -> bool {
        let mut state = self.state();
        state.waker = Some(waker.clone());
        state.fault.is_some() || !state.open.is_empty()
    }

    /// Returns the key of an answer that was not valid.
    pub fn fault(&self) -> Option<String> {
        self.state().fault.clone()
    }

    /// Returns the signed state that the client sends back with the next round.
    ///
    /// # Errors
    /// A sentence for the client when the params cannot be digested, so that no state can be bound
    /// to this request.
    pub fn signed(&self) -> Result<String, &'static str> {
        let context = self.context().ok_or(UNREADABLE)?;
        let answers = serde_json::to_string(&self.state().answers).map_err(|_| UNREADABLE)?;
        Ok(self.signer.close(&context, &answers))
    }

    /// Writes the members of an `InputRequiredResult` (R-MRT-02, R-MRT-04).
    pub fn write(&self, result: &mut ResultWriter<'_>, signed: &str) {
        let state = self.state();
        result.result_type("\"input_required\"");
        result.with("inputRequests", |out| {
            for (i, question) in state.open.iter().enumerate() {
                out.push(if i == 0 { b'{' } else { b',' });
                string::append(out, &question.key);
                out.extend_from_slice(b":{\"method\":");
                string::append(out, question.method.name());
                if let Some(params) = &question.params {
                    out.extend_from_slice(b",\"params\":");
                    out.extend_from_slice(params.as_bytes());
                }
                out.push(b'}');
            }
            out.push(b'}');
        });
        result.string("requestState", signed);
    }
}

/// A handler future that resolves to `None` if its round ends first.
pub(in crate::server) struct Attended<T> {
    pub handler: Guarded<T>,
    pub round_trips: Option<Arc<RoundTrips>>,
}

impl<T> Future for Attended<T> {
    type Output = Option<Outcome<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Poll::Ready(outcome) = Pin::new(&mut this.handler).poll(cx) {
            return Poll::Ready(Some(outcome));
        }
        match &this.round_trips {
            Some(trips) if trips.is_over(cx.waker()) => Poll::Ready(None),
            _ => Poll::Pending,
        }
    }
}
