//! Who sends the requests of a connection within a process, as the side knows that passes them on.

use std::sync::Arc;

use super::observer::{Observer, RequestScope};
use super::principal::Principal;

/// Says on whose behalf the requests of a connection come. Only for connections within a process: what a peer elsewhere says of
/// its clients proves nothing.
pub(crate) trait Callers: Send + Sync {
    /// The client whose call the request of this id carries.
    fn caller(&self, request: u64) -> Caller;

    /// Whether the connection carries the calls of several clients.
    fn are_many(&self) -> bool;

    /// The observer in place of the server's own, if that side tells one of the requests that come here. It is told of those that the
    /// server's handlers send.
    fn observer(&self) -> Option<Arc<dyn Observer>>;

    /// The scope of the call that the request of this id carries, in which its handler runs here.
    fn scope(&self, request: u64) -> Option<RequestScope>;
}

/// On whose behalf a request comes.
#[cfg_attr(
    not(feature = "client"),
    allow(dead_code, reason = "only chains pass requests on")
)]
pub(crate) enum Caller {
    /// A client; `None` if nobody verified it.
    Is(Option<Principal>),
    /// No client, or one that does not wait for the answer any more.
    Nobody,
}
