//! Sessions that other processes have, too.

use std::sync::Arc;

use super::super::adoption::{Adoption, repeat, take_in};
use super::super::following::Following;
use super::super::gate::Admitted;
use super::super::refusal::{EVENTS_AWAY, HttpRefusal, NOT_BEGUN_HERE, SESSION_GONE};
use super::super::session::HttpSession;
use super::super::session_logs::LogReader;
use super::super::session_name::at_worker;
use super::super::shared_events::RemoteReader;
use super::super::shared_sessions::KnownSession;
use super::super::sse::StreamPosition;
use super::Sessions;
use crate::buffer::Input;
use crate::error::ConnectionError;

impl Sessions {
    /// Begins a session again that another process has begun, by what its id says.
    ///
    /// # Errors
    /// When no process has begun it, it belongs to somebody else, is too old or has ended.
    pub(super) async fn adopt(
        self: &Arc<Self>,
        adoption: &Adoption,
        id: Arc<str>,
        request: &Admitted<'_>,
    ) -> Result<Arc<HttpSession>, HttpRefusal> {
        let facts = adoption.shared.facts(&id, request.principal());
        let facts = facts.ok_or(SESSION_GONE)?;
        // Requests of the same session that come at once begin it once.
        let turn = adoption.turns.at(&id).await;
        if let Ok(session) = self.find(Some(&id), request) {
            return Ok(session);
        }
        let known = adoption.shared.known(&id).await;
        if matches!(known, KnownSession::Ended) {
            return Err(SESSION_GONE);
        }
        self.follow_ends(adoption);
        let session = self.create(request, id.clone());
        if !repeat(&session, request, facts.initialize()).await {
            return Err(NOT_BEGUN_HERE);
        }
        if session.revision() != Some(facts.revision()) {
            return Err(SESSION_GONE);
        }
        let mut opened = Input::new();
        opened.extend(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
        repeat(&session, request, opened).await;
        take_in(known, &mut *session.noted.lock().await, &session, request).await?;
        self.list(session.clone(), request)?;
        drop(turn);
        self.look_again(adoption, session, request).await
    }

    /// Takes in what has changed of a session at other processes.
    ///
    /// # Errors
    /// When its client has ended it.
    pub(super) async fn look_again(
        &self,
        adoption: &Adoption,
        session: Arc<HttpSession>,
        request: &Admitted<'_>,
    ) -> Result<Arc<HttpSession>, HttpRefusal> {
        if let Err(gone) = adoption.look_again(&session, request).await {
            self.close(session.id());
            return Err(gone);
        }
        Ok(session)
    }

    /// Ends a session that its client has ended.
    fn close(&self, id: &Arc<str>) {
        if let Some(ended) = self.table.remove(id) {
            ended.close(ConnectionError::ClosedByPeer);
        }
    }

    /// Ends sessions whose clients have ended them at other processes, from now on.
    pub(super) fn follow_ends(self: &Arc<Self>, adoption: &Adoption) {
        adoption.following.get_or_init(|| {
            let (shared, sessions) = (adoption.shared.clone(), Arc::downgrade(self));
            let follow = async move {
                let ended = |id: &str| {
                    let sessions = sessions.upgrade();
                    if let Some(all) = &sessions
                        && let Some(id) = at_worker(id, all.worker)
                    {
                        all.close(&id);
                    }
                    sessions.is_some()
                };
                shared.follow(ended).await;
            };
            Following::begin(follow)
        });
    }

    /// Has other processes able to go on with the stream of a reader.
    pub(super) async fn share(self: &Arc<Self>, session: &Arc<HttpSession>, reader: LogReader) {
        let events = self.adoption.as_ref().and_then(|all| all.events.as_ref());
        if let Some(events) = events {
            let sessions = Arc::downgrade(self);
            let left = move |id: &str, stream| {
                let sessions = sessions.upgrade();
                if let Some(all) = &sessions
                    && let Some(id) = at_worker(id, all.worker)
                    && let Some(session) = all.table.any(&id)
                {
                    session.displace(StreamPosition { stream, read: 0 });
                }
                sessions.is_some()
            };
            events.share(session, reader, left).await;
        }
    }

    /// Goes on with a stream of another process; `None` if there is no such stream, or its events are gone.
    ///
    /// # Errors
    /// When the store is away.
    pub(super) async fn resume_elsewhere(
        &self,
        session: &HttpSession,
        last: Option<StreamPosition>,
    ) -> Result<Option<RemoteReader>, HttpRefusal> {
        let events = self.adoption.as_ref().and_then(|all| all.events.as_ref());
        let Some((events, at)) = events.zip(last) else {
            return Ok(None);
        };
        let own = session.stream_of(at);
        let is_kept = own.and_then(|own| session.with_log(own, |log| log.keeps(at.read)));
        if HttpSession::is_standing(at) || is_kept == Some(true) {
            return Ok(None);
        }
        events.resume(session.id(), at).await.map_err(|why| {
            event!(warn, %why, "a stream of another process cannot be resumed");
            let _ = why;
            EVENTS_AWAY
        })
    }
}
