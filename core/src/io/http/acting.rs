//! Actions of an endpoint: posted, or named by the query of a stream.

use std::future::poll_fn;
use std::sync::Arc;

use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};

use super::actions;
use super::answers::{NO_MESSAGE, Refusal, with};
use super::body::HttpBody;
use super::endpoint::Endpoint;
use super::events::messages;
use super::exchange::{Answering, Exchange};
use super::gate::Admitted;
use super::running::Resumed;
use crate::action::ErrorType;
use crate::buffer::Input;
use crate::connection::Principal;
use crate::handler::Head;

const NOT_ON_GET: Refusal = Refusal::new(
    StatusCode::METHOD_NOT_ALLOWED,
    "a GET does not run this action: POST it; its author may allow GET for a tool that is read-only",
);

impl Endpoint {
    /// Serves a posted action, which stands alone.
    pub(super) async fn act(
        &self,
        request: Admitted,
        body: Input,
        streamed: bool,
    ) -> Response<HttpBody> {
        let version = match actions::version(request.headers()) {
            Ok(version) => version,
            Err(why) => return actions::unspoken(&why),
        };
        let exchange = self.take(&request);
        let head = self.head(&request, None);
        let headers = request.into_parts().headers;
        let response = self.carry_out(exchange, head, headers, body, streamed);
        actions::versioned(response.await, &version)
    }

    async fn carry_out(
        &self,
        mut exchange: Box<Exchange>,
        head: Option<Arc<Head>>,
        headers: HeaderMap,
        body: Input,
        streamed: bool,
    ) -> Response<HttpBody> {
        exchange.expect_action(streamed);
        let asked = headers.clone();
        exchange.begin(headers, body, head);
        poll_fn(|cx| exchange.poll(cx)).await;
        let principal = exchange.principal().cloned();
        let messages = messages(exchange.take());
        let reached = exchange.reached_server();
        let more = match exchange.is_done() {
            true => {
                self.spare.put(exchange);
                None
            }
            false => Some(Answering::new(exchange, &self.stop, self.options.grace)),
        };
        match (&messages[..], more) {
            ([], None) => actions::refused(NO_MESSAGE),
            ([message], None) if streamed => actions::only_event(message, reached),
            ([message], None) => actions::whole(&asked, message, reached),
            (_, more) => self.stream(self.running.begin(messages, more, principal.as_ref())),
        }
    }

    /// Resumes a stream that broke off.
    fn resume_action(&self, id: &str, principal: Option<&Principal>) -> Response<HttpBody> {
        match self.running.resume(id, principal) {
            Resumed::Reader(reader) => self.stream(reader),
            Resumed::AtEnd => with(StatusCode::NO_CONTENT, HttpBody::empty()),
            Resumed::Gone => actions::not_kept(id),
        }
    }

    /// Opens or resumes the stream of an action that the query names.
    pub(super) async fn stream_action(&self, request: Admitted) -> Response<HttpBody> {
        let version = match actions::version(request.headers()) {
            Ok(version) => version,
            Err(why) => return actions::unspoken(&why),
        };
        if let Some(id) = actions::resumes(request.headers()) {
            let response = self.resume_action(id, request.principal());
            return actions::versioned(response, &version);
        }
        let mut exchange = self.take(&request);
        let query = request.parts().uri.query().unwrap_or_default();
        let asked = actions::of_query(query, |action| exchange.action_schema(action));
        let asked = match asked {
            Ok(asked) => asked,
            Err(why) => {
                let (status, kind) = (StatusCode::BAD_REQUEST, ErrorType::Validation);
                return actions::error(status, kind, why, None);
            }
        };
        if !exchange.runs_on_get(asked.tool.as_deref(), &asked.action) {
            return actions::versioned(actions::refused(NOT_ON_GET), &version);
        }
        let mut body = Input::with_room(asked.request.len());
        body.extend(&asked.request);
        let head = self.head(&request, None);
        let headers = request.into_parts().headers;
        let response = self.carry_out(exchange, head, headers, body, true);
        actions::versioned(response.await, &version)
    }
}
