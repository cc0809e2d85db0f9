//! An open connection to the server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use super::parts::Parts;
use super::places::Place;
use super::routes::Routes;
use crate::client::Client;
use crate::connection::{Caller, Callers, Handle};
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::Revision;

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

    /// The calls that it carries.
    pub fn routes(&self) -> &Arc<Routes> {
        &self.used.upstream().routes
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

/// A connection to a server, until nothing of it is left: for a command, until its process has ended.
pub(super) struct Upstream {
    parts: Arc<Parts>,
    pub routes: Arc<Routes>,
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
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        parts.places.poll_take(cx).map_ok(|place| {
            let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
            Arc::new(Self {
                parts: parts.clone(),
                routes: Arc::new(Routes::new(number, is_of_one)),
                place,
            })
        })
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.parts.connection_ended(self.routes.connection);
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

impl Callers for Weak<Routes> {
    fn caller(&self, request: u64) -> Caller {
        let route = self.upgrade().and_then(|routes| routes.find(request));
        route.map_or(Caller::Nobody, |route| Caller::Is(route.principal.clone()))
    }

    fn are_many(&self) -> bool {
        self.upgrade().is_some_and(|routes| routes.is_shared())
    }
}
