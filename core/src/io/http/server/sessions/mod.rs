//! Requests of sessions: beginning one, posting to it, reading its streams and ending it.

#[cfg(feature = "sealing")]
mod elsewhere;

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::task::Poll;

use hyper::StatusCode;
use hyper::header::HeaderValue;

#[cfg(feature = "sealing")]
use super::adoption::Adoption;
use super::gate::Admitted;
use super::headers::{LAST_EVENT, SESSION, legacy_session, legacy_uri};
use super::options::HttpOptions;
use super::post_answer::PostAnswer;
#[cfg(feature = "sealing")]
use super::refusal::END_UNTOLD;
use super::refusal::{
    EVENTS_GONE, HttpRefusal, NO_SESSION, NO_SESSION_LEFT, NO_STREAM, SESSION_GONE,
};
use super::response::{self, HttpAnswer};
use super::session::HttpSession;
use super::session_logs::SESSION_LOG;
use super::session_name::name;
#[cfg(feature = "sealing")]
use super::session_name::{at_worker, of_worker};
use super::session_reader::{FirstEvent, SessionReader};
use super::session_table::SessionTable;
#[cfg(feature = "sealing")]
use super::session_wishes::Wishes;
use super::sse::StreamPosition;
use super::timekeeper::Timekeeper;
use crate::buffer::Input;
use crate::connection::Config;
use crate::error::ConnectionError;
use crate::io::net::metrics::Metrics;
use crate::io::net::turns;
use crate::io::wait::Alarm;
use crate::message::{self, Envelope, Frame};
use crate::server::Hosting;

/// The sessions of one endpoint.
pub struct Sessions {
    hosting: Arc<dyn Hosting>,
    config: Arc<Config>,
    options: Arc<HttpOptions>,
    pub(super) table: SessionTable,
    pub(super) worker: Option<u64>,
    /// Times what outlives a session in this process.
    #[cfg_attr(
        not(feature = "sealing"),
        expect(dead_code, reason = "only shared sessions go on elsewhere")
    )]
    timekeeper: Arc<Timekeeper>,
    /// Requests are refused, since another worker has taken over.
    pub(super) are_given_up: AtomicBool,
    /// What sessions of other processes are accepted by.
    #[cfg(feature = "sealing")]
    pub(super) adoption: Option<Adoption>,
}

impl Sessions {
    /// `worker`: the number of this process among those that serve the endpoint.
    pub fn new(
        (hosting, config): (Arc<dyn Hosting>, Arc<Config>),
        options: Arc<HttpOptions>,
        metrics: Arc<Metrics>,
        (worker, timekeeper): (Option<u64>, Arc<Timekeeper>),
    ) -> Self {
        let (max, each) = (options.max_sessions, options.max_sessions_per_peer);
        Self {
            hosting,
            config,
            table: SessionTable::new(max, each, metrics),
            #[cfg(feature = "sealing")]
            adoption: options
                .shared_sessions
                .clone()
                .map(|shared| Adoption::new(shared, &options)),
            options,
            worker,
            timekeeper,
            are_given_up: AtomicBool::new(false),
        }
    }

    /// From now on there is no session for a request, so its client begins another one; what belongs to a request in
    /// flight is still taken. `initialize` is answered as ever: a client knows what to do about a session that is gone, but
    /// not about one that cannot begin.
    pub fn give_up(&self) {
        self.are_given_up.store(true, Relaxed);
    }

    /// Ends all sessions gracefully.
    pub fn drain(&self) {
        self.table.drain(self.options.grace);
    }

    /// The session that the headers name (R-SES-04, R-SES-05, R-SES-08).
    ///
    /// # Errors
    /// When no session is named, or it does not exist.
    pub async fn named(
        self: &Arc<Self>,
        request: &Admitted<'_>,
    ) -> Result<Arc<HttpSession>, HttpRefusal> {
        let id = request.headers().session.ok_or(NO_SESSION)?;
        let found = self.find(id.to_str().ok(), request);
        #[cfg(feature = "sealing")]
        if let (Err(_), Some(adoption), Ok(id)) = (&found, &self.adoption, id.to_str()) {
            // Another worker may have named it.
            let id = at_worker(id, self.worker).ok_or(SESSION_GONE)?;
            if let Ok(session) = self.find(Some(&id), request) {
                return Ok(session);
            }
            return Box::pin(self.adopt(adoption, id, request)).await;
        }
        found
    }

    /// An id for the session that `body` begins (R-SES-02).
    fn name(&self, request: &Admitted<'_>, body: &Input) -> Option<Arc<str>> {
        #[cfg(feature = "sealing")]
        if let Some(adoption) = &self.adoption
            && let Some(id) = adoption.shared.id(&self.config, request.principal(), body)
        {
            return Some(of_worker(&id, self.worker));
        }
        let _ = (request, body);
        name(self.worker)
    }

    /// The session that the URI names (2024-11-05).
    ///
    /// # Errors
    /// When it does not exist.
    pub fn named_by_uri(&self, request: &Admitted<'_>) -> Result<Arc<HttpSession>, HttpRefusal> {
        self.find(legacy_session(&request.parts().uri), request)
    }

    fn find(
        &self,
        id: Option<&str>,
        request: &Admitted<'_>,
    ) -> Result<Arc<HttpSession>, HttpRefusal> {
        let session = id.and_then(|id| self.table.get(id, request.principal()));
        session.ok_or(SESSION_GONE)
    }

    /// Creates a session that is not listed yet, and spawns the task that drives it.
    fn create(self: &Arc<Self>, request: &Admitted<'_>, name: Arc<str>) -> Arc<HttpSession> {
        let source = request.source(&self.options.trusted_proxies);
        let sender = (request.principal().cloned(), source);
        let (hosting, replay_bytes) = (&*self.hosting, self.options.replay_bytes);
        let session = HttpSession::new(name, hosting, &self.config, sender, replay_bytes);
        #[cfg(feature = "sealing")]
        let session = {
            let mut session = session;
            if let Some(adoption) = &self.adoption {
                let is_shared = adoption.shared.is_shared(session.id());
                session.share(is_shared.then(|| self.timekeeper.handle()));
            }
            session
        };
        let session = Arc::new(session);
        turns::spawn(attend(Arc::downgrade(&session), Arc::downgrade(self)));
        session
    }

    /// Lists a session, so that requests find it by its id.
    fn list(&self, session: Arc<HttpSession>, request: &Admitted<'_>) -> Result<(), HttpRefusal> {
        let source = request.source(&self.options.trusted_proxies);
        if !self.table.insert(session.clone(), source) {
            return Err(NO_SESSION_LEFT);
        }
        if session.is_closed() {
            // Its task may have ended before it was listed.
            self.table.remove(session.id());
        }
        Ok(())
    }

    /// Begins a session with its first message (R-SES-01).
    ///
    /// # Errors
    /// When all sessions are in use.
    pub async fn begin(self: &Arc<Self>, request: &Admitted<'_>, body: Input) -> HttpAnswer {
        let name = self.name(request, &body).ok_or(NO_SESSION_LEFT)?;
        let session = self.create(request, name);
        #[cfg(feature = "sealing")]
        if let Some(adoption) = &self.adoption {
            self.follow_ends(adoption);
        }
        let mut is_granted = false;
        let look = |answer: &PostAnswer| is_granted = answer.is_granted();
        let mut response = self.post(&session, request, body, look).await?;
        // A front has the revision before it knows whether the session begins.
        if is_granted && session.revision().is_some() {
            let id = HeaderValue::from_str(session.id()).map_err(|_| NO_SESSION_LEFT)?;
            response.headers_mut().insert(SESSION, id);
            self.list(session, request)?;
        }
        Ok(response)
    }

    /// Whether a message begins a request when no request begins any more.
    ///
    /// # Errors
    /// That the session is gone: another worker begins another one.
    #[inline(always)]
    pub fn takes(&self, body: &Input) -> Result<(), HttpRefusal> {
        match self.are_given_up.load(Relaxed) && is_request(body, &self.config) {
            true => Err(SESSION_GONE),
            false => Ok(()),
        }
    }

    /// The session that takes a message: this one, or one that begins in its place because another worker has taken
    /// over, if processes share sessions. The next message of the client then comes to that worker.
    ///
    /// # Errors
    /// As [`takes`](Self::takes), if a session belongs to one process.
    #[inline(always)]
    pub async fn taking(
        self: &Arc<Self>,
        session: Arc<HttpSession>,
        request: &Admitted<'_>,
        body: &Input,
    ) -> Result<Arc<HttpSession>, HttpRefusal> {
        match self.takes(body) {
            Ok(()) => Ok(session),
            Err(gone) => Box::pin(self.replaced(session, request))
                .await
                .ok_or(gone)?,
        }
    }

    /// What takes the requests of a session that a worker has which is to end.
    #[cfg_attr(not(feature = "sealing"), expect(clippy::unused_async))]
    async fn replaced(
        self: &Arc<Self>,
        session: Arc<HttpSession>,
        request: &Admitted<'_>,
    ) -> Option<Result<Arc<HttpSession>, HttpRefusal>> {
        #[cfg(feature = "sealing")]
        if let Some(adoption) = &self.adoption {
            if !session.is_draining() {
                return Some(Ok(session));
            }
            let id = session.id().clone();
            self.table.remove_this(&id, &Arc::downgrade(&session));
            return Some(self.adopt(adoption, id, request).await);
        }
        let _ = (session, request);
        None
    }

    /// Posts a message to a session and returns its answer, which `look` sees first.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn post(
        self: &Arc<Self>,
        session: &Arc<HttpSession>,
        request: &Admitted<'_>,
        body: Input,
        look: impl FnOnce(&PostAnswer),
    ) -> HttpAnswer {
        self.advance(session);
        #[cfg(feature = "sealing")]
        let wishes = self
            .adoption
            .as_ref()
            .and_then(|all| Some((all, Wishes::of(&body)?)));
        let head = self.hosting.wants_heads();
        let head = head.then(|| request.head(Some(session.id())));
        let mut message = Some((body, head));
        let log = poll_fn(|cx| {
            let message = message.take().unwrap_or_default();
            Poll::Ready(session.post(message, request, false, cx))
        });
        let log = log.await.ok_or(SESSION_GONE)?;
        // Detaches itself if the client is gone.
        let reader = SessionReader::new(session.clone(), log);
        let answer = poll_fn(|cx| session.poll_answer(log, cx)).await;
        #[cfg(feature = "sealing")]
        if let Some((adoption, wishes)) = wishes
            && answer.is_granted()
        {
            Box::pin(adoption.note(session, *wishes)).await;
        }
        look(&answer);
        Ok(match answer {
            // The session ended before there was an answer.
            PostAnswer::None if session.is_closed() => return Err(SESSION_GONE),
            PostAnswer::None => response::empty(StatusCode::ACCEPTED),
            PostAnswer::Only(message) => {
                let status = response::session_status(&message);
                response::message(status, message)
            }
            PostAnswer::Stream => {
                #[cfg(feature = "sealing")]
                self.share(session, log).await;
                let revision = session.revision();
                let primes = revision.is_some_and(|revision| revision.rules().primes_streams);
                let first = primes.then_some(FirstEvent::Position);
                response::events(reader.begin(first), self.options.comment_interval)
            }
        })
    }

    /// Posts a message that is answered on the session's own stream (R-LEG-04).
    ///
    /// # Errors
    /// When the session has ended, or its client does not read its answers.
    pub fn post_legacy(
        &self,
        session: &HttpSession,
        request: &Admitted<'_>,
        body: &Input,
    ) -> HttpAnswer {
        self.takes(body)?;
        self.advance(session);
        match session.say(body, request.principal()) {
            true => Ok(response::empty(StatusCode::ACCEPTED)),
            false if session.is_closed() => Err(SESSION_GONE),
            false => Err(NO_SESSION_LEFT),
        }
    }

    fn advance(&self, session: &HttpSession) {
        if session.advance() {
            self.table.advance(session);
        }
    }

    /// Opens the stream of a session, or resumes another (R-HTP-11, R-SSE-04). A client of 2024-11-05
    /// begins its session with it (R-LEG-01, R-LEG-02).
    ///
    /// # Errors
    /// When the session does not exist, or the events are gone.
    pub async fn open_stream(self: &Arc<Self>, request: &Admitted<'_>) -> HttpAnswer {
        let headers = request.headers();
        let reader = match headers.names_nothing() {
            true if !self.options.sse => return Err(NO_STREAM),
            true => self.begin_legacy(request)?,
            false => {
                let last = headers.all.get(LAST_EVENT).and_then(|id| id.to_str().ok());
                let last = last.and_then(StreamPosition::parse);
                let session = self.named(request).await?;
                #[cfg(feature = "sealing")]
                if let Some(reader) = self.resume_elsewhere(&session, last).await? {
                    return Ok(response::events(reader, self.options.comment_interval));
                }
                #[cfg(feature = "sealing")]
                let session = match &self.adoption {
                    Some(adoption) if last.is_none_or(HttpSession::is_standing) => {
                        self.look_again(adoption, session, request).await?
                    }
                    _ => session,
                };
                listen(session, last)?
            }
        };
        Ok(response::events(reader, self.options.comment_interval))
    }

    fn begin_legacy(
        self: &Arc<Self>,
        request: &Admitted<'_>,
    ) -> Result<SessionReader, HttpRefusal> {
        let name = name(self.worker).ok_or(NO_SESSION_LEFT)?;
        let session = self.create(request, name);
        let uri = legacy_uri(request.parts().uri.path(), session.id());
        let log = session.listen().ok_or(SESSION_GONE)?;
        let reader = SessionReader::new(session.clone(), log);
        self.list(session, request)?;
        Ok(reader.begin(Some(FirstEvent::Endpoint(uri))))
    }

    /// Ends a session on request of its client (R-SES-06). A client whose request was answered with 503 repeats it, so a shared
    /// session that has ended is ended again.
    ///
    /// # Errors
    /// When it does not exist, or other processes that accept it cannot be told.
    pub async fn end(self: &Arc<Self>, request: &Admitted<'_>) -> HttpAnswer {
        let session = self.named(request).await;
        if let Ok(session) = &session {
            self.table.remove(session.id());
            session.close(ConnectionError::ClosedByPeer);
        }
        #[cfg(feature = "sealing")]
        if let Some(adoption) = &self.adoption
            && let Some(Ok(id)) = request.headers().session.map(HeaderValue::to_str)
            && (session.is_ok() || adoption.shared.facts(id, request.principal()).is_some())
        {
            return match adoption.shared.end(id).await {
                Ok(()) => Ok(response::empty(StatusCode::NO_CONTENT)),
                Err(why) => {
                    event!(warn, %why, "other processes are not told that a session has ended");
                    let _ = why;
                    Err(END_UNTOLD)
                }
            };
        }
        session.map(|_| response::empty(StatusCode::NO_CONTENT))
    }
}

/// Whether a body brings requests: one, or a batch.
fn is_request(body: &Input, config: &Config) -> bool {
    let Some(frame) = Frame::new(body.padded(), body.len()) else {
        return false;
    };
    let mut envelope = Envelope::new();
    let decoded = message::decode(frame, config.limits.max_depth, &mut envelope);
    decoded.is_ok()
        && matches!(
            envelope.kind(),
            message::Kind::Request | message::Kind::Batch
        )
}

fn listen(
    session: Arc<HttpSession>,
    last: Option<StreamPosition>,
) -> Result<SessionReader, HttpRefusal> {
    let resumed = last.and_then(|at| session.resume(at));
    let log = match (resumed, last) {
        (Some(log), _) => log,
        // R-SSE-10: the events are gone, but that is no reason to displace the reader of the
        // session's own stream.
        (None, Some(at))
            if session.stream_of(at) != Some(SESSION_LOG) && session.is_listened_to() =>
        {
            return Err(EVENTS_GONE);
        }
        (None, _) => session.listen().ok_or(SESSION_GONE)?,
    };
    Ok(SessionReader::new(session, log).begin(None))
}

/// Drives a session until it has ended, then removes it from the table.
async fn attend(session: Weak<HttpSession>, sessions: Weak<Sessions>) {
    let ttl = sessions.upgrade().map(|all| all.options.session_ttl);
    let mut alarm = Alarm::default();
    let ended = poll_fn(|cx| match session.upgrade().zip(ttl) {
        Some((session, ttl)) => {
            let ended = session.poll(&mut alarm, ttl, cx);
            ended.map(|()| Some(session.id().clone()))
        }
        None => Poll::Ready(None),
    });
    if let (Some(id), Some(sessions)) = (ended.await, sessions.upgrade()) {
        sessions.table.remove_this(&id, &session);
    }
}
