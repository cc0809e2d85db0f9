//! One endpoint: what becomes of each request that is sent to it.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;

use http_body::Body;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};

use super::actions;
use super::answers::{self, FULL, GONE, NO_MESSAGE, NO_SESSION, NO_STREAM, TOO_OLD, refused, with};
use super::body::HttpBody;
use super::collect::collect;
use super::events::{Encoder, Events, Source, messages};
use super::exchange::{Answering, Exchange};
use super::guard::{self, Refusal};
use super::identify;
use super::log::Position;
use super::options::HttpOptions;
use super::reader::{Greeting, Reader, Said};
use super::route::{
    LAST_EVENT, Opening, Route, SESSION, is_legacy_stream, legacy_query, legacy_session, route,
    session,
};
use super::running::{Resumed, Running};
use super::session::{STANDING, Session};
use super::sessions::Sessions;
use super::spare::Spare;
use super::timekeeper::Timekeeper;
use super::wait::Alarm;
use crate::action::ErrorType;
use crate::buffer::Input;
use crate::connection::Config;
use crate::connection::Principal;
use crate::correlate::CancelToken;
use crate::error::ConnectionError;
use crate::handler::Head;
use crate::io::net::metrics::{Metrics, count};
use crate::io::trace::traced;
use crate::mcp::Era;
use crate::policy::Policy;
use crate::server::Hosting;
use crate::unguessable;

/// Where a request comes from: put into its extensions by who has its connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub std::net::SocketAddr);

pub struct Endpoint {
    pub options: HttpOptions,
    hosting: Arc<dyn Hosting>,
    /// Where it asks who asks.
    policy: Option<Arc<Policy>>,
    /// For requests that stand alone.
    stateless: Arc<Config>,
    /// For sessions.
    handshake: Arc<Config>,
    /// None when no revision with a handshake is spoken.
    sessions: Option<Sessions>,
    timekeeper: Timekeeper,
    metrics: Arc<Metrics>,
    /// Exchanges that are over.
    spare: Spare,
    /// Actions that are answered in parts.
    running: Arc<Running>,
    stop: CancelToken,
}

/// The body of a request.
enum Coming<B> {
    /// Still to be read.
    Wire(B),
    Whole(Input),
}

type Answer = Result<Response<HttpBody>, Refusal>;

impl Endpoint {
    pub fn new(
        hosting: Arc<dyn Hosting>,
        options: HttpOptions,
        metrics: Arc<Metrics>,
    ) -> io::Result<Self> {
        let mut config = Config::clone(hosting.config());
        config.limits = options.limits.clone();
        let config = traced(Arc::new(config))?;
        let mut handshake = of_era(&config, Era::Handshake);
        // Sessions have a time of their own.
        Arc::make_mut(&mut handshake).limits.idle_timeout = None;
        // What stands alone is over before anybody could be silent.
        let mut stateless = of_era(&config, Era::Stateless);
        let limits = &mut Arc::make_mut(&mut stateless).limits;
        (limits.idle_timeout, limits.keepalive_interval) = (None, None);
        let has_sessions = handshake.revisions.newest(Era::Handshake).is_some();
        let policy = hosting.policy().filter(|policy| policy.has_verifier());
        Ok(Self {
            hosting,
            policy,
            stateless,
            handshake,
            sessions: has_sessions.then(|| Sessions::new(options.max_sessions)),
            running: Running::new(&options),
            options,
            timekeeper: Timekeeper::default(),
            metrics,
            spare: Spare::default(),
            stop: CancelToken::new(),
        })
    }

    /// Streams that are open end in good order.
    pub fn stop(&self) {
        self.stop.cancel(None);
        if let Some(sessions) = &self.sessions {
            sessions.drain(self.options.grace);
        }
    }

    pub async fn respond<B: Body>(self: &Arc<Self>, parts: Parts, body: B) -> Answer {
        let takes_actions = self.stateless.actions;
        if takes_actions && actions::is_stream(&parts, &self.options) {
            return self.stream_action(parts).await;
        }
        let in_actions = takes_actions && actions::says_so(&parts.headers);
        let answer = self.serve(parts, body).await;
        match answer {
            // F-63
            Err(refusal) if in_actions => Ok(actions::refused(refusal)),
            answer => answer,
        }
    }

    async fn serve<B: Body>(self: &Arc<Self>, parts: Parts, body: B) -> Answer {
        let Parts {
            method, headers, ..
        } = &parts;
        guard::check(&parts, &self.options, self.sessions.is_some())?;
        if *method == Method::POST
            && self.stateless.actions
            && actions::may_be(headers)
            && legacy_session(&parts.uri).is_none()
        {
            let body = self.collect(headers, body).await?;
            if actions::is_one(headers, &body) {
                let streamed = actions::wants_events(headers);
                return Ok(self.act(parts, body, streamed).await);
            }
            guard::check_accept(headers)?;
            return self.serve_rpc(parts, Coming::Whole::<B>(body)).await;
        }
        if *method == Method::POST {
            guard::check_accept(headers)?;
        }
        self.serve_rpc(parts, Coming::Wire(body)).await
    }

    /// An action, which stands alone.
    async fn act(&self, parts: Parts, body: Input, streamed: bool) -> Response<HttpBody> {
        let version = match actions::version(&parts.headers) {
            Ok(version) => version,
            Err(why) => return actions::unspoken(&why),
        };
        let exchange = self.take(parts.extensions.get());
        let head = self.head(&parts, None);
        let response = self.carry_out(exchange, head, parts.headers, body, streamed);
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

    /// The rest of a stream that broke off.
    fn resume_action(&self, id: &str, principal: Option<&Principal>) -> Response<HttpBody> {
        match self.running.resume(id, principal) {
            Resumed::Reader(reader) => self.stream(reader),
            Resumed::AtEnd => with(StatusCode::NO_CONTENT, HttpBody::empty()),
            Resumed::Gone => actions::not_kept(id),
        }
    }

    /// The stream of an action that a query names.
    async fn stream_action(&self, parts: Parts) -> Answer {
        guard::check_host(&parts.uri, &parts.headers, &self.options)?;
        let version = match actions::version(&parts.headers) {
            Ok(version) => version,
            Err(why) => return Ok(actions::unspoken(&why)),
        };
        if let Some(id) = actions::resumes(&parts.headers) {
            let response = self.resume_action(id, parts.extensions.get());
            return Ok(actions::versioned(response, &version));
        }
        let mut exchange = self.take(parts.extensions.get());
        let query = parts.uri.query().unwrap_or_default();
        let request = actions::of_query(query, |action| exchange.action_schema(action));
        let request = match request {
            Ok(request) => request,
            Err(why) => {
                let (status, kind) = (StatusCode::BAD_REQUEST, ErrorType::Validation);
                return Ok(actions::error(status, kind, why, None));
            }
        };
        let mut body = Input::with_room(request.len());
        body.extend(&request);
        let head = self.head(&parts, None);
        let response = self.carry_out(exchange, head, parts.headers, body, true);
        Ok(actions::versioned(response.await, &version))
    }

    async fn serve_rpc<B: Body>(self: &Arc<Self>, parts: Parts, body: Coming<B>) -> Answer {
        let Parts {
            method, headers, ..
        } = &parts;
        let principal = parts.extensions.get::<Principal>();
        let Some(sessions) = &self.sessions else {
            let body = self.whole(headers, body).await?;
            return Ok(self.exchange(parts, body).await);
        };
        match *method {
            Method::GET if is_legacy_stream(headers) => {
                return match self.options.sse {
                    true => self.open_legacy(sessions, principal, parts.uri.path()),
                    false => Err(NO_STREAM),
                };
            }
            Method::GET => {
                return self.listen(session(headers, sessions, principal)?, headers);
            }
            Method::DELETE => return end(sessions, session(headers, sessions, principal)?),
            _ => {}
        }
        if let Some(id) = legacy_session(&parts.uri).filter(|_| self.options.sse) {
            let session = sessions.get(id, principal).ok_or(GONE)?;
            let body = self.whole(headers, body).await?;
            return match session.say(&body, principal) {
                true => Ok(with(StatusCode::ACCEPTED, HttpBody::empty())),
                false if session.is_closed() => Err(GONE),
                false => Err(FULL),
            };
        }
        let route = route(headers, sessions, principal, self.handshake.revisions)?;
        let body = self.whole(headers, body).await?;
        match route {
            Route::Session(session) => {
                let head = self.head(&parts, Some(&session));
                self.post(&session, body, head, principal).await
            }
            Route::Stateless => Ok(self.exchange(parts, body).await),
            Route::Undecided => match Opening::of(&body, self.handshake.limits.max_depth) {
                Opening::Handshake => self.open(sessions, &parts, body).await,
                Opening::Stateless => Ok(self.exchange(parts, body).await),
                Opening::Neither => Err(NO_SESSION),
            },
        }
    }

    /// For who wants it.
    fn head(&self, parts: &Parts, session: Option<&Session>) -> Option<Arc<Head>> {
        if !self.hosting.wants_heads() {
            return None;
        }
        let headers = parts.headers.iter();
        let target = parts.uri.path_and_query();
        Some(Arc::new(Head {
            method: parts.method.as_str().into(),
            target: target.map_or("/", |target| target.as_str()).into(),
            headers: headers
                .map(|(name, value)| (name.as_str().into(), value.as_bytes().into()))
                .collect(),
            session: session.map(|session| (**session.id()).into()),
            peer: parts.extensions.get::<Peer>().map(|peer| peer.0),
        }))
    }

    /// Finds out who asks, where the server wants to know.
    ///
    /// # Errors
    /// The refusal of who cannot prove it.
    pub fn identify<B>(&self, request: &mut Request<B>) -> Result<(), Box<Response<HttpBody>>> {
        let Some(policy) = &self.policy else {
            return Ok(());
        };
        let (uri, headers) = (request.uri(), request.headers());
        if let Err(refusal) = guard::check_host(uri, headers, &self.options) {
            return Err(Box::new(match actions::says_so(headers) {
                true => actions::refused(refusal),
                false => refused(refusal),
            }));
        }
        identify::identify(policy, request)
    }

    /// Whether somebody wants to know where requests come from.
    pub fn wants_peers(&self) -> bool {
        self.hosting.wants_heads() || self.policy.is_some()
    }

    async fn whole<B: Body>(&self, headers: &HeaderMap, body: Coming<B>) -> Result<Input, Refusal> {
        match body {
            Coming::Wire(body) => self.collect(headers, body).await,
            Coming::Whole(body) => Ok(body),
        }
    }

    async fn collect<B: Body>(&self, headers: &HeaderMap, body: B) -> Result<Input, Refusal> {
        collect(headers, body, &self.options.limits).await
    }

    /// A request that stands alone.
    async fn exchange(&self, parts: Parts, body: Input) -> Response<HttpBody> {
        let head = self.head(&parts, None);
        let Parts {
            headers,
            extensions,
            ..
        } = parts;
        let mut exchange = self.take(extensions.get());
        exchange.begin(headers, body, head);
        poll_fn(|cx| exchange.poll(cx)).await;
        self.answer(exchange)
    }

    /// An exchange that has not begun.
    fn take(&self, principal: Option<&Principal>) -> Box<Exchange> {
        let config = &self.stateless;
        self.spare.take(principal).unwrap_or_else(|| {
            let timers = self.timekeeper.handle(config);
            Box::new(Exchange::new(&*self.hosting, config, timers, principal))
        })
    }

    /// R-HTP-17, R-HTP-18: one message is JSON; anything before the answer makes it events.
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

    fn begin(&self, principal: Option<&Principal>) -> Result<Arc<Session>, Refusal> {
        let name = unguessable::name().ok_or(FULL)?;
        let (hosting, config) = (&*self.hosting, &self.handshake);
        let (principal, replay_bytes) = (principal.cloned(), self.options.replay_bytes);
        let session = Session::new(name, hosting, config, principal, replay_bytes);
        Ok(Arc::new(session))
    }

    /// From now on a session is found by its name, and looked after.
    fn admit(self: &Arc<Self>, sessions: &Sessions, session: Arc<Session>) -> Result<(), Refusal> {
        if !sessions.insert(session.clone()) {
            return Err(FULL);
        }
        count(&self.metrics.sessions);
        tokio::spawn(attend(session, Arc::downgrade(self)));
        Ok(())
    }

    /// Begins a session with its first message (R-SES-01).
    async fn open(self: &Arc<Self>, sessions: &Sessions, parts: &Parts, body: Input) -> Answer {
        let session = self.begin(parts.extensions.get())?;
        let unlisted = Unlisted(Some(session.clone()));
        let head = self.head(parts, Some(&session));
        let posted = self.post(&session, body, head, parts.extensions.get());
        let mut response = self.drive(&session, posted).await?;
        if session.revision().is_some() {
            let id = HeaderValue::from_str(session.id()).map_err(|_| FULL)?;
            response.headers_mut().insert(SESSION, id);
            self.admit(sessions, session)?;
            unlisted.listed();
        }
        Ok(response)
    }

    /// Does something on a session that nobody looks after yet.
    async fn drive<T>(&self, session: &Session, work: impl Future<Output = T>) -> T {
        let (mut work, mut alarm) = (pin!(work), Alarm::default());
        poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            // Where it ends, so does the work.
            let _ = session.poll(&mut alarm, self.options.session_ttl, cx);
            work.as_mut().poll(cx)
        })
        .await
    }

    /// Begins a session with its stream, as 2024-11-05 has it (R-LEG-01, R-LEG-02).
    fn open_legacy(
        self: &Arc<Self>,
        sessions: &Sessions,
        principal: Option<&Principal>,
        path: &str,
    ) -> Answer {
        let session = self.begin(principal)?;
        let uri = path.to_owned() + &legacy_query(session.id());
        let reading = session.listen().ok_or(GONE)?;
        let reader = Reader::new(session.clone(), reading).begin(Greeting::Endpoint(uri));
        self.admit(sessions, session)?;
        Ok(self.stream(reader))
    }

    /// A message of a session, and what is said to it.
    async fn post(
        &self,
        session: &Arc<Session>,
        body: Input,
        head: Option<Arc<Head>>,
        sender: Option<&Principal>,
    ) -> Answer {
        let reading = session.post(body, head, sender).ok_or(GONE)?;
        let mut reader = Reader::new(session.clone(), reading);
        Ok(match reader.said().await {
            // It ended before there was an answer.
            Said::Nothing if session.is_closed() => return Err(GONE),
            Said::Nothing => with(StatusCode::ACCEPTED, HttpBody::empty()),
            Said::Answer(message) => {
                let status = answers::session_status(&message);
                answers::message(status, message)
            }
            Said::Stream => {
                let revision = session.revision();
                let primes = revision.is_some_and(|revision| revision.rules().primes_streams);
                self.stream(reader.begin(match primes {
                    true => Greeting::Position,
                    false => Greeting::None,
                }))
            }
        })
    }

    /// What a session says outside of requests, or has said (R-HTP-11, R-SSE-04).
    fn listen(&self, session: Arc<Session>, headers: &HeaderMap) -> Answer {
        let last = headers.get(LAST_EVENT).and_then(|id| id.to_str().ok());
        let last = last.and_then(Position::parse);
        let resumed = last.and_then(|at| session.resume(at));
        let reading = match (resumed, last) {
            (Some(reading), _) => reading,
            // R-SSE-10: what it was is gone; that is no reason to send away who reads the other.
            (None, Some(at)) if at.stream != STANDING && session.is_listened_to() => {
                return Err(TOO_OLD);
            }
            (None, _) => session.listen().ok_or(GONE)?,
        };
        Ok(self.stream(Reader::new(session, reading).begin(Greeting::None)))
    }

    fn stream(&self, source: impl Source + 'static) -> Response<HttpBody> {
        let events = Events::new(source, self.options.comment_interval);
        answers::stream(HttpBody::events(events))
    }
}

/// R-SES-06.
fn end(sessions: &Sessions, session: Arc<Session>) -> Answer {
    sessions.remove(session.id());
    session.close(ConnectionError::ClosedByPeer);
    Ok(with(StatusCode::NO_CONTENT, HttpBody::empty()))
}

/// A session that is not found by its name yet: it ends with this.
struct Unlisted(Option<Arc<Session>>);

impl Unlisted {
    fn listed(mut self) {
        self.0 = None;
    }
}

impl Drop for Unlisted {
    fn drop(&mut self) {
        if let Some(session) = &self.0 {
            session.close(ConnectionError::ClosedByPeer);
        }
    }
}

/// Looks after a session until it has ended.
async fn attend(session: Arc<Session>, endpoint: Weak<Endpoint>) {
    let Some(ttl) = endpoint
        .upgrade()
        .map(|endpoint| endpoint.options.session_ttl)
    else {
        return;
    };
    let mut alarm = Alarm::default();
    poll_fn(|cx| session.poll(&mut alarm, ttl, cx)).await;
    let Some(endpoint) = endpoint.upgrade() else {
        return;
    };
    count(&endpoint.metrics.sessions_ended);
    if let Some(sessions) = &endpoint.sessions {
        sessions.remove(session.id());
    }
}

/// The same, with the revisions of one era.
fn of_era(config: &Config, era: Era) -> Arc<Config> {
    let mut config = config.clone();
    let all = config.revisions.iter();
    config.revisions = all.filter(|one| one.era() == era).collect();
    Arc::new(config)
}
