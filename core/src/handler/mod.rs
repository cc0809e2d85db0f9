//! The interface between the engine and handlers: operations, and the executors that run them.
//!
//! A handler sees an [`Operation`] of the server's registry rather than a wire method; its result
//! is encoded for the dialect and revision of the request. This module has no async runtime: a
//! [`Spawner`] decides where handlers run.

pub(crate) mod driven;
mod error;
mod extensions;
#[cfg(any(feature = "server", feature = "client"))]
pub(crate) mod guarded;
mod head;
#[cfg(feature = "server")]
pub(crate) mod scoped;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use self::error::{HandlerError, IntoHandlerError};
pub use self::extensions::Extensions;
pub use self::head::Head;
use crate::connection::{
    Answer, Batch, CallKey, Disposition, IncomingRequest, Operation, RequestSource, StreamId,
};
use crate::mcp::Method;
use crate::message::MessageRef;

/// Runs operations. Called on the driver's thread; must not block.
pub trait Executor {
    /// Offers a request before the registry sees it. An executor that knows more than the registry
    /// answers the request, or defers it as [`Operation::Own`]. By default the registry decides.
    ///
    /// # Errors
    /// Gives the answer back if the executor does not handle the request.
    fn first<'a>(
        &mut self,
        request: &IncomingRequest<'_>,
        answer: Answer<'a>,
    ) -> Result<Disposition, Answer<'a>> {
        let _ = request;
        Err(answer)
    }

    /// Whether this executor takes requests of that method which the protocol layer answers
    /// otherwise: the handshake, pings and discovery.
    fn opens(&self, method: Method) -> bool {
        let _ = method;
        false
    }

    /// Announces the head of the HTTP request that carries the messages of that stream from now on;
    /// `None` when the stream has ended. Called only if the host
    /// [wants heads](crate::server::Hosting::wants_heads).
    fn carried(&mut self, stream: StreamId, head: Option<Arc<Head>>) {
        let _ = (stream, head);
    }

    /// Announces whether the client reads the messages that belong to no request. Over HTTP, a session begins without a stream
    /// for them (R-HTP-11); elsewhere each client reads them, and this is not called.
    fn listened(&mut self, listens: bool) {
        let _ = listens;
    }

    /// Announces the peer behind the connection, as far as the transport knows. Called before the
    /// first request, and again when the connection serves another peer.
    fn sent_from(&mut self, source: &RequestSource) {
        let _ = source;
    }

    /// Inspects a notification before the registry does. `true` if the executor consumed it. For
    /// cancellations and progress, which the protocol layer has handled, the result is ignored.
    fn hear(&mut self, message: MessageRef<'_>) -> bool {
        let _ = message;
        false
    }

    /// Runs an operation at once, on the driver's thread, if the executor wants to.
    ///
    /// # Errors
    /// Gives the answer back if the operation does not run inline; it is then deferred.
    fn inline<'a>(
        &mut self,
        operation: Operation,
        request: IncomingRequest<'_>,
        answer: Answer<'a>,
    ) -> Result<Disposition, Answer<'a>> {
        let _ = (operation, request);
        Err(answer)
    }

    /// Whether this executor itself checks the arguments of such a call, of `len` bytes, and refuses
    /// those that are not valid. If not, they are checked against the tool's schema beforehand, on the
    /// driver's thread.
    fn checks_arguments(&mut self, operation: Operation, len: usize) -> bool {
        let _ = (operation, len);
        false
    }

    /// Runs the operations of one turn.
    fn run(&mut self, batch: Batch);

    /// Runs a job of the engine itself, such as the wait for an async verifier, to completion. By default it is polled
    /// on the threads that wake it.
    fn spawn(&mut self, job: Job) {
        driven::drive(job);
    }

    /// An operation was cancelled. Its [`Call::cancel`](crate::connection::Call) is set already, so only
    /// executors that keep lists of calls need this.
    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        let _ = (key, reason);
    }

    /// The client has finished the handshake.
    fn initialized(&mut self) {}

    /// The client's roots have changed (handshake era).
    fn roots_changed(&mut self) {}

    /// The client sent a notification that no revision defines; `params` is a raw JSON object.
    fn notification(&mut self, method: &str, params: &str) {
        let _ = (method, params);
    }

    /// The connection is draining: no further request begins, and requests in flight are to finish.
    /// Answer now any request that would otherwise stay open.
    fn draining(&mut self) {}

    /// The connection has ended.
    fn closed(&mut self) {}

    /// Whether this executor can be reused for another peer instead of being told that the
    /// connection has ended: nothing is in flight, and it keeps no state of the previous peer. By
    /// default, each peer gets a new executor.
    fn renew(&mut self) -> bool {
        false
    }
}

/// The future of a running handler.
pub type Job = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Handlers that have not been started.
pub type Jobs = Box<dyn Iterator<Item = Job> + Send>;

/// Where handlers run.
pub trait Spawner: Send + Sync {
    /// Runs a job to completion on another thread or task, soon.
    fn spawn(&self, job: Job);

    /// Runs a job that blocks its thread. By default as [`spawn`](Self::spawn).
    fn spawn_blocking(&self, job: Job) {
        self.spawn(job);
    }

    /// Spawns the jobs of one turn, passed as one iterator. Take each job from the iterator only
    /// when it is about to run: the memory of the previous job is then still in the cache.
    fn spawn_batch(&self, jobs: Jobs) {
        jobs.for_each(|job| self.spawn(job));
    }

    /// Spawns jobs of one source, which should get no more than its share of the threads.
    fn spawn_batch_of(&self, source: &RequestSource, jobs: Jobs) {
        let _ = source;
        self.spawn_batch(jobs);
    }

    /// Calls `run` now, on this thread. `run` completes the answers of many connections as the last
    /// step of their handlers; an implementation can wake those connections together, where that
    /// costs less.
    fn together(&self, run: &mut dyn FnMut()) {
        run();
    }

    /// The loop that drives the connections to clients, if jobs may run on it that never block: those that drive connections to
    /// other servers. Between two connections of one loop, messages cross no thread.
    fn event_loop(&self) -> Option<&dyn Spawner> {
        None
    }
}
