//! An open connection to the server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};

use super::listeners::Listeners;
use super::parts::Parts;
use super::places::Place;
use super::routes::Routes;
use super::visits::Visits;
use crate::client::Client;
use crate::connection::{Caller, Callers, Handle, Observer, RequestScope};
use crate::correlate::CancelToken;
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::{LogLevel, Revision};
use crate::sync::lock;

/// An open connection to the server.
#[derive(Clone)]
pub(super) struct Far {
    pub client: Client,
    pub revision: Revision,
    /// Dropped after the client.
    used: Use,
}

impl Far {
    /// A connection in use; `None` if no revision was agreed.
    pub fn new(client: Client, used: Use) -> Option<Self> {
        let revision = client.revision()?;
        Some(Self {
            client,
            revision,
            used,
        })
    }

    /// Nobody uses it any more: its place becomes free when what is left of it is gone.
    pub fn leave(&self) {
        self.used.upstream().place.leave();
    }

    /// Whether anything but its lane holds it.
    pub fn is_held(&self) -> bool {
        Arc::strong_count(&self.used.0) > 1
    }

    pub fn handle(&self) -> &Handle {
        self.client.handle()
    }

    /// A number that no other connection of this process has.
    pub fn number(&self) -> u64 {
        self.routes().connection
    }

    /// What it leads to now.
    pub fn session(&self) -> FarSession {
        lock(&self.used.upstream().session).clone()
    }

    /// For the only doubt at a time that the server still is of the era of the connection.
    pub fn doubt(&self) -> Option<Arc<()>> {
        let doubt = self.used.upstream().doubt.clone();
        (Arc::strong_count(&doubt) == 2).then_some(doubt)
    }

    /// The calls that it carries.
    pub fn routes(&self) -> &Arc<Routes> {
        &self.used.upstream().routes
    }

    pub fn listeners(&self) -> &Arc<Listeners> {
        &self.used.upstream().listeners
    }

    pub fn visits(&self) -> &Visits {
        &self.used.upstream().visits
    }

    /// The log level that was agreed with the server on behalf of clients that share the connection.
    pub fn level(&self) -> &Mutex<Option<LogLevel>> {
        &self.used.upstream().level
    }

    pub fn capabilities(&self) -> &str {
        self.handle().peer().map_or("{}", |peer| &peer.capabilities)
    }

    /// Whether the server has a capability.
    pub fn offers(&self, capability: &str) -> bool {
        reader::find(self.capabilities(), capability).is_some()
    }

    pub fn implementation(&self) -> &str {
        self.handle().peer().map_or("", |peer| &peer.implementation)
    }
}

/// What a connection leads to, until the server begins another session: a server that comes back on the same connection may be another
/// version.
#[derive(Clone)]
pub(super) struct FarSession {
    /// A number that no other session of this process has.
    pub number: u64,
    /// Cancelled when it ends.
    pub ended: CancelToken,
}

impl FarSession {
    fn new() -> Self {
        Self {
            number: number(),
            ended: CancelToken::new(),
        }
    }
}

/// A number that no other lane, connection or session of this process has.
pub(super) fn number() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// A connection to a server, until nothing of it is left: for a command, until its process has ended.
pub(super) struct Upstream {
    parts: Arc<Parts>,
    pub routes: Arc<Routes>,
    pub listeners: Arc<Listeners>,
    /// Pages that users visit before a call can go on.
    pub visits: Visits,
    level: Mutex<Option<LogLevel>>,
    session: Mutex<FarSession>,
    /// Held while it is doubted that the server still is of the era of the connection.
    doubt: Arc<()>,
    /// Dropped after the middleware has been told.
    pub place: Place,
}

impl Upstream {
    /// Takes a place for a connection that one client has for itself, or that clients share. Waits if one is about to become free.
    ///
    /// # Errors
    /// [`RequestError::Overloaded`] when there are too many connections.
    pub fn poll_new(
        parts: &Arc<Parts>,
        is_of_one: bool,
        cx: &Context<'_>,
    ) -> Poll<Result<Arc<Self>, RequestError>> {
        let place = parts.places.poll_take(cx);
        place.map_ok(|place| Self::at(place, parts, is_of_one))
    }

    /// A connection at that place.
    pub fn at(place: Place, parts: &Arc<Parts>, is_of_one: bool) -> Arc<Self> {
        Arc::new(Self {
            parts: parts.clone(),
            routes: Arc::new(Routes::new(number(), is_of_one)),
            listeners: Arc::default(),
            visits: Visits::default(),
            level: Mutex::default(),
            session: Mutex::new(FarSession::new()),
            doubt: Arc::default(),
            place,
        })
    }

    /// The calls, for a server of this process.
    pub fn carried(&self) -> CarriedCalls {
        CarriedCalls {
            routes: Arc::downgrade(&self.routes),
            observer: self.parts.observer_of_handlers(),
        }
    }

    /// The server begins another session. Returns the ids of the requests that may only go to the one before.
    pub fn session_ended(&self) -> Vec<u64> {
        let before = std::mem::replace(&mut *lock(&self.session), FarSession::new());
        before.ended.cancel(None);
        self.visits.lost();
        self.parts.connection_ended(before.number);
        self.routes.bound(before.number)
    }

    /// Whether a request may only go to a session that has ended. It was noted before it was given to the transport, which asks.
    pub fn is_of_ended_session(&self, request: u64) -> bool {
        let current = lock(&self.session).number;
        let within = self.routes.session(request);
        within.is_some_and(|session| session != current)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        let session = lock(&self.session).number;
        self.parts.connection_ended(session);
    }
}

/// The use of a connection, whose place is left when the last clone is dropped.
#[derive(Clone)]
pub(super) struct Use(Arc<Leaving>);

struct Leaving(Arc<Upstream>);

impl Use {
    pub fn of(upstream: Arc<Upstream>) -> Self {
        Self(Arc::new(Leaving(upstream)))
    }

    pub fn upstream(&self) -> &Arc<Upstream> {
        &self.0.0
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.place.leave();
    }
}

/// The calls that a connection carries, as a server of this process is told of them.
pub(super) struct CarriedCalls {
    routes: Weak<Routes>,
    observer: Option<Arc<dyn Observer>>,
}

impl Callers for CarriedCalls {
    fn caller(&self, request: u64) -> Caller {
        let routes = self.routes.upgrade();
        routes.map_or(Caller::Nobody, |routes| routes.caller(request))
    }

    fn are_many(&self) -> bool {
        let routes = self.routes.upgrade();
        routes.is_some_and(|routes| routes.is_shared())
    }

    fn observer(&self) -> Option<Arc<dyn Observer>> {
        self.observer.clone()
    }

    fn scope(&self, request: u64) -> Option<RequestScope> {
        self.routes.upgrade()?.find(request)?.scope.clone()
    }
}
