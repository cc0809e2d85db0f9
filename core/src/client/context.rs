//! The context of a server request, as the client's handler sees it.

use super::client::Client;
use crate::correlate::CancelToken;
use crate::mcp::Revision;

/// A running request of the server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ClientContext {
    client: Client,
    revision: Revision,
    cancel: CancelToken,
}

impl ClientContext {
    pub(super) fn new(client: Client, revision: Revision, cancel: CancelToken) -> Self {
        Self {
            client,
            revision,
            cancel,
        }
    }

    /// The client of the asking server. A handler may call the server in turn, to any depth.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The revision that the request is made in.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns whether the server cancelled the request or disconnected. The handler's result is
    /// then discarded.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// The request's cancellation token, to await or to derive child tokens from.
    pub fn cancel_token(&self) -> &CancelToken {
        &self.cancel
    }
}
