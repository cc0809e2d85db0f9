//! Requests that are sent again when the server is lost.

use std::sync::Arc;

use super::super::middleware::{
    ChainAnswer, ChainNotification, ChainRequest, ChainResponse, Middleware, NextHop,
    RelayDirection,
};
use super::listed::{Known, Listed, Page};
use crate::error::{CarrierFault, RequestError};
use crate::json::reader;
use crate::mcp::Method;

/// The most times that one request is sent again.
pub(crate) const MAX_REPEATS: u32 = 10;

/// Middleware that sends a request again, over a new connection, when the connection was lost before the server began to answer: it has
/// reported no progress, logged nothing for the request and asked nothing.
/// It does so with lists, reads, `prompts/get`, completions and `ping`, which change nothing; and with calls of tools only if their
/// annotations are [trusted](Self::trusting_annotations). Everything else is sent once.
///
/// Annotations are those that the server lists on the connection over which a call goes: if the list has not passed there, it is asked for
/// before the first call. A call is sent again if its tool may be called again by the lists of both connections, as the server may be another
/// version then. Among the middleware of a front, which knows no connections, the list is asked for before each call of a tool.
///
/// Add it behind a [`Breaker`](super::Breaker), which then counts what all attempts together have ended with.
#[derive(Clone, Debug)]
#[must_use = "it is given to a server"]
pub struct Retry {
    times: u32,
    trusts: bool,
    /// Whether tools may be called again, as far as they have been listed.
    listed: Arc<Listed>,
}

impl Retry {
    /// Sends a request up to `times` times again, at most 10.
    pub fn new(times: u32) -> Self {
        Self {
            times: times.min(MAX_REPEATS),
            trusts: false,
            listed: Arc::default(),
        }
    }

    /// Also repeats calls of tools that the server lists with `readOnlyHint` or `idempotentHint`.
    pub fn trusting_annotations(mut self) -> Self {
        self.trusts = true;
        self
    }

    /// The hop over which a call of the tool goes, and whether it does no harm to send the call twice.
    ///
    /// # Errors
    /// If there is no connection.
    async fn looked_up<'a>(
        &self,
        tool: &str,
        request: &ChainRequest,
        next: NextHop<'a>,
    ) -> Result<(NextHop<'a>, bool), RequestError> {
        let bound = next.clone().bound().await?;
        let known = match self.listed.find(bound.connection(), tool) {
            Known::Nothing => self.listed.look_up(tool, request, &bound, judge).await,
            known => Ok(known),
        };
        match known {
            Err(error) if is_lost(&error) => Err(error),
            Ok(Known::Listed(true)) => Ok((bound, true)),
            // It is sent once, so the connection does not matter.
            _ => Ok((next, false)),
        }
    }

    /// Sends a request until there is an answer, it may not be sent again, or it has been sent often enough. A call of a `tool` may be
    /// sent again as the annotations say.
    async fn repeat(
        &self,
        tool: Option<&str>,
        request: ChainRequest,
        next: NextHop<'_>,
    ) -> Result<ChainResponse, RequestError> {
        let (mut left, mut lost, before) = (self.times, None, next.signs().0);
        loop {
            let (hop, may_repeat) = match tool {
                None => (next.clone(), true),
                Some(tool) => match self.looked_up(tool, &request, next.clone()).await {
                    Ok(looked_up) => looked_up,
                    // Nothing was sent this time.
                    Err(error) if left > 0 && is_lost(&error) => {
                        left -= 1;
                        continue;
                    }
                    Err(error) => return Err(error),
                },
            };
            if let Some(lost) = lost.filter(|_| !may_repeat) {
                return Err(lost);
            }
            match hop.run(request.clone()).await {
                Err(error)
                    if may_repeat && left > 0 && is_lost(&error) && next.signs().0 == before =>
                {
                    (left, lost) = (left - 1, Some(error));
                }
                answer => return answer,
            }
        }
    }

    /// A page of tools, whose annotations are noted.
    async fn list(
        &self,
        request: ChainRequest,
        next: NextHop<'_>,
    ) -> Result<ChainResponse, RequestError> {
        let mut left = self.times;
        loop {
            let asked = self.listed.ask();
            let page = match next.clone().bound().await {
                Ok(hop) => {
                    let page = hop.clone().run(request.clone()).await;
                    page.map(|page| (hop, page))
                }
                Err(error) => Err(error),
            };
            match page {
                Err(error) if left > 0 && is_lost(&error) => left -= 1,
                Err(error) => return Err(error),
                Ok((hop, page)) => {
                    let judged = judge(&request, page.result());
                    // The hop keeps the connection from ending meanwhile.
                    self.listed.learn(hop.connection(), asked, judged);
                    return Ok(page);
                }
            }
        }
    }
}

/// Which tools of a page may be called again.
fn judge(request: &ChainRequest, page: &str) -> Page {
    Page::judged(request, page, |tool| {
        let has = |hint| reader::find_path(tool, &["annotations", hint]) == Some("true");
        has("readOnlyHint") || has("idempotentHint")
    })
}

impl Middleware for Retry {
    fn keeps_lists(&self) -> bool {
        true
    }

    fn request<'a>(&'a self, request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        if request.direction() == RelayDirection::ToClient {
            return next.run(request);
        }
        match request.known_method() {
            Some(Method::ListTools) if self.trusts => Box::pin(self.list(request, next)),
            Some(
                Method::ListTools
                | Method::ListPrompts
                | Method::ListResources
                | Method::ListResourceTemplates
                | Method::ReadResource
                | Method::GetPrompt
                | Method::Complete
                | Method::Ping,
            ) => Box::pin(self.repeat(None, request, next)),
            Some(Method::CallTool) if self.trusts => Box::pin(async move {
                let tool = request.target().unwrap_or_default().into_owned();
                self.repeat(Some(&tool), request, next).await
            }),
            _ => next.run(request),
        }
    }

    fn notification(&self, notification: ChainNotification) -> Option<ChainNotification> {
        if notification.method == Method::ToolsChanged.name() {
            self.listed.changed();
        }
        Some(notification)
    }

    fn connection_ended(&self, connection: u64) {
        self.listed.ended(connection);
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
