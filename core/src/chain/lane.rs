//! One connection to the external server, on behalf of one client or of clients that the server cannot tell apart. It is
//! opened when it is needed, and again when it was lost.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use super::attempts::{self, Attempts, Begun, Unopened};
use super::declared::may_be_asked;
use super::external::{Connecting, Isolation};
use super::far::{self, Far, Upstream, Use};
use super::given::Given;
use super::idle;
use super::lane_key::LaneKey;
use super::middleware::{ChainNotification, RelayDirection, notify};
use super::own_streams::OwnStreams;
use super::parts::Parts;
use super::rounds::Rounds;
use super::sessions::Sessions;
use super::translate;
use super::unless::unless;
use crate::client::ClientBuilder;
use crate::connection::{Config, Handle, Host, OpeningMode};
use crate::correlate::{CancelToken, Cancelled};
use crate::error::{CarrierError, CarrierFault, ConnectionError, RequestError};
use crate::handler::driven::drive;
use crate::mcp::{Era, Revision, Revisions, Side};
use crate::sync::lock;

/// A server whose connection is lost sooner than this has failed to start.
const LASTING: Duration = Duration::from_secs(5);

/// The client on whose behalf a lane speaks.
pub(super) struct Near {
    /// Its connection, if the lane belongs to one client.
    pub handle: Option<Handle>,
    pub revision: Revision,
    pub capabilities: Box<str>,
    /// Whether it reads messages that belong to no request.
    pub listens: bool,
    /// Its `Implementation`; `None` to speak in this program's own name.
    pub implementation: Option<Box<str>>,
    /// The clients that share the lane, if it is no client's own.
    pub shared_by: Option<LaneKey>,
}

/// Makes the host of a connection to the server.
pub(super) type MakeHost = fn(Weak<Lane>, Handle, Arc<Upstream>) -> Box<dyn Host + Send>;

pub(super) struct Lane {
    /// A number that no other lane, connection or session of this process has.
    pub number: u64,
    pub parts: Arc<Parts>,
    pub near: Near,
    host: MakeHost,
    /// Whether messages of the server that belong to no request are read: by the client, or by middleware, or because servers put
    /// questions among them that are answered within a call.
    listens: AtomicBool,
    state: Mutex<State>,
    /// How often the connection was lost soon after it was open: then it waits before it is opened again.
    restarts: Attempts,
    /// Cancelled when it is open; `None` while nothing waits for that.
    opens: Mutex<Option<CancelToken>>,
    /// The last one that was closed because nobody needed it, until it has ended.
    left: Mutex<Vec<Handle>>,
    /// When it was last opened.
    opened: Mutex<Option<(Begun, Instant)>>,
    /// Cancelled with the lane, which an attempt to connect does not keep.
    gone: CancelToken,
    pub rounds: Arc<Rounds>,
    pub given: Given,
    pub own_streams: OwnStreams,
    /// The clients of the handshake era that use it.
    pub sessions: Sessions,
}

enum State {
    Idle,
    /// The attempt of this number is under way.
    Opening(u64, Vec<Waker>),
    Open(Far),
    /// The attempt of this number has failed.
    Failed(u64, Unopened),
}

impl State {
    /// Takes a connection out that has ended.
    fn take_closed(&mut self) -> Option<Far> {
        match std::mem::replace(self, Self::Idle) {
            Self::Open(far) if far.handle().is_closed() => Some(far),
            other => {
                *self = other;
                None
            }
        }
    }
}

impl Lane {
    pub fn new(parts: Arc<Parts>, near: Near, host: MakeHost) -> Arc<Self> {
        let is_watched = !parts.middleware.is_empty() || !parts.external.middleware.is_empty();
        Arc::new(Self {
            listens: AtomicBool::new(
                near.listens || is_watched || may_be_asked(&near.capabilities),
            ),
            number: far::number(),
            parts,
            near,
            host,
            state: Mutex::new(State::Idle),
            restarts: Attempts::default(),
            opens: Mutex::default(),
            left: Mutex::default(),
            opened: Mutex::default(),
            gone: CancelToken::new(),
            rounds: Arc::default(),
            given: Given::default(),
            own_streams: OwnStreams::default(),
            sessions: Sessions::default(),
        })
    }

    pub fn era(&self) -> Era {
        self.near.revision.era()
    }

    /// Whether it is for sessions that need none of their own.
    pub fn is_lent(&self) -> bool {
        self.near.shared_by.as_ref().is_some_and(|key| key.is_lent)
    }

    /// Which clients use it.
    pub fn isolation(&self) -> Isolation {
        match self.is_lent() {
            true => Isolation::Shared,
            false => self.parts.external.isolation,
        }
    }

    /// Whether a server of the handshake era may take the client of a request, which has no connection of its own if it has a key, for the one
    /// that the lane speaks for. It may not where the lane was chosen while the server was of the other era, in which one serves all.
    pub fn speaks_for(&self, key: Option<&LaneKey>) -> bool {
        match (&self.near.shared_by, key) {
            (Some(own), _) if own.is_lent => false,
            (Some(own), Some(key)) => self.isolation() == Isolation::Shared || own == key,
            _ => true,
        }
    }

    /// Whether it is no client's own.
    pub fn is_shared(&self) -> bool {
        self.near.handle.is_none()
    }

    /// The client reads messages that belong to no request from now on.
    pub fn listen(&self) {
        self.listens.store(true, Ordering::Release);
        if let Some(far) = self.ready() {
            far.handle().set_listens(true);
        }
    }

    /// Whether somebody reads messages of the server that belong to no request.
    pub fn listens(&self) -> bool {
        self.listens.load(Ordering::Acquire)
    }

    /// Whether the connection is open.
    pub fn is_open(&self) -> bool {
        matches!(&*lock(&self.state), State::Open(far) if !far.handle().is_closed())
    }

    /// Completes when the connection is open, at once if it is.
    pub fn opens(&self) -> Cancelled {
        let mut token = lock(&self.opens).get_or_insert_default().clone();
        if self.is_open() {
            // What waits for the next time keeps its own.
            token = CancelToken::new();
            token.cancel(None);
        }
        token.cancelled()
    }

    /// The connection, if it is open.
    pub fn ready(&self) -> Option<Far> {
        match &*lock(&self.state) {
            State::Open(far) if !far.handle().is_closed() => Some(far.clone()),
            _ => None,
        }
    }

    /// The connection, opened if need be, unless `late` completes first.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub async fn far(self: &Arc<Self>, late: impl Future<Output = ()>) -> Result<Far, Unopened> {
        let (mut waits_for, mut late) = (None, pin!(late));
        poll_fn(|cx| {
            if let Poll::Ready(far) = self.poll_far(&mut waits_for, cx) {
                return Poll::Ready(far);
            }
            ready!(late.as_mut().poll(cx));
            Poll::Ready(Err(Unopened {
                error: RequestError::TimedOut,
                attempt: waits_for.filter(|attempt| self.is_under_way(*attempt)),
            }))
        })
        .await
    }

    fn is_under_way(&self, attempt: u64) -> bool {
        matches!(&*lock(&self.state), State::Opening(number, _) if *number == attempt)
    }

    fn poll_far(
        self: &Arc<Self>,
        waits_for: &mut Option<u64>,
        cx: &Context<'_>,
    ) -> Poll<Result<Far, Unopened>> {
        // Dropped when the lock is released: others may go on with its place, on this thread.
        let ended;
        let mut state = lock(&self.state);
        match &mut *state {
            State::Open(far) if !far.handle().is_closed() => return Poll::Ready(Ok(far.clone())),
            State::Opening(attempt, wakers) => {
                *waits_for = Some(*attempt);
                if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                    wakers.push(cx.waker().clone());
                }
                return Poll::Pending;
            }
            State::Failed(attempt, error) if *waits_for == Some(*attempt) => {
                return Poll::Ready(Err(error.clone()));
            }
            State::Failed(..) | State::Open(_) | State::Idle => {}
        }
        ended = state.take_closed();
        if let Some(far) = &ended {
            far.leave();
        }
        let now = Instant::now();
        let upstream = ready!(Upstream::poll_new(&self.parts, !self.is_shared(), cx))?;
        let begun = self.restarts.begin(now).and_then(|restart| {
            let begun = self.parts.attempts.begin(now);
            let begun = begun.inspect_err(|_| self.restarts.given_up(restart))?;
            Ok((restart, begun))
        });
        let (restart, begun) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                // A call that waits for a place may go on with that of this one, on this thread.
                drop(state);
                drop(upstream);
                return Poll::Ready(Err(error));
            }
        };
        let attempt = attempts::number();
        *waits_for = Some(attempt);
        *state = State::Opening(attempt, vec![cx.waker().clone()]);
        drop(state);
        let attempt = Attempt {
            lane: Arc::downgrade(self),
            parts: self.parts.clone(),
            number: attempt,
            begun,
            restart,
            next: None,
        };
        let settings = (self.era(), self.config(), self.host);
        let run = attempt.run(Use::of(upstream), settings, self.gone.clone());
        self.parts.spawner.spawn_blocking(Box::pin(run));
        Poll::Pending
    }

    /// How this side describes itself to the server: with what the client declared, and no more (R-CHN-09).
    fn config(&self) -> Config {
        let external = &self.parts.external;
        let mut config = Config::new(
            Side::Client,
            env!("CARGO_PKG_NAME"),
            env!("CARGO_PKG_VERSION"),
        );
        if let Some(own) = &self.near.implementation {
            config.implementation = (&**own).into();
        }
        let (declared, era) = (&self.near.capabilities, self.era());
        config.capabilities = Revision::ALL
            .map(|revision| translate::client_capabilities(declared, era, revision.era()).into());
        config.revisions = match external.follows_revision && !self.is_shared() {
            true => Revisions::only(self.near.revision),
            false => external.revisions,
        };
        config.limits = external.limits.clone();
        config.budget = self.parts.config.budget.clone();
        config.observer = self.parts.observer_of_hop();
        config
    }

    /// That connection has ended. Returns whether it was lost: this side may have let go of it. A call that found it closed may have
    /// opened another one already, whose own goes on.
    pub fn lost(&self, far: &Handle, upstream: &Upstream) -> bool {
        {
            let mut left = lock(&self.left);
            if let Some(at) = left.iter().position(|left| left.is_same(far)) {
                left.swap_remove(at);
                return false;
            }
        }
        let (ended, is_newest) = {
            let mut state = lock(&self.state);
            match &*state {
                State::Open(open) if open.handle().is_same(far) => {
                    (Some(std::mem::replace(&mut *state, State::Idle)), true)
                }
                State::Open(_) => (None, false),
                State::Idle | State::Opening(..) | State::Failed(..) => (None, true),
            }
        };
        drop(ended);
        if is_newest {
            self.count_loss();
        }
        self.sessions.lost(far);
        self.own_streams.lost(upstream.routes.connection);
        self.parts.lists.lost(self.parts.index);
        true
    }

    /// Counts the loss of the connection that was opened last, unless it is counted already.
    fn count_loss(&self) {
        let Some((restart, opened)) = lock(&self.opened).take() else {
            return;
        };
        let now = Instant::now();
        match now.saturating_duration_since(opened) < LASTING {
            true => {
                self.restarts.failed(restart, &Unopened::lost(), now);
            }
            false => self.restarts.succeeded(),
        }
    }

    /// How many requests there were, if neither a session nor a request needs the connection.
    pub fn unneeded(&self) -> Option<u64> {
        let state = lock(&self.state);
        match &*state {
            State::Open(far) if self.is_unneeded(&state) => Some(far.routes().begun()),
            _ => None,
        }
    }

    /// Every request holds the connection that it was given.
    fn is_unneeded(&self, state: &State) -> bool {
        matches!(state, State::Open(far) if !far.is_held()) && !self.sessions.has_any()
    }

    /// Closes the connection, unless something needs it. It is opened again when it is needed.
    pub fn let_go(&self) {
        let before = {
            let mut state = lock(&self.state);
            if !self.is_unneeded(&state) {
                return;
            }
            if let State::Open(far) = &*state {
                far.leave();
                lock(&self.left).push(far.handle().clone());
            }
            std::mem::replace(&mut *state, State::Idle)
        };
        lock(&self.opened).take();
        self.restarts.succeeded();
        self.parts.lists.lost(self.parts.index);
        drop(before);
    }

    /// Shows a notification for the client to all middleware, by the names of clients. `last` gets it unless one of them drops it.
    pub fn show(
        self: &Arc<Self>,
        method: &str,
        params: Option<&str>,
        last: impl FnOnce(&Arc<Self>, ChainNotification) + Send + 'static,
    ) {
        let mut shown = ChainNotification::new(RelayDirection::ToClient, method, params);
        let parts = &self.parts;
        if parts.external.middleware.is_empty() && parts.middleware.is_empty() {
            if let Some(prefix) = &parts.prefix {
                prefix.tell(&mut shown);
            }
            return last(self, shown);
        }
        let lane = self.clone();
        drive(Box::pin(async move {
            let parts = &lane.parts;
            let Some(mut shown) = notify(&parts.external.middleware, shown).await else {
                return;
            };
            if let Some(prefix) = &parts.prefix {
                prefix.tell(&mut shown);
            }
            if let Some(shown) = notify(&parts.middleware, shown).await {
                last(&lane, shown);
            }
        }));
    }
}

/// An attempt to connect, which ends early when nobody needs the connection any more. What it ends with is noted when it is
/// dropped, so that nobody waits for one that was given up or that panicked.
struct Attempt {
    lane: Weak<Lane>,
    parts: Arc<Parts>,
    number: u64,
    begun: Begun,
    restart: Begun,
    next: Option<State>,
}

impl Attempt {
    async fn run(mut self, used: Use, settings: (Era, Config, MakeHost), gone: CancelToken) {
        let asked = settings.0;
        let opened = unless(self.open(used, settings), gone.cancelled()).await;
        self.next = opened.map(|opened| match opened {
            Ok(far) => {
                // The client may have begun to read while the connection was being opened.
                if self.lane.upgrade().is_some_and(|lane| lane.listens()) {
                    far.handle().set_listens(true);
                }
                self.parts.learn(asked, far.revision.era());
                State::Open(far)
            }
            Err(error) => self.failed(error),
        });
    }

    async fn open(
        &self,
        mut used: Use,
        (era, config, host): (Era, Config, MakeHost),
    ) -> Result<Far, RequestError> {
        let chosen = self.parts.external.opening;
        let first = chosen.unwrap_or(match era {
            Era::Handshake if !self.parts.takes_no_handshakes() => OpeningMode::Handshake,
            Era::Handshake | Era::Stateless => OpeningMode::Probe,
        });
        let mut config = config;
        config.tries_both_eras = chosen.is_none();
        let mut opened = self.connect(&used, first, &config, host).await;
        if first == OpeningMode::Handshake
            && chosen.is_none()
            && opened.as_ref().is_err_and(|error| !has_answered(error))
        {
            // A server that does not survive a handshake may speak the other era. Nobody else takes the place of the first connection
            // before what is left of it is gone.
            let is_of_one = !used.upstream().routes.is_shared();
            let next = used.upstream().place.pass_on();
            drop(used);
            used = Use::of(Upstream::at(next.await, &self.parts, is_of_one));
            opened = self.connect(&used, OpeningMode::Probe, &config, host).await;
        }
        match opened {
            Ok(client) => {
                let none = RequestError::BadAnswer("no revision was agreed");
                Far::new(client, used).ok_or(none)
            }
            Err(error) => {
                let fault = CarrierFault::Unreachable;
                Err(CarrierError::new(fault, error.to_string()).into())
            }
        }
    }

    fn failed(&self, error: RequestError) -> State {
        let attempt = Some(self.number);
        State::Failed(self.number, Unopened { error, attempt })
    }

    fn connect(
        &self,
        used: &Use,
        opening: OpeningMode,
        config: &Config,
        host: MakeHost,
    ) -> Connecting {
        let lane = self.lane.clone();
        let mut config = config.clone();
        config.opening = opening;
        let upstream = used.upstream().clone();
        let callers = Arc::new(upstream.carried());
        let relay = Box::new(move |far: Handle| host(lane, far, upstream));
        let spawner = self.parts.spawner.clone();
        let builder = ClientBuilder::relay(config, relay, spawner, callers);
        self.parts.external.link.connect(builder)
    }
}

/// Whether a server has answered, and cannot be used. One that hangs in a handshake has not.
fn has_answered(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref());
    matches!(
        error,
        Some(RequestError::Closed(
            ConnectionError::Handshake(_) | ConnectionError::NoCommonRevision
        ))
    )
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let Some(lane) = self.lane.upgrade() else {
            return self.parts.attempts.given_up(self.begun);
        };
        let next = self.next.take().unwrap_or_else(|| {
            let why = "the attempt to connect was given up";
            let error = CarrierError::new(CarrierFault::Unreachable, why.to_owned());
            self.failed(error.into())
        });
        let (attempts, now) = (&self.parts.attempts, Instant::now());
        match &next {
            State::Failed(_, why) => {
                attempts.failed(self.begun, why, now);
                self.parts.external.health.failed(&why.error);
                lane.restarts.given_up(self.restart);
            }
            opened => {
                attempts.succeeded();
                if let State::Open(far) = opened {
                    let health = &self.parts.external.health;
                    health.opened(far.revision, far.implementation());
                }
                *lock(&lane.opened) = Some((self.restart, now));
            }
        }
        let before = std::mem::replace(&mut *lock(&lane.state), next);
        if let State::Opening(_, wakers) = before {
            wakers.into_iter().for_each(Waker::wake);
        }
        let Some(far) = lane.ready() else {
            // It may have ended already, before it was known here that it was open: its place is free then.
            lane.count_loss();
            let ended = lock(&lane.state).take_closed();
            drop(ended);
            return;
        };
        let opens = lock(&lane.opens).take();
        opens.map(|opens| opens.cancel(None));
        idle::watch(&lane, &far);
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.gone.cancel(None);
    }
}
