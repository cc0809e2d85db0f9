//! One call of a tool under way, and waiting for it without a runtime.

use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use serde::Serialize;

use super::asking::Asking;
use super::known::OutputSchema;
use super::results::CallToolResult;
use super::{Client, parse};
use crate::connection::{Progress, RequestOptions};
use crate::error::RequestError;
use crate::json::string;
use crate::mcp::{Method, TaskSupport};
use crate::message::Message;

/// A call of a tool, to be awaited. Dropping the future cancels the call.
#[derive(Debug)]
#[must_use = "a call is sent when it is awaited"]
pub struct CallTool {
    pub(super) client: Client,
    params: Result<String, RequestError>,
    options: RequestOptions,
    pub(super) schema: Option<Arc<OutputSchema>>,
    /// What the tool says of tasks, if it was listed.
    pub(super) support: Option<TaskSupport>,
    ttl: Option<Duration>,
}

impl CallTool {
    pub(super) fn new(
        client: &Client,
        offered: Result<(), RequestError>,
        schema: Option<Arc<OutputSchema>>,
        name: &str,
        arguments: &impl Serialize,
    ) -> Self {
        let params = offered.and_then(|()| params(name, arguments));
        Self {
            client: client.clone(),
            support: client.known.task_support(name),
            ttl: None,
            params,
            options: RequestOptions::default(),
            schema,
        }
    }

    /// How long to wait without news; progress starts it again, until
    /// [`max_timeout`](Self::max_timeout) has passed.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// How long to wait in all, whatever the progress (R-CAN-09). Without it, the longer of
    /// [`Limits::max_request_timeout`](crate::limits::Limits) and [`timeout`](Self::timeout).
    pub fn max_timeout(mut self, timeout: Duration) -> Self {
        self.options.max_timeout = Some(timeout);
        self
    }

    /// Members for the call's `_meta`: an object. Those that the engine writes itself (the
    /// revision, the progress token and so on) are left out of it.
    pub fn meta(mut self, members: &impl Serialize) -> Self {
        match serde_json::to_string(members) {
            Ok(json) => self.options.meta = Some(json.into()),
            Err(_) => self.params = Err(RequestError::Misuse("_meta must be a JSON object")),
        }
        self
    }

    /// How long the server is to keep the task that the call becomes: see [`start`](Self::start).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Asks for the result in pieces, where the server declares `experimental.streaming`: the first
    /// is the result; the others come as notifications, to
    /// [`on_raw_notice`](super::ClientBuilder::on_raw_notice).
    pub fn in_pieces(mut self) -> Self {
        if let Ok(params) = &mut self.params {
            params.pop();
            params.push_str(",\"_experimental\":{\"stream\":true}}");
        }
        self
    }

    /// Asks for a task (2025-11-25).
    pub(super) fn ask_for_task(&mut self) {
        if let Ok(params) = &mut self.params {
            params.pop();
            match self.ttl {
                Some(ttl) => {
                    params.push_str(&format!(",\"task\":{{\"ttl\":{}}}}}", ttl.as_millis()))
                }
                None => params.push_str(",\"task\":{}}"),
            }
        }
    }

    /// Asks for progress. Called on the engine's thread, in order, before the call ends; must
    /// not block.
    pub fn on_progress(mut self, report: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Self {
        self.options.progress = Some(Arc::new(report));
        self
    }

    /// Sends the call now, to be awaited later.
    ///
    /// # Errors
    /// When it cannot be sent: the connection has ended, too many calls wait, or the arguments
    /// are no JSON object; or when the tool's output schema is not valid.
    pub fn send(self) -> Result<Calling, RequestError> {
        let params = self.params?;
        if let Some(schema) = &self.schema {
            schema.is_usable()?;
        }
        let name = Method::CallTool.name();
        let asking = self.client.request(name, Some(&params), self.options)?;
        let schema = self.schema;
        Ok(Calling { asking, schema })
    }

    /// Waits for the result on this thread.
    ///
    /// # Errors
    /// As awaiting it.
    pub fn wait(self) -> Result<CallToolResult, RequestError> {
        block_on(self)
    }
}

impl IntoFuture for CallTool {
    type Output = Result<CallToolResult, RequestError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let answer = self.answer().await?;
            parse(answer.as_ref().result().unwrap_or("{}"))
        })
    }
}

/// A call that is sent: an [`Asking`] whose answer is read.
///
/// # Cancel safety
/// Dropping it cancels the call: the server is told.
#[derive(Debug)]
pub struct Calling {
    asking: Asking,
    schema: Option<Arc<OutputSchema>>,
}

impl Calling {
    /// Gives up and tells the server why.
    pub fn cancel(self, reason: Option<&str>) {
        self.asking.cancel(reason);
    }

    pub(super) fn into_asking(self) -> Asking {
        self.asking
    }
}

impl Future for Calling {
    type Output = Result<CallToolResult, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let message = std::task::ready!(Pin::new(&mut self.asking).poll(cx))?;
        Poll::Ready(read(&message, self.schema.as_deref()))
    }
}

/// The result that is an answer to a call, checked.
pub(super) fn read(
    answer: &Message,
    schema: Option<&OutputSchema>,
) -> Result<CallToolResult, RequestError> {
    check(answer, schema)?;
    parse(answer.as_ref().result().unwrap_or("{}"))
}

/// Holds the answer to a call against the output schema of the tool.
pub(super) fn check(answer: &Message, schema: Option<&OutputSchema>) -> Result<(), RequestError> {
    let result = answer.as_ref().result().unwrap_or("{}");
    schema.map_or(Ok(()), |schema| schema.check(result))
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

/// Waits for a future on this thread: for programs without a runtime.
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future.into_future());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
