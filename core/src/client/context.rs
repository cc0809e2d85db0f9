//! What a client's handler knows of what it is asked.

use super::Client;
use crate::correlate::CancelToken;
use crate::mcp::Revision;

/// Something that the server asks, under way. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Context {
    client: Client,
    revision: Revision,
    cancel: CancelToken,
}

impl Context {
    pub(super) fn new(client: Client, revision: Revision, cancel: CancelToken) -> Self {
        Self {
            client,
            revision,
            cancel,
        }
    }

    /// The server that asks. It may be called in turn, to any depth.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The revision that the server asks in.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether the server gave up, or went away. What the handler gives back then is discarded.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// The token of what is asked: to wait for its end, or to make children of.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.cancel
    }
}
