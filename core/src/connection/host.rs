//! The interface that an application implements to serve a connection. Called on the driver's thread.

use super::answer::Answer;
use super::awaited::Awaited;
use super::call::{Batch, Disposition, IncomingRequest};
use super::keys::CallKey;
use crate::error::ConnectionError;
use crate::mcp::{ErrorKind, Method, Revision};
use crate::message::MessageRef;

/// Why something that arrived was of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stray {
    /// An answer that nobody waits for: late, repeated, cancelled or forged.
    Answer,
    /// A frame that is not a valid message.
    BadFrame,
    /// A frame longer than the limit, or one for which there was no room; it was discarded.
    Oversize,
    /// A valid message that this side cannot accept at this point.
    Unexpected,
    /// A cancellation of an id that several streams of the session have in flight. It cancelled none of
    /// them.
    Cancel,
}

/// Handles the requests and events of a connection.
///
/// All methods are called on the driver's thread and must not block; defer what takes time.
pub trait Host {
    /// Handles a request that the protocol layer does not answer itself.
    fn request(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition;

    /// Handles a deferred request again, with [what it has waited for](super::Handle::decide). If it is deferred once
    /// more, the next batch has this request alone. By default it is refused: a host that passes requests on to another one
    /// passes these on, too.
    fn awaited(
        &mut self,
        request: IncomingRequest<'_>,
        answer: Answer<'_>,
        awaited: Awaited,
    ) -> Disposition {
        let _ = (request, awaited);
        answer.error(ErrorKind::Unauthenticated, "nobody takes the verdict", None)
    }

    /// Runs calls that no client waits for: those of tasks that this process takes over from one that has ended. They were
    /// admitted there, and their results go to the tasks. By default as [`dispatch`](Self::dispatch).
    fn detached(&mut self, batch: Batch) {
        self.dispatch(batch);
    }

    /// Checks that what the transport says about a request, for example in HTTP headers, agrees with
    /// the request. Called before the request is processed in any other way.
    ///
    /// # Errors
    /// The kind of error to answer with, and a message that says what disagrees.
    fn fits(&mut self, message: &MessageRef<'_>) -> Result<(), (ErrorKind, String)> {
        let _ = message;
        Ok(())
    }

    /// Whether requests of `method` are passed to [`request`](Self::request) although the protocol
    /// layer could answer them: `initialize`, `ping` and `server/discover`. The protocol layer settles
    /// the revision of an `initialize` in any case.
    fn opens(&self, method: Method) -> bool {
        let _ = method;
        false
    }

    /// Receives the requests that were deferred in one turn, in one call per turn.
    fn dispatch(&mut self, batch: Batch);

    /// Reports that a deferred request was cancelled, timed out or lost its stream; any answer to it is
    /// discarded.
    fn cancelled(&mut self, key: CallKey, reason: Option<&str>);

    /// Announces the stream of the messages that follow, on a client whose transport has one for each request: the id
    /// of the request of this side, or `None` for a stream of no request.
    fn arrives_within(&mut self, request: Option<u64>) {
        let _ = request;
    }

    /// Reports a notification that the protocol layer has processed: a cancellation or progress.
    fn overheard(&mut self, message: MessageRef<'_>) {
        let _ = message;
    }

    /// Receives a notification that the protocol layer does not process itself.
    fn notification(&mut self, message: MessageRef<'_>) {
        let _ = message;
    }

    /// Reports that the connection is open, in `revision`.
    fn opened(&mut self, revision: Revision) {
        let _ = revision;
    }

    /// Reports that the session of the connection has ended at the peer, as over HTTP after a restart, and that the transport begins another
    /// one in its place: what is known of the peer may not hold there. The peer's requests have been cancelled. Returns the ids of the
    /// requests of this side that may only go to the ended session: they fail. Others that are still to be sent go to the next one.
    fn session_ended(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Whether that request of this side may only go to a session which has ended. Asked before each request is sent, once a session
    /// has ended: whoever made the request may not have known that. Such a request fails.
    fn is_of_ended_session(&self, id: u64) -> bool {
        let _ = id;
        false
    }

    /// Reports that the connection is shutting down: no further request is accepted. Requests that
    /// would otherwise stay open for ever must be answered now.
    fn draining(&mut self) {}

    /// Reports that the connection has ended. Called once.
    fn closed(&mut self, reason: &ConnectionError) {
        let _ = reason;
    }

    /// Reports a frame that was of no use. `frame` may be cut short or empty.
    fn stray(&mut self, what: Stray, frame: &[u8]) {
        let _ = (what, frame);
    }
}
