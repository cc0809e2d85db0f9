//! Requests of sessions: beginning one, posting to it, reading its streams and ending it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;

use http_body::Body;
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue};

use super::answers::{self, FULL, GONE, NO_SESSION, NO_STREAM, Refusal, TOO_OLD, with};
use super::body::HttpBody;
use super::endpoint::{Answer, Coming, Endpoint};
use super::gate::{Admitted, Wish};
use super::log::Position;
use super::reader::{Greeting, Reader, Said};
use super::route::{
    LAST_EVENT, Opening, Route, SESSION, is_legacy_stream, legacy_query, legacy_session, route,
    session,
};
use super::session::{STANDING, Session};
use super::sessions::Sessions;
use super::wait::Alarm;
use crate::buffer::Input;
use crate::connection::{Principal, Source};
use crate::error::ConnectionError;
use crate::handler::Head;
use crate::io::net::metrics::count;
use crate::io::net::turns;
use crate::unguessable;

impl Endpoint {
    /// Serves requests of sessions, requests that begin one, and requests that turn out to stand alone.
    pub(super) async fn serve_sessions<B: Body>(
        self: &Arc<Self>,
        sessions: &Sessions,
        request: Admitted,
        body: Coming<B>,
    ) -> Answer {
        let (headers, principal) = (request.headers(), request.principal());
        match request.wish() {
            Wish::Stream if is_legacy_stream(headers) => {
                return match self.options.sse {
                    true => self.open_legacy(sessions, &request),
                    false => Err(NO_STREAM),
                };
            }
            Wish::Stream => {
                return self.listen(session(headers, sessions, principal)?, headers);
            }
            Wish::End => return end(sessions, session(headers, sessions, principal)?),
            _ => {}
        }
        if let Some(id) = legacy_session(&request.parts().uri).filter(|_| self.options.sse) {
            let session = sessions.get(id, principal).ok_or(GONE)?;
            let body = self.whole(headers, body).await?;
            if session.advance() {
                sessions.advance(&session);
            }
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
                let head = self.head(&request, Some(&session));
                self.post(&session, body, head, principal).await
            }
            Route::Stateless => Ok(self.exchange(request, body).await),
            Route::Undecided => match Opening::of(&body, self.handshake.limits.max_depth) {
                Opening::Handshake => self.open(sessions, &request, body).await,
                Opening::Stateless => Ok(self.exchange(request, body).await),
                Opening::Neither => Err(NO_SESSION),
            },
        }
    }

    fn begin(&self, request: &Admitted) -> Result<Arc<Session>, Refusal> {
        let name = unguessable::name().ok_or(FULL)?;
        let (hosting, config) = (&*self.hosting, &self.handshake);
        let who = (request.principal().cloned(), self.source(request));
        let session = Session::new(name, hosting, config, who, self.options.replay_bytes);
        Ok(Arc::new(session))
    }

    /// Lists a session, so that requests find it by its id, and spawns the task that drives it.
    fn admit(
        self: &Arc<Self>,
        sessions: &Sessions,
        session: Arc<Session>,
        source: Source,
    ) -> Result<(), Refusal> {
        if !sessions.insert(session.clone(), source) {
            return Err(FULL);
        }
        count(&self.metrics.sessions);
        turns::spawn(attend(session, Arc::downgrade(self)));
        Ok(())
    }

    /// Begins a session with its first message (R-SES-01).
    async fn open(
        self: &Arc<Self>,
        sessions: &Sessions,
        request: &Admitted,
        body: Input,
    ) -> Answer {
        let session = self.begin(request)?;
        let unlisted = Unlisted(Some(session.clone()));
        let head = self.head(request, Some(&session));
        let posted = self.post(&session, body, head, request.principal());
        let mut response = self.drive(&session, posted).await?;
        if session.revision().is_some() {
            let id = HeaderValue::from_str(session.id()).map_err(|_| FULL)?;
            response.headers_mut().insert(SESSION, id);
            self.admit(sessions, session, self.source(request))?;
            unlisted.listed();
        }
        Ok(response)
    }

    /// Runs `work` while driving a session that has no task yet.
    async fn drive<T>(&self, session: &Session, work: impl Future<Output = T>) -> T {
        let (mut work, mut alarm) = (pin!(work), Alarm::default());
        poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            // If the session ends here, `work` completes as well.
            let _ = session.poll(&mut alarm, self.options.session_ttl, cx);
            work.as_mut().poll(cx)
        })
        .await
    }

    /// Begins a session with its stream, as in revision 2024-11-05 (R-LEG-01, R-LEG-02).
    fn open_legacy(self: &Arc<Self>, sessions: &Sessions, request: &Admitted) -> Answer {
        let session = self.begin(request)?;
        let uri = request.parts().uri.path().to_owned() + &legacy_query(session.id());
        let reading = session.listen().ok_or(GONE)?;
        let reader = Reader::new(session.clone(), reading).begin(Greeting::Endpoint(uri));
        self.admit(sessions, session, self.source(request))?;
        Ok(self.stream(reader))
    }

    /// Posts a message to a session and returns its answer.
    async fn post(
        &self,
        session: &Arc<Session>,
        body: Input,
        head: Option<Arc<Head>>,
        sender: Option<&Principal>,
    ) -> Answer {
        if session.advance()
            && let Some(sessions) = &self.sessions
        {
            sessions.advance(session);
        }
        let reading = session.post(body, head, sender).ok_or(GONE)?;
        let mut reader = Reader::new(session.clone(), reading);
        Ok(match reader.said().await {
            // The session ended before there was an answer.
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

    /// Opens the standing stream of a session, or resumes another (R-HTP-11, R-SSE-04).
    fn listen(&self, session: Arc<Session>, headers: &HeaderMap) -> Answer {
        let last = headers.get(LAST_EVENT).and_then(|id| id.to_str().ok());
        let last = last.and_then(Position::parse);
        let resumed = last.and_then(|at| session.resume(at));
        let reading = match (resumed, last) {
            (Some(reading), _) => reading,
            // R-SSE-10: the events are gone, but that is no reason to displace the reader of the
            // standing stream.
            (None, Some(at)) if at.stream != STANDING && session.is_listened_to() => {
                return Err(TOO_OLD);
            }
            (None, _) => session.listen().ok_or(GONE)?,
        };
        Ok(self.stream(Reader::new(session, reading).begin(Greeting::None)))
    }
}

/// Ends a session on request of its client (R-SES-06).
fn end(sessions: &Sessions, session: Arc<Session>) -> Answer {
    sessions.remove(session.id());
    session.close(ConnectionError::ClosedByPeer);
    Ok(with(StatusCode::NO_CONTENT, HttpBody::empty()))
}

/// A session that is not listed yet; it is closed when this guard is dropped.
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

/// Drives a session until it has ended, then removes it from the table.
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
