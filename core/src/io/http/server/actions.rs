//! Actions: posted ones, and those that the query of a GET names.

use std::sync::Arc;
use std::time::Duration;

use hyper::{Response, StatusCode};

use super::action_request::{of_query, version};
use super::action_response::{only_event, versioned, whole};
use super::action_streams::ActionStreams;
use super::body::HttpBody;
use super::exchange::HttpExchange;
use super::exchanges::Exchanges;
use super::gate::Admitted;
use super::headers::resumed_action;
use super::media::wants_only_events;
use super::refusal::{BAD_ACTION, NO_GET, NO_MESSAGE};
use super::response::{self, HttpAnswer, refused};
use crate::buffer::Input;
use crate::io::http::message_bytes::messages;

/// Serves the actions of one endpoint.
pub struct Actions {
    exchanges: Arc<Exchanges>,
    /// The streams that clients may reconnect to.
    streams: Arc<ActionStreams>,
    comment_interval: Duration,
}

impl Actions {
    pub fn new(
        exchanges: Arc<Exchanges>,
        streams: Arc<ActionStreams>,
        comment_interval: Duration,
    ) -> Self {
        Self {
            exchanges,
            streams,
            comment_interval,
        }
    }

    /// Serves a posted action.
    pub async fn post(&self, request: &Admitted<'_>, body: Input) -> Response<HttpBody> {
        let version = match version(request.headers().all) {
            Ok(version) => version,
            Err(refusal) => return refused(refusal, true),
        };
        let streamed = wants_only_events(&request.headers().accept);
        let exchange = self.exchanges.exchange(request);
        let answer = self.run(exchange, request, body, streamed).await;
        versioned(answer, &version)
    }

    /// Opens or resumes the stream of an action that the query names.
    pub async fn get(&self, request: &Admitted<'_>) -> Response<HttpBody> {
        match version(request.headers().all) {
            Ok(version) => versioned(self.open_stream(request).await, &version),
            Err(refusal) => refused(refusal, true),
        }
    }

    async fn open_stream(&self, request: &Admitted<'_>) -> HttpAnswer {
        if let Some(id) = resumed_action(request.headers().all) {
            let reader = self.streams.resume(id, request.principal())?;
            return Ok(match reader {
                Some(reader) => response::events(reader, self.comment_interval),
                // Everything was read already (R-ACT-26).
                None => response::empty(StatusCode::NO_CONTENT),
            });
        }
        let mut exchange = self.exchanges.exchange(request);
        let query = request.parts().uri.query().unwrap_or_default();
        let asked = of_query(query, |action| exchange.action_schema(action));
        let asked = asked.map_err(|why| BAD_ACTION.because(why))?;
        if !exchange.runs_on_get(asked.tool.as_deref(), &asked.action) {
            return Err(NO_GET);
        }
        let mut body = Input::with_room(asked.request.len());
        body.extend(&asked.request);
        self.run(exchange, request, body, true).await
    }

    async fn run(
        &self,
        mut exchange: Box<HttpExchange>,
        request: &Admitted<'_>,
        body: Input,
        streamed: bool,
    ) -> HttpAnswer {
        exchange.expect_action(streamed);
        self.exchanges.begin(&mut exchange, request, body).await;
        let mut messages = messages(exchange.take());
        let is_done = exchange.is_done();
        let reached = exchange.reached_server();
        let answer = match (messages.pop(), messages.is_empty()) {
            (None, _) if is_done => Err(NO_MESSAGE),
            (Some(message), true) if is_done && streamed => Ok(only_event(&message, reached)),
            (Some(message), true) if is_done => Ok(whole(request.headers().all, message, reached)),
            (last, _) => {
                messages.extend(last);
                let principal = exchange.principal().cloned();
                let more = (!is_done).then(|| self.exchanges.answering(exchange));
                let reader = self.streams.begin(messages, more, principal.as_ref());
                return Ok(response::events(reader, self.comment_interval));
            }
        };
        self.exchanges.finish(exchange);
        answer
    }
}
