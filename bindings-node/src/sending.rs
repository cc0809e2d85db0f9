//! Requests, answers and notifications that a client sends.

use mcpbolt::client::Asking;
use mcpbolt::connection::RequestOptions;
use mcpbolt::mcp::Method;
use napi_derive::napi;

use crate::client::progress;
use crate::error::{self, Result};
use crate::link::{Link, Side, duration};
use crate::panics::{self, quietly};
use crate::requests::Way;

/// Timeouts in ms, whether progress is wanted, additional members of `_meta`.
type Options = (Option<f64>, Option<f64>, bool, Option<String>);

impl Link {
    fn send(
        &mut self,
        method: &str,
        params: Option<&str>,
        (timeout_ms, max_timeout_ms, wants_progress, meta): Options,
        adjust: impl FnOnce(&mut Asking),
    ) -> Result<u32> {
        panics::point("request");
        let timeout = timeout_ms.map(duration).transpose()?;
        let max_timeout = max_timeout_ms.map(duration).transpose()?;
        let number = self.requests.reserve();
        let options = RequestOptions {
            timeout,
            max_timeout,
            progress: wants_progress.then(|| progress(self.inbox.clone(), number)),
            meta: meta.map(Into::into),
            ..RequestOptions::default()
        };
        let asking = self.client().and_then(|client| {
            let asking = client.request(method, params, options);
            asking.map_err(|why| error::request(&why))
        });
        match asking {
            Ok(mut asking) => {
                adjust(&mut asking);
                let way = match Method::parse(method) {
                    Some(Method::ListTools) => Way::Listing(self.client()?.clone(), asking),
                    _ => Way::Asking(asking),
                };
                self.requests.wait(number, way, &self.inbox);
                Ok(number)
            }
            Err(why) => {
                self.requests.forget(number);
                Err(why)
            }
        }
    }
}

#[napi]
impl Link {
    /// Sends a request; returns the number under which its answer will come.
    #[napi(catch_unwind)]
    pub fn request(
        &mut self,
        method: String,
        params: Option<String>,
        timeout_ms: Option<f64>,
        max_timeout_ms: Option<f64>,
        wants_progress: bool,
        meta: Option<String>,
    ) -> Result<u32> {
        let options = (timeout_ms, max_timeout_ms, wants_progress, meta);
        self.send(&method, params.as_deref(), options, |_| ())
    }

    /// Calls a tool; if the call becomes a task, the answer says so.
    #[napi(catch_unwind)]
    pub fn start_tool(
        &mut self,
        params: String,
        timeout_ms: Option<f64>,
        max_timeout_ms: Option<f64>,
        wants_progress: bool,
        meta: Option<String>,
    ) -> Result<u32> {
        let options = (timeout_ms, max_timeout_ms, wants_progress, meta);
        let method = Method::CallTool.name();
        self.send(method, Some(&params), options, Asking::hand_over)
    }

    /// Cancels a pending request, and tells the peer.
    #[napi(catch_unwind)]
    pub fn cancel(&mut self, number: u32, reason: Option<String>) {
        quietly(|| self.requests.cancel(number, reason.as_deref()));
    }

    /// JavaScript's answer to a request of the server: a result, or the text of a failure.
    #[napi(catch_unwind)]
    pub fn answer(&self, number: u32, is_result: bool, text: String) {
        if let Side::Client(client) = &self.side {
            let answer = if is_result { Ok(text) } else { Err(text) };
            client.questions.answer(number, answer);
        }
    }

    /// Sends a notification.
    #[napi(catch_unwind)]
    pub fn notify(&self, method: String, params: Option<String>) -> Result<()> {
        let sent = self.client()?.handle().notify(&method, params.as_deref());
        sent.map_err(|why| error::request(&why))
    }

    /// Responses without a pending request, and frames that are not messages, since the start.
    #[napi(catch_unwind)]
    pub fn strays(&self) -> Result<f64> {
        Ok(self.client()?.handle().stray_count() as f64)
    }
}
