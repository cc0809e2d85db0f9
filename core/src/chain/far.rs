//! An open connection to the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::parts::Parts;
use crate::client::Client;
use crate::connection::Handle;
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::Revision;

/// An open connection to the server.
#[derive(Clone)]
pub(super) struct Far {
    pub client: Client,
    pub revision: Revision,
    /// Dropped after the client.
    permit: Arc<Permit>,
}

impl Far {
    /// A connection with its permit; `None` if no revision was agreed.
    pub fn new(client: Client, permit: Arc<Permit>) -> Option<Self> {
        let revision = client.revision()?;
        Some(Self {
            client,
            revision,
            permit,
        })
    }

    /// Whether anything but its lane holds it.
    pub fn is_held(&self) -> bool {
        Arc::strong_count(&self.permit) > 1
    }

    pub fn handle(&self) -> &Handle {
        self.client.handle()
    }

    /// A number that no other connection of this process has.
    pub fn number(&self) -> u64 {
        self.permit.number
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

/// One of the connections to a server that may be open at a time.
pub(super) struct Permit {
    number: u64,
    parts: Arc<Parts>,
}

impl Permit {
    /// # Errors
    /// [`RequestError::Overloaded`] when there are too many.
    pub fn take(parts: &Arc<Parts>) -> Result<Arc<Self>, RequestError> {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        let permit = Self {
            number: CONNECTIONS.fetch_add(1, Ordering::Relaxed),
            parts: parts.clone(),
        };
        // Counted back when dropped.
        match parts.open.fetch_add(1, Ordering::AcqRel) < parts.external.max_connections {
            true => Ok(Arc::new(permit)),
            false => Err(RequestError::Overloaded),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.parts.open.fetch_sub(1, Ordering::AcqRel);
        self.parts.connection_ended(self.number);
    }
}
