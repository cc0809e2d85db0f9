//! Reports of requests to a server and their outcomes.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::middleware::{ChainAnswer, ChainRequest, ChainResponse, Middleware, NextHop};
use super::expects_answer;
use crate::error::RequestError;
use crate::json::reader;
use crate::panics::contain;
use crate::policy::AuditOutcome;

/// One request to a server, and its outcome. It has neither arguments nor results.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct UpstreamCall<'a> {
    /// The name of the server.
    pub server: &'a str,
    /// The method.
    pub method: &'a str,
    /// The tool, the prompt or the URI, by the server's own name.
    pub name: Option<&'a str>,
    /// The verified client.
    pub principal: Option<&'a str>,
    /// The outcome.
    pub outcome: AuditOutcome,
    /// The error, if there is one.
    pub error: Option<&'a RequestError>,
    /// Time until the answer.
    pub duration: Duration,
}

/// Middleware that reports each request to a server when it is answered or cancelled. Add it first, so that the refusals of other
/// middleware are reported, too. Streams of changes are not reported.
#[derive(Clone)]
pub struct CallReports {
    server: Arc<str>,
    report: Arc<dyn Fn(&UpstreamCall<'_>) + Send + Sync>,
}

impl CallReports {
    /// Reports on the server of that name. `report` must not block.
    pub fn new(
        server: impl Into<Arc<str>>,
        report: impl Fn(&UpstreamCall<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            server: server.into(),
            report: Arc::new(report),
        }
    }
}

impl Middleware for CallReports {
    fn keeps_lists(&self) -> bool {
        true
    }

    fn request<'a>(&'a self, request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        if !expects_answer(&request) {
            return next.run(request);
        }
        Box::pin(async move {
            let mut open = Open {
                reports: Some(self),
                method: request.method().into_owned(),
                name: request.target().map(|name| name.into_owned()),
                principal: request.principal().map(|who| who.as_str().to_owned()),
                begun: Instant::now(),
            };
            let answer = next.run(request).await;
            open.ends(&answer);
            answer
        })
    }
}

/// A request that is reported as cancelled when it is dropped.
struct Open<'a> {
    reports: Option<&'a CallReports>,
    method: String,
    name: Option<String>,
    principal: Option<String>,
    begun: Instant,
}

impl Open<'_> {
    fn ends(&mut self, answer: &Result<ChainResponse, RequestError>) {
        let (outcome, error) = match answer {
            Ok(answer) if reader::find(answer.result(), "isError") == Some("true") => {
                (AuditOutcome::ToolFailed, None)
            }
            Ok(_) => (AuditOutcome::Done, None),
            Err(error @ RequestError::TimedOut) => (AuditOutcome::TimedOut, Some(error)),
            Err(error @ RequestError::Cancelled(_)) => (AuditOutcome::Cancelled, Some(error)),
            Err(error) => (AuditOutcome::Failed, Some(error)),
        };
        self.tell(outcome, error);
    }

    fn tell(&mut self, outcome: AuditOutcome, error: Option<&RequestError>) {
        let Some(CallReports { server, report }) = self.reports.take() else {
            return;
        };
        let call = UpstreamCall {
            server,
            method: &self.method,
            name: self.name.as_deref(),
            principal: self.principal.as_deref(),
            outcome,
            error,
            duration: self.begun.elapsed(),
        };
        contain("a receiver of reports", || report(&call));
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.tell(AuditOutcome::Cancelled, None);
    }
}

impl fmt::Debug for CallReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallReports")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}
