//! The messages of chains that middleware of the program sees: each crosses to JavaScript as JSON, and what becomes of it
//! comes back.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcpbolt::chain::{
    ChainNotification, ChainRequest, ChainResponse, Handoff, HandoffEvent, HandoffInterests,
    RelayDirection, refusal,
};
use mcpbolt::error::{PeerError, RequestError};
use mcpbolt::mcp::{ErrorKind, Revision};
use napi::Status;
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;

use crate::error::{self, Failure, Result, internal, misuse};
use crate::json::{self, quote};
use crate::panics;

/// The most messages that one turn of the event loop takes.
const DRAIN: usize = 256;

type Tell = ThreadsafeFunction<(), (), (), Status, false, true, 0>;

/// Messages on their way to JavaScript.
struct Queue {
    state: Mutex<Waiting>,
    tell: Tell,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<(u32, HandoffEvent)>,
    /// Whether JavaScript has been woken.
    is_told: bool,
    is_closed: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, Waiting> {
        // Every critical section leaves the queue whole, also when it panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, middleware: u32, event: HandoffEvent) {
        let mut state = self.state();
        if state.is_closed {
            drop(state);
            return drop(event);
        }
        state.events.push_back((middleware, event));
        if !std::mem::replace(&mut state.is_told, true) {
            drop(state);
            // Fails only while JavaScript's environment is torn down.
            self.tell.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }
}

/// A message, by the number of its middleware and its own.
type Key = (u32, u64);

/// A request that JavaScript has.
struct Held {
    request: ChainRequest,
    answer: Option<std::result::Result<ChainResponse, RequestError>>,
}

/// The middleware of the program in the chains of one front, and the messages that it has.
#[napi]
pub struct Handoffs {
    queue: Arc<Queue>,
    handoffs: Vec<Arc<Handoff>>,
    requests: HashMap<Key, Held>,
    notifications: HashMap<Key, ChainNotification>,
}

/// What has come for a middleware.
#[napi(object)]
pub struct Passing {
    /// `request`, `response`, `failure` in place of a response, `gone`, `notification` or `behind`.
    pub kind: String,
    pub middleware: u32,
    pub number: f64,
    /// The message, or the failure, as JSON.
    pub text: Option<String>,
    /// `to_server` or `to_client`.
    pub direction: Option<String>,
    pub revision: Option<String>,
    pub principal: Option<String>,
}

impl Passing {
    fn new(kind: &'static str, (middleware, number): Key, text: Option<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            middleware,
            number: number as f64,
            text,
            direction: None,
            revision: None,
            principal: None,
        }
    }
}

impl Handoffs {
    /// Adds middleware of the program. Returns its number.
    pub fn add(&mut self, interests: HandoffInterests) -> (u32, Arc<Handoff>) {
        let (number, queue) = (self.handoffs.len() as u32, self.queue.clone());
        let report = move |event| queue.push(number, event);
        let handoff = Arc::new(Handoff::new(interests, report));
        self.handoffs.push(handoff.clone());
        (number, handoff)
    }

    fn handoff(&self, middleware: u32) -> Result<&Arc<Handoff>> {
        let handoff = self.handoffs.get(middleware as usize);
        handoff.ok_or_else(|| misuse("there is no such middleware"))
    }

    /// Describes one event; `None` for a message that is not there any more.
    fn show(&mut self, middleware: u32, event: HandoffEvent) -> Option<Passing> {
        Some(match event {
            HandoffEvent::Request(number, request) => {
                let mut text = head(Some(request.id()));
                text.push_str(",\"method\":");
                quote(&mut text, &request.method());
                text.push_str(",\"params\":");
                text.push_str(request.params());
                text.push('}');
                let principal = request.principal().map(|it| it.as_str().to_owned());
                let shown = Passing {
                    direction: Some(direction(request.direction()).to_owned()),
                    revision: Some(request.revision().name().to_owned()),
                    principal,
                    ..Passing::new("request", (middleware, number), Some(text))
                };
                let answer = None;
                self.requests
                    .insert((middleware, number), Held { request, answer });
                shown
            }
            HandoffEvent::Response(number, outcome) => {
                let held = self.requests.get_mut(&(middleware, number))?;
                let mut text = head(Some(held.request.id()));
                let kind = match &outcome {
                    Ok(response) => {
                        text.push_str(",\"result\":");
                        text.push_str(response.result());
                        text.push('}');
                        "response"
                    }
                    Err(RequestError::Peer(error)) => {
                        text.push_str(",\"error\":{\"code\":");
                        text.push_str(&error.code.to_string());
                        text.push_str(",\"message\":");
                        quote(&mut text, &error.message);
                        if let Some(data) = &error.data {
                            text.push_str(",\"data\":");
                            text.push_str(data);
                        }
                        text.push_str("}}");
                        "response"
                    }
                    Err(error) => {
                        text = json::text(&Failure::of_request(error));
                        "failure"
                    }
                };
                held.answer = Some(outcome);
                Passing::new(kind, (middleware, number), Some(text))
            }
            HandoffEvent::GivenUp(number) => {
                let key = (middleware, number);
                self.notifications.remove(&key);
                self.requests.remove(&key)?;
                Passing::new("gone", key, None)
            }
            HandoffEvent::Notification(number, notification) => {
                let mut text = head(None);
                text.push_str(",\"method\":");
                quote(&mut text, &notification.method);
                if let Some(params) = &notification.params {
                    text.push_str(",\"params\":");
                    text.push_str(params);
                }
                text.push('}');
                let shown = Passing {
                    direction: Some(direction(notification.direction).to_owned()),
                    ..Passing::new("notification", (middleware, number), Some(text))
                };
                self.notifications
                    .insert((middleware, number), notification);
                shown
            }
            HandoffEvent::Behind(number) => Passing::new("behind", (middleware, number), None),
        })
    }

    fn finish(
        &mut self,
        (middleware, number): Key,
        outcome: std::result::Result<ChainResponse, RequestError>,
    ) -> Result<()> {
        self.requests.remove(&(middleware, number));
        self.handoff(middleware)?.settle(number, outcome);
        Ok(())
    }
}

#[napi]
impl Handoffs {
    #[napi(constructor, catch_unwind)]
    pub fn new(wake: Function<'_, (), ()>) -> Result<Self> {
        let tell = wake
            .build_threadsafe_function::<()>()
            .weak::<true>()
            .build()
            .map_err(internal)?;
        let queue = Queue {
            state: Mutex::default(),
            tell,
        };
        Ok(Self {
            queue: Arc::new(queue),
            handoffs: Vec::new(),
            requests: HashMap::new(),
            notifications: HashMap::new(),
        })
    }

    /// Takes what has come; nothing if there is nothing left, and then JavaScript is woken for the next message.
    #[napi(catch_unwind)]
    pub fn drain(&mut self) -> Vec<Passing> {
        panics::point("handoffs");
        let mut shown = Vec::new();
        // What is not there any more shows nothing, and JavaScript takes nothing for the end of the queue.
        while shown.is_empty() {
            let events: Vec<_> = {
                let mut state = self.queue.state();
                state.is_told = !state.events.is_empty();
                let many = state.events.len().min(DRAIN);
                state.events.drain(..many).collect()
            };
            if events.is_empty() {
                break;
            }
            let events = events.into_iter();
            shown.extend(events.filter_map(|(middleware, event)| self.show(middleware, event)));
        }
        shown
    }

    /// Passes a request on, with these params, or with those that it came with. Its answer follows.
    #[napi(catch_unwind)]
    pub fn pass(&self, middleware: u32, number: f64, params: Option<String>) -> Result<()> {
        let number = number as u64;
        let held = self.requests.get(&(middleware, number));
        let held = held.ok_or_else(|| error::request(RequestError::Cancelled(None)))?;
        let mut request = held.request.clone();
        if let Some(params) = params {
            request.set_params(&params).map_err(error::request)?;
        }
        let passed = self.handoff(middleware)?.pass(number, request);
        passed.map_err(error::request)
    }

    /// Answers a request with this result, or with what came for it.
    #[napi(catch_unwind)]
    pub fn settle(&mut self, middleware: u32, number: f64, result: Option<String>) -> Result<()> {
        let key = (middleware, number as u64);
        let outcome = match result {
            Some(result) => Ok(ChainResponse::new(result)),
            None => {
                let held = self.requests.get_mut(&key);
                let Some(answer) = held.and_then(|held| held.answer.take()) else {
                    return Ok(());
                };
                answer
            }
        };
        self.finish(key, outcome)
    }

    /// Answers a request with an error: a code, or a kind whose code differs from revision to revision.
    #[napi(catch_unwind)]
    pub fn refuse(
        &mut self,
        middleware: u32,
        number: f64,
        code: Option<i64>,
        kind: String,
        message: String,
        data: Option<String>,
    ) -> Result<()> {
        let key = (middleware, number as u64);
        let Some(held) = self.requests.get(&key) else {
            return Ok(());
        };
        let code = code.unwrap_or_else(|| code_of(&kind, held.request.revision()));
        let error = match data {
            None => refusal(code, message),
            Some(data) => RequestError::Peer(PeerError {
                code,
                message: message.into(),
                data: Some(data.into()),
            }),
        };
        self.finish(key, Err(error))
    }

    /// Passes a notification on, with this method and these params, or with those that it came with; or drops it.
    #[napi(catch_unwind)]
    pub fn let_go(
        &mut self,
        middleware: u32,
        number: f64,
        is_passed: bool,
        method: Option<String>,
        params: Option<String>,
    ) -> Result<()> {
        let number = number as u64;
        let Some(mut notification) = self.notifications.remove(&(middleware, number)) else {
            return Ok(());
        };
        if let Some(method) = method {
            notification.method = method;
        }
        if params.is_some() {
            notification.params = params;
        }
        let passed = is_passed.then_some(notification);
        self.handoff(middleware)?.let_go(number, passed);
        Ok(())
    }

    /// Says that an answer that came after notifications may go on.
    #[napi(catch_unwind)]
    pub fn reached(&self, middleware: u32, number: f64) -> Result<()> {
        self.handoff(middleware)?.reached(number as u64);
        Ok(())
    }

    /// Ends it: what waits is refused.
    #[napi(catch_unwind)]
    pub fn close(&mut self) {
        self.handoffs.iter().for_each(|handoff| handoff.close());
        let events = {
            let mut state = self.queue.state();
            state.is_closed = true;
            std::mem::take(&mut state.events)
        };
        drop(events);
        self.requests.clear();
        self.notifications.clear();
    }
}

impl Drop for Handoffs {
    fn drop(&mut self) {
        panics::quietly(|| self.close());
    }
}

/// The begin of a message.
fn head(id: Option<&str>) -> String {
    match id {
        Some(id) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}"),
        None => "{\"jsonrpc\":\"2.0\"".to_owned(),
    }
}

fn direction(direction: RelayDirection) -> &'static str {
    match direction {
        RelayDirection::ToServer => "to_server",
        RelayDirection::ToClient => "to_client",
    }
}

fn code_of(kind: &str, revision: Revision) -> i64 {
    let kind = match kind {
        "invalid params" => ErrorKind::InvalidParams,
        "not found" => ErrorKind::ResourceNotFound,
        "missing capability" => ErrorKind::MissingClientCapability,
        _ => ErrorKind::Internal,
    };
    kind.code(revision)
}
