//! Requests that stand alone (2026-07-28, and actions): each is served by an engine connection of its own.

use std::future::poll_fn;
use std::sync::Arc;

use hyper::StatusCode;

use super::exchange::{Answering, HttpExchange};
use super::exchange_pool::ExchangePool;
use super::gate::Admitted;
use super::options::HttpOptions;
use super::refusal::NO_MESSAGE;
use super::response::{self, HttpAnswer};
use super::sse::SseEncoder;
use super::timekeeper::Timekeeper;
use crate::buffer::Input;
use crate::connection::Config;
use crate::correlate::CancelToken;
use crate::io::http::message_bytes::messages;
use crate::server::Hosting;

/// Begins and ends the exchanges of one endpoint.
pub struct Exchanges {
    hosting: Arc<dyn Hosting>,
    config: Arc<Config>,
    options: Arc<HttpOptions>,
    timekeeper: Arc<Timekeeper>,
    pool: ExchangePool,
    stop: CancelToken,
}

impl Exchanges {
    pub fn new(
        hosting: Arc<dyn Hosting>,
        config: Arc<Config>,
        options: Arc<HttpOptions>,
        timekeeper: Arc<Timekeeper>,
    ) -> Self {
        Self {
            hosting,
            config,
            options,
            timekeeper,
            pool: ExchangePool::default(),
            stop: CancelToken::new(),
        }
    }

    /// Ends the exchanges gracefully.
    pub fn stop(&self) {
        self.stop.cancel(None);
    }

    /// Creates the exchange of a request, or takes a finished one of the same principal.
    pub fn exchange(&self, request: &Admitted<'_>) -> Box<HttpExchange> {
        let principal = request.principal();
        let generation = self.hosting.generation();
        let kept = self.pool.take(principal, generation);
        let mut exchange = kept.unwrap_or_else(|| {
            let timers = self.timekeeper.handle();
            let exchange = HttpExchange::new(&*self.hosting, &self.config, timers, principal);
            Box::new(exchange)
        });
        exchange.sent_from(request.source(&self.options.trusted_proxies));
        exchange
    }

    /// Hands a request to its exchange, and waits until the exchange is done or has something to say.
    pub async fn begin(&self, exchange: &mut HttpExchange, request: &Admitted<'_>, body: Input) {
        let head = self.hosting.wants_heads().then(|| request.head(None));
        exchange.begin(request, body, head);
        poll_fn(|cx| exchange.poll(cx)).await;
    }

    /// Serves one request.
    ///
    /// # Errors
    /// When the body is not a message that a server accepts.
    pub async fn serve(&self, request: &Admitted<'_>, body: Input) -> HttpAnswer {
        let mut exchange = self.exchange(request);
        self.begin(&mut exchange, request, body).await;
        self.answer(exchange)
    }

    /// R-HTP-17, R-HTP-18: a single message is sent as JSON; with messages before the answer, all are
    /// events.
    fn answer(&self, mut exchange: Box<HttpExchange>) -> HttpAnswer {
        if !exchange.is_done() {
            let interval = self.options.comment_interval;
            return Ok(response::events(self.answering(exchange), interval));
        }
        let mut messages = messages(exchange.take());
        let (is_stray, reached_server) = (exchange.is_stray(), exchange.reached_server());
        self.finish(exchange);
        match (messages.pop(), messages.is_empty()) {
            // R-HTP-05
            (None, _) if !is_stray => Ok(response::empty(StatusCode::ACCEPTED)),
            (None, _) => Err(NO_MESSAGE),
            (Some(message), true) => {
                let status = response::status(&message, reached_server);
                Ok(response::message(status, message))
            }
            (Some(last), false) => {
                let mut events = SseEncoder::default();
                messages.push(last);
                messages.iter().for_each(|each| events.event(None, each));
                Ok(response::whole_events(events))
            }
        }
    }

    /// The messages of an exchange that is not done.
    pub fn answering(&self, exchange: Box<HttpExchange>) -> Answering {
        Answering::new(exchange, &self.stop, self.options.grace)
    }

    /// Keeps a finished exchange for another request.
    pub fn finish(&self, exchange: Box<HttpExchange>) {
        if exchange.generation() == self.hosting.generation() {
            self.pool.put(exchange);
        }
    }
}
