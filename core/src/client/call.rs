//! Tool calls, and waiting for them without a runtime.

use std::borrow::Cow;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::core::{ClientCore, parse, result};
use super::known_tools::{OutputSchema, check_answer};
use super::pending::PendingRequest;
use super::results::CallToolResult;
use super::typed::TypedCall;
use crate::connection::{Progress, RequestOptions};
use crate::error::RequestError;
use crate::json::{reader, string};
use crate::mcp::{Method, TaskSupport};
use crate::sync::block_on;

/// A tool call, to be awaited. Dropping the future cancels the call.
#[derive(Debug)]
#[must_use = "a call is sent when it is awaited"]
pub struct CallTool {
    pub(super) client: ClientCore,
    params: Result<String, Unsendable>,
    options: RequestOptions,
    pub(super) schema: Option<Arc<OutputSchema>>,
    /// The tool's task support, if the tool was listed.
    pub(super) support: Option<TaskSupport>,
    ttl: Option<Duration>,
}

/// A call that cannot be sent, and its tool.
#[derive(Debug)]
struct Unsendable {
    tool: Box<str>,
    error: RequestError,
}

impl CallTool {
    pub(super) fn new(client: &ClientCore, name: &str, arguments: &impl Serialize) -> Self {
        let (schema, support) = client.tools.of(name);
        Self {
            client: client.clone(),
            params: client
                .require("tools")
                .and_then(|()| params(name, arguments))
                .map_err(|error| Unsendable {
                    tool: name.into(),
                    error,
                }),
            options: RequestOptions::default(),
            schema,
            support,
            ttl: None,
        }
    }

    /// Sets the time to wait for a sign of progress. Each progress notification whose `progress`
    /// increases restarts it, until [`max_timeout`](Self::max_timeout) has passed. Default:
    /// [`Limits::request_timeout`](crate::limits::Limits).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Sets the total time to wait, regardless of progress (R-CAN-09). Default: the longer of
    /// [`Limits::max_request_timeout`](crate::limits::Limits) and [`timeout`](Self::timeout).
    pub fn max_timeout(mut self, timeout: Duration) -> Self {
        self.options.max_timeout = Some(timeout);
        self
    }

    /// Sets members of the call's `_meta`: a JSON object. Members that the engine writes itself
    /// (the revision, the progress token and so on) are ignored.
    pub fn meta(mut self, members: &impl Serialize) -> Self {
        match serde_json::to_string(members) {
            Ok(json) => self.options.meta = Some(json.into()),
            Err(_) => {
                self.params = Err(Unsendable {
                    tool: self.tool().into(),
                    error: RequestError::Misuse("_meta must be a JSON object"),
                });
            }
        }
        self
    }

    /// Sets how long the server should keep the task that the call becomes: see
    /// [`start`](Self::start).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Asks for the result in pieces, where the server declares `experimental.streaming`. The first
    /// piece is the result; the others arrive as notifications, at
    /// [`on_raw_notice`](super::ClientBuilder::on_raw_notice).
    pub fn in_pieces(mut self) -> Self {
        self.add_param("\"_experimental\":{\"stream\":true}");
        self
    }

    /// Asks for a task (2025-11-25).
    pub(super) fn ask_for_task(&mut self) {
        let ttl = self.ttl.map(|ttl| format!("\"ttl\":{}", ttl.as_millis()));
        self.add_param(&format!("\"task\":{{{}}}", ttl.unwrap_or_default()));
    }

    /// Adds a member to the params, which have others.
    fn add_param(&mut self, member: &str) {
        if let Ok(params) = &mut self.params {
            params.pop();
            params.extend([",", member, "}"]);
        }
    }

    /// Asks for progress notifications. `report` is called on the engine's thread, in order, before
    /// the call ends; it must not block.
    pub fn on_progress(mut self, report: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Self {
        self.options.progress = Some(Arc::new(report));
        self
    }

    /// The name of the tool.
    pub(super) fn tool(&self) -> Cow<'_, str> {
        match &self.params {
            Ok(params) => {
                let name = reader::find(params, "name").and_then(reader::as_str);
                name.unwrap_or_default()
            }
            Err(unsendable) => (*unsendable.tool).into(),
        }
    }

    /// Reads the result as a value of the program's own type: see [`Client::call`](super::Client::call).
    pub fn read_as<T: DeserializeOwned>(self) -> TypedCall<T> {
        TypedCall::new(self)
    }

    /// Sends the call now; await the returned future for the result.
    ///
    /// # Errors
    /// When it cannot be sent: the connection has ended, too many calls wait, the arguments are no
    /// JSON object, or the tool's output schema is not valid.
    pub fn send(self) -> Result<PendingCall, RequestError> {
        let params = self.params.map_err(|unsendable| unsendable.error)?;
        if let Some(schema) = &self.schema {
            schema.is_usable()?;
        }
        let name = Method::CallTool.name();
        let request = PendingRequest::send(&self.client, name, Some(&params), self.options)?;
        let schema = self.schema;
        Ok(PendingCall { request, schema })
    }

    /// Sends the call and blocks this thread until the result arrives.
    ///
    /// # Errors
    /// The same as awaiting the call.
    pub fn wait(self) -> Result<CallToolResult, RequestError> {
        block_on(self)
    }
}

impl IntoFuture for CallTool {
    type Output = Result<CallToolResult, RequestError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { parse(result(&self.answer().await?)) })
    }
}

/// A sent call: a [`PendingRequest`] whose answer is parsed.
///
/// # Cancel safety
/// Dropping it cancels the call and notifies the server.
#[derive(Debug)]
pub struct PendingCall {
    pub(super) request: PendingRequest,
    schema: Option<Arc<OutputSchema>>,
}

impl PendingCall {
    /// Cancels the call and tells the server why.
    pub fn cancel(self, reason: Option<&str>) {
        self.request.cancel(reason);
    }
}

impl Future for PendingCall {
    type Output = Result<CallToolResult, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let message = std::task::ready!(Pin::new(&mut self.request).poll(cx))?;
        check_answer(&message, self.schema.as_deref())?;
        Poll::Ready(parse(result(&message)))
    }
}

fn params(name: &str, arguments: &impl Serialize) -> Result<String, RequestError> {
    let mut out = b"{\"name\":".to_vec();
    string::append(&mut out, name);
    out.extend_from_slice(b",\"arguments\":");
    let at = out.len();
    let misuse = RequestError::Misuse("arguments must be a JSON object");
    serde_json::to_writer(&mut out, arguments).map_err(|_| misuse.clone())?;
    match &out[at..] {
        b"null" => out.truncate(at - b",\"arguments\":".len()),
        [b'{', ..] => {}
        _ => return Err(misuse),
    }
    out.push(b'}');
    String::from_utf8(out).map_err(|_| misuse)
}
