//! Operations and what carries them out: the seam between the engine and handlers.
//!
//! A handler sees an [`Operation`] of the server's registry, not a wire method; what it gives
//! back is encoded for the dialect and revision of the request. This room has no runtime: a
//! [`Spawner`] says where handlers run.

mod error;
#[cfg(any(feature = "server", feature = "client"))]
pub(crate) mod guarded;
mod head;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use self::error::HandlerError;
pub use self::head::Head;
use crate::connection::{Answer, Batch, CallKey, Disposition, Incoming, StreamId};
use crate::mcp::Method;
use crate::message::MessageRef;

/// Something of a server's registry that a request asks for; the number counts the entries of
/// its kind in the order of registration, and is given only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Call a tool.
    CallTool(u32),
    /// Read a resource.
    ReadResource(u32),
    /// Read a resource that matches a template.
    ReadTemplate(u32),
    /// Render a prompt.
    GetPrompt(u32),
    /// Complete an argument.
    Complete,
    /// Carry a method of an extension out.
    Extension(u32),
}

const KINDS: u32 = 6;

impl Operation {
    /// The largest number of an entry.
    pub const MAX_NUMBER: u32 = u32::MAX / KINDS - 2;

    /// As the number that marks a deferred request.
    pub fn to_target(self) -> u32 {
        match self {
            Self::CallTool(index) => index * KINDS,
            Self::ReadResource(index) => index * KINDS + 1,
            Self::ReadTemplate(index) => index * KINDS + 2,
            Self::GetPrompt(index) => index * KINDS + 3,
            Self::Complete => 4,
            Self::Extension(index) => index * KINDS + 5,
        }
    }

    /// From the number that marks a deferred request.
    pub fn from_target(target: u32) -> Self {
        let index = target / KINDS;
        match target % KINDS {
            0 => Self::CallTool(index),
            1 => Self::ReadResource(index),
            2 => Self::ReadTemplate(index),
            3 => Self::GetPrompt(index),
            4 => Self::Complete,
            _ => Self::Extension(index),
        }
    }
}

/// Carries operations out. Called on the driver's thread; must not block.
pub trait Executor {
    /// A request before the registry sees it. An executor that knows more than the registry says
    /// answers it, or defers it as a number of its own; by default the registry decides.
    ///
    /// # Errors
    /// The answer, untouched: the request is the registry's.
    fn first<'a>(
        &mut self,
        request: &Incoming<'_>,
        answer: Answer<'a>,
    ) -> Result<Disposition, Answer<'a>> {
        let _ = request;
        Err(answer)
    }

    /// Whether it takes requests of that method which the protocol layer answers otherwise: the
    /// handshake, pings and discovery.
    fn opens(&self, method: Method) -> bool {
        let _ = method;
        false
    }

    /// What comes on that stream from now on is brought by a request of HTTP with that head; `None` when
    /// the stream has ended. Only for who
    /// [wants heads](crate::server::Hosting::wants_heads).
    fn carried(&mut self, stream: StreamId, head: Option<Arc<Head>>) {
        let _ = (stream, head);
    }

    /// Looks at a notification before anything else is made of it. Whether it was for nobody else.
    fn hear(&mut self, message: MessageRef<'_>) -> bool {
        let _ = message;
        false
    }

    /// An operation that may be carried out at once, on the driver's thread. Gives the answer
    /// back unused when it is not one of those.
    ///
    /// # Errors
    /// The answer, untouched.
    fn inline<'a>(
        &mut self,
        operation: Operation,
        request: Incoming<'_>,
        answer: Answer<'a>,
    ) -> Result<Disposition, Answer<'a>> {
        let _ = (operation, request);
        Err(answer)
    }

    /// Whether this executor itself checks the arguments of such a call when they are longer than
    /// [`CHECK_HERE_BYTES`](crate::limits::CHECK_HERE_BYTES), away from the driver's thread. The
    /// rest is checked before.
    fn checks_arguments(&mut self, operation: Operation) -> bool {
        let _ = operation;
        false
    }

    /// The operations of one turn; [`Call::target`](crate::connection::Call) is
    /// [`Operation::to_target`].
    fn run(&mut self, batch: Batch);

    /// An operation was cancelled; its [`Call::cancel`](crate::connection::Call) says so too.
    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        let _ = (key, reason);
    }

    /// The client has finished the handshake.
    fn initialized(&mut self) {}

    /// The client has other roots now (handshake era).
    fn roots_changed(&mut self) {}

    /// The client tells something that no revision has a word for: the method, and the params, a
    /// raw JSON object.
    fn notification(&mut self, method: &str, params: &str) {
        let _ = (method, params);
    }

    /// No further request begins, and what is in flight is to end: what would stay open for ever
    /// is to be answered now.
    fn draining(&mut self) {}

    /// The connection has ended.
    fn closed(&mut self) {}

    /// Whether it may go on for another peer instead of being told that the connection has ended:
    /// nothing is in flight, and it keeps nothing of what was. One that does not say so is made
    /// anew for each.
    fn renew(&mut self) -> bool {
        false
    }
}

/// A handler under way.
pub type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Handlers still to be begun.
pub type Jobs = Box<dyn Iterator<Item = Job> + Send>;

/// Where handlers run.
pub trait Spawner: Send + Sync {
    /// Runs a job to its end, somewhere else, soon.
    fn spawn(&self, job: Job);

    /// The same for the jobs of one turn, handed over in one piece. A job is best made only when
    /// its turn has come: the memory of the one before is still warm then.
    fn spawn_batch(&self, jobs: Jobs) {
        jobs.for_each(|job| self.spawn(job));
    }

    /// Does something now, on this thread, that hands over the answers of many connections as the
    /// last act of their handlers: those who wait for them are woken together, where that costs
    /// less.
    fn together(&self, run: &mut dyn FnMut()) {
        run();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_survive_as_numbers() {
        for index in [0, 1, 77, Operation::MAX_NUMBER] {
            for operation in [
                Operation::CallTool(index),
                Operation::ReadResource(index),
                Operation::ReadTemplate(index),
                Operation::GetPrompt(index),
                Operation::Complete,
                Operation::Extension(index),
            ] {
                assert_eq!(Operation::from_target(operation.to_target()), operation);
            }
        }
    }
}
