//! One call of a tool under way, and waiting for it without a runtime.

use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use serde::Serialize;

use super::results::CallToolResult;
use super::{complete, parse};
use crate::connection::{Handle, Progress, RequestOptions, Response};
use crate::error::RequestError;
use crate::json::string;
use crate::mcp::Method;

/// A call of a tool, to be awaited. Dropping the future cancels the call.
#[derive(Debug)]
#[must_use = "a call is sent when it is awaited"]
pub struct CallTool {
    handle: Handle,
    params: Result<String, RequestError>,
    options: RequestOptions,
}

impl CallTool {
    pub(super) fn new(
        handle: &Handle,
        offered: Result<(), RequestError>,
        name: &str,
        arguments: &impl Serialize,
    ) -> Self {
        let params = offered.and_then(|()| params(name, arguments));
        Self {
            handle: handle.clone(),
            params,
            options: RequestOptions::default(),
        }
    }

    /// How long to wait without news; progress starts it again.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
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
    /// are no JSON object.
    pub fn send(self) -> Result<Calling, RequestError> {
        let params = self.params?;
        let response = self
            .handle
            .request(Method::CallTool.name(), Some(&params), self.options)?;
        Ok(Calling { response })
    }

    /// Waits for the result on this thread.
    ///
    /// # Errors
    /// As awaiting it.
    pub fn wait(self) -> Result<CallToolResult, RequestError> {
        block_on(self.send()?)
    }
}

impl IntoFuture for CallTool {
    type Output = Result<CallToolResult, RequestError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.send()?.await })
    }
}

/// A call that is sent.
///
/// # Cancel safety
/// Dropping it cancels the call: the server is told.
#[derive(Debug)]
pub struct Calling {
    response: Response,
}

impl Calling {
    /// Gives up and tells the server why.
    pub fn cancel(self, reason: Option<&str>) {
        self.response.cancel(reason);
    }
}

impl Future for Calling {
    type Output = Result<CallToolResult, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let message = std::task::ready!(Pin::new(&mut self.response).poll(cx))?;
        complete(&message)?;
        Poll::Ready(parse(message.as_ref().result().unwrap_or("{}")))
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
