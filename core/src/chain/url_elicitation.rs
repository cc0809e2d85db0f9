//! The error -32042 of a server of 2025-11-25, whose user has to visit pages first, towards a client of the stateless era:
//! the client is asked to have them visited, and then the server gets the request again (R-CHN-12).

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::time::Duration;

use super::middleware::{ChainAnswer, ChainRequest, ChainResponse, NextHop, RelayDirection};
use super::question::{Question, Withdrawn};
use super::trip::Trip;
use super::unless::{Work, all, unless};
use super::upstream::asker;
use super::visits::Visiting;
use crate::error::{PeerError, RequestError};
use crate::json::reader;
use crate::mcp::code::{INTERNAL_ERROR, INVALID_REQUEST, MISSING_CLIENT_CAPABILITY};
use crate::mcp::{Era, Method};

/// How long to wait until the server says that the user has finished, which it need not say. Then it is asked anyway.
const FINISH_WAIT: Duration = Duration::from_secs(20);

impl Trip<'_> {
    /// Has the client's user visit the pages that the error names.
    ///
    /// # Errors
    /// The error for the client, if its user cannot or does not go there.
    pub async fn visit(&self, error: &PeerError) -> Result<(), RequestError> {
        let pages: Vec<_> = pages(error).collect();
        if pages.is_empty() || !self.method.is_some_and(Method::may_ask) {
            return Err(refused(INTERNAL_ERROR, error.message.clone(), None));
        }
        require(
            self.request.view().client_capabilities().unwrap_or("{}"),
            Era::Stateless,
        )?;
        let visiting = Visiting::begin(self.far.visits(), &pages);
        let asked = pages
            .into_iter()
            .map(|page| -> Work<'_, _> { Box::pin(self.ask_in_a_round(page)) });
        let mut asked = pin!(all(asked));
        // All are asked in the first poll, so they are put to the client together.
        let mut together = Some(self.lane.rounds.together());
        let answers = poll_fn(|cx| {
            let answers = asked.as_mut().poll(cx);
            together = None;
            answers
        });
        for answer in answers.await {
            let answer = answer?;
            let action = reader::find(answer.result(), "action").and_then(reader::as_str);
            if action.as_deref() != Some("accept") {
                let why = format!("{}: the user did not agree", error.message);
                let reason = "{\"reason\":\"elicitation_declined\"}";
                return Err(refused(INTERNAL_ERROR, why, Some(reason)));
            }
        }
        let wait = self.far.handle().sleep(FINISH_WAIT);
        unless(visiting.finished(), wait).await;
        Ok(())
    }

    /// Asks the client in the answer of its call, through the middleware.
    async fn ask_in_a_round(&self, page: &str) -> Result<ChainResponse, RequestError> {
        let request = ChainRequest::question(Method::Elicit.name(), page, self.far.revision)?;
        let send = move |request: ChainRequest| -> ChainAnswer<'_> {
            Box::pin(async move {
                let withdrawn = Withdrawn::default();
                let asker = asker(self.lane, self.far.routes());
                let far = self.far.handle();
                let (answer, question) = Question::new(&request, far, withdrawn.token(), asker);
                if self.route.ask(question).is_err() {
                    return Err(RequestError::Cancelled(None));
                }
                self.lane.rounds.end(self.route.clone());
                answer.await
            })
        };
        let middleware = &self.lane.parts.middleware;
        NextHop::new(middleware, RelayDirection::ToClient, send)
            .run(request)
            .await
    }
}

/// The pages that the error names, each an elicitation.
pub(super) fn pages(error: &PeerError) -> impl Iterator<Item = &str> {
    let data = error.data.as_deref().unwrap_or_default();
    let pages = reader::find(data, "elicitations").unwrap_or("[]");
    reader::elements(pages).filter(|page| page.starts_with('{'))
}

/// Checks that a client with these capabilities can send its user to a page.
///
/// # Errors
/// The error for a client of that era which does not declare it.
pub(super) fn require(capabilities: &str, era: Era) -> Result<(), RequestError> {
    if reader::find_path(capabilities, &["elicitation", "url"]).is_some() {
        return Ok(());
    }
    let code = match era {
        Era::Handshake => INVALID_REQUEST,
        Era::Stateless => MISSING_CLIENT_CAPABILITY,
    };
    let why =
        "the server sends the user to a page, and the client does not declare elicitation.url";
    let lacks = "{\"requiredCapabilities\":{\"elicitation\":{\"url\":{}}}}";
    Err(refused(code, why, Some(lacks)))
}

fn refused(code: i64, message: impl Into<Box<str>>, data: Option<&str>) -> RequestError {
    RequestError::Peer(PeerError {
        code,
        message: message.into(),
        data: data.map(Into::into),
    })
}
