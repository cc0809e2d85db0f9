//! Sessions of other processes at this one: who accepts them, and what goes with them.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Poll;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use super::following::Following;
use super::gate::Admitted;
use super::options::HttpOptions;
use super::refusal::{HttpRefusal, SESSION_GONE};
use super::session::HttpSession;
use super::session_logs::LogReader;
use super::session_reader::SessionReader;
use super::session_turns::SessionTurns;
use super::session_wishes::{Noted, Wishes};
use super::shared_events::SharedEvents;
use super::shared_sessions::{KnownSession, SharedSessions};
use crate::buffer::Input;
use crate::io::net::turns;

/// How long a session that begins here waits for what its client has asked another process for.
const TAKE_OVER: Duration = Duration::from_secs(5);
/// How many messages of a session are posted before their answers are taken: each post looks at the answers of all.
const BATCH: usize = 64;
/// The wait between two attempts while the store is away.
const PAUSE: Duration = Duration::from_secs(1);

/// What sessions of other processes are accepted by.
pub struct Adoption {
    pub shared: SharedSessions,
    pub events: Option<SharedEvents>,
    /// Sessions begin here one at a time each.
    pub turns: SessionTurns,
    /// The ends of sessions at other processes.
    pub following: OnceLock<Following>,
}

impl Adoption {
    pub fn new(shared: SharedSessions, options: &HttpOptions) -> Self {
        Self {
            events: SharedEvents::new(&shared, options),
            shared,
            turns: SessionTurns::default(),
            following: OnceLock::new(),
        }
    }

    /// Has other processes know what a client wants. Completes when the store has answered; while it is away, a task goes on.
    pub async fn note(&self, session: &Arc<HttpSession>, wishes: Wishes) {
        let (shared, session) = (self.shared.clone(), session.clone());
        // Goes on if the client does not wait.
        let told = tokio::spawn(async move {
            let mut noted = session.noted.lock().await;
            let is_waiting = !noted.untold.is_empty();
            noted.granted.add(&wishes);
            noted.untold.merge(wishes);
            let told = noted.tell(&shared, session.id()).await;
            if !told && !is_waiting {
                turns::spawn(tell_later(shared, Arc::downgrade(&session)));
            }
        });
        let _ = told.await;
    }

    /// Takes in what has changed of a session at other processes.
    ///
    /// # Errors
    /// When its client has ended it.
    pub async fn look_again(
        &self,
        session: &Arc<HttpSession>,
        request: &Admitted<'_>,
    ) -> Result<(), HttpRefusal> {
        let mut noted = session.noted.lock().await;
        let known = self.shared.known(session.id()).await;
        take_in(known, &mut noted, session, request).await
    }
}

/// Posts a message that the client has sent to another process before. `None` if the session has ended.
async fn post_again(
    session: &Arc<HttpSession>,
    request: &Admitted<'_>,
    body: Input,
) -> Option<(LogReader, SessionReader)> {
    let mut body = Some(body);
    let log = poll_fn(|cx| {
        let body = body.take().unwrap_or_default();
        Poll::Ready(session.post((body, None), request, true, cx))
    });
    let log = log.await?;
    Some((log, SessionReader::new(session.clone(), log)))
}

/// Posts such a message and waits until it is answered. Returns whether what it asks for is granted.
pub async fn repeat(session: &Arc<HttpSession>, request: &Admitted<'_>, body: Input) -> bool {
    let Some((log, _reader)) = post_again(session, request, body).await else {
        return false;
    };
    let answer = poll_fn(|cx| session.poll_answer(log, cx)).await;
    answer.is_granted()
}

/// Takes in what the store knows of a session that goes on here: asks for what its client has asked other processes for. Returns
/// when it is granted, or after a while; then the answers are not waited for. What is refused is asked for again when the session is
/// looked at again.
///
/// # Errors
/// When the client has ended the session.
pub async fn take_in(
    known: KnownSession,
    noted: &mut Noted,
    session: &Arc<HttpSession>,
    request: &Admitted<'_>,
) -> Result<(), HttpRefusal> {
    let (mut wishes, version) = match known {
        KnownSession::Ended => return Err(SESSION_GONE),
        KnownSession::Wishes(wishes, version) if noted.version != Some(version) => {
            (wishes, version)
        }
        KnownSession::Wishes(..) | KnownSession::Nothing => return Ok(()),
    };
    // Wishes that the store has not been told yet are newer than its own.
    wishes.merge(noted.untold.clone());
    noted.granted.retain_new(&mut wishes);
    if ask(session, request, &wishes).await {
        noted.version = Some(version);
        noted.granted.add(&wishes);
    }
    Ok(())
}

/// Asks for wishes of a client in its name. Returns whether all are granted in time.
async fn ask(session: &Arc<HttpSession>, request: &Admitted<'_>, wishes: &Wishes) -> bool {
    // A server behind this one may take its time.
    let deadline = Instant::now() + TAKE_OVER;
    let mut is_refused = false;
    let mut requests = wishes.requests().peekable();
    while requests.peek().is_some() {
        let mut readers = Vec::new();
        for body in requests.by_ref().take(BATCH) {
            readers.extend(post_again(session, request, body).await);
        }
        let answered = async {
            for (log, _) in &readers {
                let answer = poll_fn(|cx| session.poll_answer(*log, cx)).await;
                is_refused |= !answer.is_granted();
            }
        };
        is_refused |= timeout_at(deadline, answered).await.is_err();
        // Other sessions have a turn.
        yield_now().await;
    }
    !is_refused
}

/// Tells the store what it has not taken, as long as there is something and the session lives.
async fn tell_later(shared: SharedSessions, session: Weak<HttpSession>) {
    loop {
        tokio::time::sleep(PAUSE).await;
        let Some(session) = session.upgrade().filter(|session| !session.is_closed()) else {
            return;
        };
        if session.noted.lock().await.tell(&shared, session.id()).await {
            return;
        }
    }
}
