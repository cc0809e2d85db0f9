//! One HTTP endpoint: dispatches each request that passes the gate.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;

use http_body::Body;
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};

use super::actions;
use super::answers::{self, NO_MESSAGE, Refusal, refused, with};
use super::body::HttpBody;
use super::collect::collect;
use super::events::{self, Encoder, Events, messages};
use super::exchange::{Answering, Exchange};
use super::exchange_pool::ExchangePool;
use super::gate::{self, Admitted, Gate, Wish};
use super::media;
use super::options::HttpOptions;
use super::route::legacy_session;
use super::running::Running;
use super::session::Session;
use super::sessions::Sessions;
use super::timekeeper::Timekeeper;
use crate::buffer::Input;
use crate::connection::{Config, Source};
use crate::correlate::CancelToken;
use crate::handler::Head;
use crate::io::net::metrics::Metrics;
use crate::io::trace::traced;
use crate::mcp::Era;
use crate::server::Hosting;

/// The address that a request comes from. This crate's own listeners put it into the extensions of each
/// request; any other host that knows the address should do the same. Requests without a `Peer` count
/// as one source.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub std::net::SocketAddr);

pub struct Endpoint {
    pub options: Arc<HttpOptions>,
    gate: Gate,
    pub(super) hosting: Arc<dyn Hosting>,
    /// The configuration of requests that stand alone.
    stateless: Arc<Config>,
    /// The configuration of sessions.
    pub(super) handshake: Arc<Config>,
    /// `None` when no revision with a handshake is spoken.
    pub(super) sessions: Option<Sessions>,
    timekeeper: Timekeeper,
    pub(super) metrics: Arc<Metrics>,
    /// Finished exchanges, kept for reuse.
    pub(super) spare: ExchangePool,
    /// Streams of actions that are answered in parts.
    pub(super) running: Arc<Running>,
    pub(super) stop: CancelToken,
}

/// The body of a request, before or after reading.
pub(super) enum Coming<B> {
    /// Not read yet.
    Wire(B),
    Whole(Input),
}

pub(super) type Answer = Result<Response<HttpBody>, Refusal>;

impl Endpoint {
    pub fn new(
        hosting: Arc<dyn Hosting>,
        options: HttpOptions,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let mut config = Config::clone(hosting.config());
        config.limits = options.limits.clone();
        config.budget.join_network();
        let config = traced(Arc::new(config))?;
        let mut handshake = of_era(&config, Era::Handshake);
        // Sessions have their own idle timeout, `session_ttl`.
        Arc::make_mut(&mut handshake).limits.idle_timeout = None;
        // A request that stands alone ends before an idle timeout could apply.
        let mut stateless = of_era(&config, Era::Stateless);
        let limits = &mut Arc::make_mut(&mut stateless).limits;
        (limits.idle_timeout, limits.keepalive_interval) = (None, None);
        let has_sessions = handshake.revisions.newest(Era::Handshake).is_some();
        let options = Arc::new(options);
        let speaks = (has_sessions, stateless.actions);
        let gate = Gate::new(&options, speaks, hosting.policy());
        Ok(Self {
            gate,
            hosting,
            stateless,
            handshake,
            sessions: has_sessions
                .then(|| Sessions::new(options.max_sessions, options.max_sessions_per_peer)),
            running: Running::new(&options, &config.budget),
            options,
            timekeeper: Timekeeper::default(),
            metrics,
            spare: ExchangePool::default(),
            stop: CancelToken::new(),
        })
    }

    /// Ends open streams gracefully.
    pub fn stop(&self) {
        self.stop.cancel(None);
        if let Some(sessions) = &self.sessions {
            sessions.drain(self.options.grace);
        }
    }

    /// Answers a request that has passed the gate.
    pub async fn respond<B: Body>(
        self: &Arc<Self>,
        admitted: Admitted,
        body: B,
    ) -> Response<HttpBody> {
        if admitted.wish() == Wish::Action {
            return self.stream_action(admitted).await;
        }
        let in_actions = admitted.in_actions();
        let answer = self.serve(admitted, body).await;
        answer.unwrap_or_else(|refusal| gate::refused(refusal, in_actions))
    }

    async fn serve<B: Body>(self: &Arc<Self>, request: Admitted, body: B) -> Answer {
        let headers = request.headers();
        let is_message = request.wish() == Wish::Message;
        if is_message
            && self.stateless.actions
            && (request.in_actions() || actions::may_be(headers))
            && legacy_session(&request.parts().uri).is_none()
        {
            let body = self.collect(headers, body).await?;
            if actions::is_one(headers, &body) {
                let streamed = actions::wants_events(headers);
                return Ok(self.act(request, body, streamed).await);
            }
            media::check_accept(headers)?;
            return self.serve_rpc(request, Coming::Whole::<B>(body)).await;
        }
        if is_message {
            media::check_accept(headers)?;
        }
        self.serve_rpc(request, Coming::Wire(body)).await
    }

    async fn serve_rpc<B: Body>(self: &Arc<Self>, request: Admitted, body: Coming<B>) -> Answer {
        match &self.sessions {
            Some(sessions) => self.serve_sessions(sessions, request, body).await,
            None => {
                let body = self.whole(request.headers(), body).await?;
                Ok(self.exchange(request, body).await)
            }
        }
    }

    /// Builds the head of a request if the server's host asked for heads.
    pub(super) fn head(&self, request: &Admitted, session: Option<&Session>) -> Option<Arc<Head>> {
        if !self.hosting.wants_heads() {
            return None;
        }
        let parts = request.parts();
        let headers = parts.headers.iter();
        let target = parts.uri.path_and_query();
        Some(Arc::new(Head {
            method: parts.method.as_str().into(),
            target: target.map_or("/", |target| target.as_str()).into(),
            headers: headers
                .map(|(name, value)| (name.as_str().into(), value.as_bytes().into()))
                .collect(),
            session: session.map(|session| (**session.id()).into()),
            peer: request.peer().map(|peer| peer.0),
        }))
    }

    /// The gate that every request must pass first.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The source that a request is attributed to.
    pub(super) fn source(&self, request: &Admitted) -> Source {
        request.source(&self.options.trusted_proxies)
    }

    pub(super) async fn whole<B: Body>(
        &self,
        headers: &HeaderMap,
        body: Coming<B>,
    ) -> Result<Input, Refusal> {
        match body {
            Coming::Wire(body) => self.collect(headers, body).await,
            Coming::Whole(body) => Ok(body),
        }
    }

    async fn collect<B: Body>(&self, headers: &HeaderMap, body: B) -> Result<Input, Refusal> {
        collect(headers, body, &self.options.limits, &self.stateless.budget).await
    }

    /// Answers a request that stands alone.
    pub(super) async fn exchange(&self, request: Admitted, body: Input) -> Response<HttpBody> {
        let head = self.head(&request, None);
        let mut exchange = self.take(&request);
        exchange.begin(request.into_parts().headers, body, head);
        poll_fn(|cx| exchange.poll(cx)).await;
        self.answer(exchange)
    }

    /// Takes an exchange for a new request: a finished one of the same principal, or a new one.
    pub(super) fn take(&self, request: &Admitted) -> Box<Exchange> {
        let (config, principal) = (&self.stateless, request.principal());
        let mut exchange = self.spare.take(principal).unwrap_or_else(|| {
            let timers = self.timekeeper.handle(config);
            Box::new(Exchange::new(&*self.hosting, config, timers, principal))
        });
        exchange.sent_from(self.source(request));
        exchange
    }

    /// R-HTP-17, R-HTP-18: a single message is sent as JSON; with messages before the answer, all are
    /// events.
    fn answer(&self, mut exchange: Box<Exchange>) -> Response<HttpBody> {
        if !exchange.is_done() {
            return self.stream(Answering::new(exchange, &self.stop, self.options.grace));
        }
        let messages = messages(exchange.take());
        let (is_stray, reached_server) = (exchange.is_stray(), exchange.reached_server());
        self.spare.put(exchange);
        match &messages[..] {
            // R-HTP-05
            [] if !is_stray => with(StatusCode::ACCEPTED, HttpBody::empty()),
            [] => refused(NO_MESSAGE),
            [message] => {
                let status = answers::status(message, reached_server);
                answers::message(status, message.clone())
            }
            _ => {
                let mut events = Encoder::default();
                messages.iter().for_each(|each| events.event(None, each));
                answers::stream(HttpBody::whole(events.finish().into_iter().collect()))
            }
        }
    }

    pub(super) fn stream(&self, source: impl events::Source + 'static) -> Response<HttpBody> {
        let events = Events::new(source, self.options.comment_interval);
        answers::stream(HttpBody::events(events))
    }
}

/// A copy of `config` limited to the revisions of one era.
fn of_era(config: &Config, era: Era) -> Arc<Config> {
    let mut config = config.clone();
    let all = config.revisions.iter();
    config.revisions = all.filter(|one| one.era() == era).collect();
    Arc::new(config)
}
