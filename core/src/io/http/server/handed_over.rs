//! A worker whose sessions another one has taken over, since processes share them: it takes only messages about its own requests in flight.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use http_body::Body;
use hyper::Method;
use hyper::http::request::Parts;

use super::collect::collect;
use super::endpoint::Endpoint;
use super::headers::{RequestHeaders, SESSION};
use super::refusal::{HttpRefusal, MISDIRECTED};
use super::session::HttpSession;
use super::session_name::at_worker;
use super::sessions::Sessions;
use crate::buffer::Input;
use crate::message::{self, Envelope, Frame, MessageRef};

impl Endpoint {
    /// Whether a request is of a session that the workers serve which have taken over.
    pub fn has_handed_over(&self, parts: &Parts) -> bool {
        let sessions = self.sessions.as_ref().zip(session_id(parts));
        sessions.is_some_and(|(sessions, id)| sessions.has_handed_over(id))
    }

    /// The body of a request of such a session, if it is about requests in flight here alone. No credentials are checked: the worker that
    /// answers the request does that, and a proof of them is accepted once.
    ///
    /// # Errors
    /// [`MISDIRECTED`] if it is for a worker that has taken over; why the body cannot be read.
    pub async fn left<B: Body>(&self, parts: &Parts, body: B) -> Result<Bytes, HttpRefusal> {
        let sessions = self.sessions.as_ref().zip(session_id(parts));
        let (sessions, id) = sessions.ok_or(MISDIRECTED)?;
        if parts.method != Method::POST {
            return Err(MISDIRECTED);
        }
        let headers = RequestHeaders::of(&parts.headers);
        let mut body = collect(&headers, body, &self.options.limits, &self.budget).await?;
        let len = body.len();
        match sessions.awaits(id, &body) {
            true => Ok(body.take_block(len).slice(..len)),
            false => Err(MISDIRECTED),
        }
    }
}

impl Sessions {
    /// Whether another worker has taken over the session of this id, as processes share it: what is left here are its requests in
    /// flight.
    fn has_handed_over(&self, id: &str) -> bool {
        let adoption = self.adoption.as_ref();
        self.are_given_up.load(Relaxed) && adoption.is_some_and(|it| it.shared.is_shared(id))
    }

    /// Whether a body is about requests in flight here, of the session of this id alone.
    fn awaits(&self, id: &str, body: &Input) -> bool {
        let id = at_worker(id, self.worker);
        let session = id.and_then(|id| self.table.any(&id));
        session.is_some_and(|session| session.awaits(body))
    }
}

impl HttpSession {
    /// Whether a body is about requests in flight of this session alone: answers to its questions, their progress, cancellations.
    fn awaits(&self, body: &Input) -> bool {
        let Some(frame) = Frame::new(body.padded(), body.len()) else {
            return false;
        };
        let state = self.state();
        let max_depth = state.connection.handle().config().limits.max_depth;
        let is_awaited = |frame| {
            let mut envelope = Envelope::new();
            message::decode(frame, max_depth, &mut envelope).is_ok()
                && state
                    .connection
                    .concerns(&MessageRef::new(frame, &envelope))
        };
        let mut batch = message::batch(frame).peekable();
        match batch.peek() {
            Some(_) => batch.all(is_awaited),
            None => is_awaited(frame),
        }
    }
}

/// The session that the headers of a request name.
fn session_id(parts: &Parts) -> Option<&str> {
    parts.headers.get(SESSION)?.to_str().ok()
}
