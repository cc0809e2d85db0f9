//! Requests that are sent again when the server is lost.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::super::middleware::{
    ChainAnswer, ChainNotification, ChainRequest, Middleware, NextHop, RelayDirection,
};
use crate::error::{CarrierFault, RequestError};
use crate::json::reader;
use crate::mcp::Method;
use crate::sync::lock;

/// The most times that one request is sent again.
pub(crate) const MAX_REPEATS: u32 = 10;

/// The most tools whose annotations are kept.
const MAX_TOOLS: usize = 4096;

/// Middleware that sends a request again, over a new connection, when the connection was lost before the server began to answer: it has
/// reported no progress, logged nothing for the request and asked nothing.
/// It does so with lists, reads, `prompts/get`, completions and `ping`, which change nothing; and with calls of tools only if their
/// annotations are [trusted](Self::trusting_annotations). Everything else is sent once.
///
/// Add it behind a [`Breaker`](super::Breaker), which then counts what all attempts together have ended with.
#[derive(Clone, Debug)]
#[must_use = "it is given to a server"]
pub struct Retry {
    times: u32,
    trusts: bool,
    /// The tools that may be called again, as their server said last.
    tools: Arc<Mutex<BTreeSet<Box<str>>>>,
}

impl Retry {
    /// Sends a request up to `times` times again, at most 10.
    pub fn new(times: u32) -> Self {
        Self {
            times: times.min(MAX_REPEATS),
            trusts: false,
            tools: Arc::default(),
        }
    }

    /// Also repeats calls of tools that the server lists with `readOnlyHint` or `idempotentHint`.
    pub fn trusting_annotations(mut self) -> Self {
        self.trusts = true;
        self
    }

    /// Whether it does no harm to send the request twice.
    fn may_repeat(&self, request: &ChainRequest) -> bool {
        match request.known_method() {
            Some(
                Method::ListTools
                | Method::ListPrompts
                | Method::ListResources
                | Method::ListResourceTemplates
                | Method::ReadResource
                | Method::GetPrompt
                | Method::Complete
                | Method::Ping,
            ) => true,
            Some(Method::CallTool) => {
                let tool = request.target();
                self.trusts && tool.is_some_and(|tool| lock(&self.tools).contains(&*tool))
            }
            _ => false,
        }
    }

    /// Notes what a page of the server's tools says of each.
    fn learn(&self, page: &str) {
        let mut known = lock(&self.tools);
        for tool in reader::elements(reader::find(page, "tools").unwrap_or("[]")) {
            let Some(name) = reader::find(tool, "name").and_then(reader::as_str) else {
                continue;
            };
            let hint = |hint| reader::find_path(tool, &["annotations", hint]) == Some("true");
            if !hint("readOnlyHint") && !hint("idempotentHint") {
                known.remove(&*name);
            } else if known.len() < MAX_TOOLS {
                known.insert(name.into());
            }
        }
    }
}

impl Middleware for Retry {
    fn keeps_lists(&self) -> bool {
        true
    }

    fn request<'a>(&'a self, request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        let is_list = request.known_method() == Some(Method::ListTools);
        if request.direction() == RelayDirection::ToClient || !self.may_repeat(&request) {
            return next.run(request);
        }
        Box::pin(async move {
            let mut left = self.times;
            let before = next.signs().0;
            loop {
                match next.clone().run(request.clone()).await {
                    Err(error) if left > 0 && is_lost(&error) && next.signs().0 == before => {
                        left -= 1
                    }
                    Ok(answer) => {
                        if is_list && self.trusts {
                            self.learn(answer.result());
                        }
                        return Ok(answer);
                    }
                    error => return error,
                }
            }
        })
    }

    fn notification(&self, notification: ChainNotification) -> Option<ChainNotification> {
        if notification.method == Method::ToolsChanged.name() {
            lock(&self.tools).clear();
        }
        Some(notification)
    }

    fn connection_changed(&self) {
        lock(&self.tools).clear();
    }
}

/// Whether there was no answer because a connection was lost, or could not be opened.
fn is_lost(error: &RequestError) -> bool {
    match error {
        RequestError::Closed(_) => true,
        RequestError::Carrier(error) => matches!(
            error.fault,
            CarrierFault::Unreachable | CarrierFault::Broken | CarrierFault::SessionLost
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_kept_up_to_a_number_and_as_they_were_last() {
        let retry = Retry::new(1).trusting_annotations();
        let page = |hint: bool| {
            let tools = (0..MAX_TOOLS + 10)
                .map(|n| format!(r#"{{"name":"t{n}","annotations":{{"readOnlyHint":{hint}}}}}"#));
            let tools: Vec<_> = tools.collect();
            format!(r#"{{"tools":[{}]}}"#, tools.join(","))
        };
        retry.learn(&page(true));
        assert_eq!(lock(&retry.tools).len(), MAX_TOOLS);
        retry.learn(&page(false));
        assert_eq!(lock(&retry.tools).len(), 0);
    }
}
