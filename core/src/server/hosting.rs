//! Serving many connections: creates the server's side of each.

use std::sync::Arc;

use super::builder::Server;
use super::executor::HandlerExecutor;
use super::host::ServerHost;
use crate::connection::{
    Answer, Batch, CallKey, Config, Disposition, Handle, IncomingRequest, Operation, RequestSource,
    StreamId,
};
use crate::handler::{Executor, Head, Spawner};
use crate::mcp::Method;
use crate::message::MessageRef;
use crate::policy::Policy;

/// An [`Executor`] of any type.
pub type AnyExecutor = Box<dyn Executor + Send>;

/// A server as its transports see it: each accepted connection gets its own host from here. A
/// transport with short connections creates thousands of hosts a second, so hosts are light and the
/// shared state lives here.
pub trait Hosting: Send + Sync + 'static {
    /// The configuration of connections; a transport may restrict it.
    fn config(&self) -> &Arc<Config>;

    /// Creates the server's side of the connection of `handle`. If this connection ends before the
    /// protocol tasks that begin on it (an HTTP exchange of 2026-07-28), their handlers sleep by
    /// `timers`.
    fn host(&self, handle: Handle, timers: Option<&Handle>) -> ServerHost<AnyExecutor>;

    /// The policy that checks callers before an HTTP request is read. Fetched when the server
    /// starts; later changes have no effect.
    fn policy(&self) -> Option<Arc<Policy>>;

    /// Whether executors receive the [`Head`] of each HTTP request, which costs a copy of its
    /// headers.
    fn wants_heads(&self) -> bool {
        false
    }
}

impl Server {
    /// Returns this server with its handlers running on `spawner`.
    pub fn hosting(&self, spawner: Arc<dyn Spawner>) -> Arc<dyn Hosting> {
        let server = self.clone();
        Arc::new(Hosted { server, spawner })
    }
}

struct Hosted {
    server: Server,
    spawner: Arc<dyn Spawner>,
}

impl Hosting for Hosted {
    fn config(&self) -> &Arc<Config> {
        self.server.config()
    }

    fn policy(&self) -> Option<Arc<Policy>> {
        self.server.registry().policy.clone()
    }

    fn host(&self, handle: Handle, timers: Option<&Handle>) -> ServerHost<AnyExecutor> {
        let (server, spawner) = (self.server.clone(), self.spawner.clone());
        let executor = HandlerExecutor::new(server, handle.clone(), spawner);
        let executor = executor.with_timers(timers.cloned());
        ServerHost::of(&self.server, handle, Box::new(executor))
    }
}

impl Executor for AnyExecutor {
    fn first<'a>(
        &mut self,
        request: &IncomingRequest<'_>,
        answer: Answer<'a>,
    ) -> Result<Disposition, Answer<'a>> {
        (**self).first(request, answer)
    }

    fn opens(&self, method: Method) -> bool {
        (**self).opens(method)
    }

    fn carried(&mut self, stream: StreamId, head: Option<Arc<Head>>) {
        (**self).carried(stream, head);
    }

    fn sent_from(&mut self, source: &RequestSource) {
        (**self).sent_from(source);
    }

    fn hear(&mut self, message: MessageRef<'_>) -> bool {
        (**self).hear(message)
    }

    fn inline<'a>(
        &mut self,
        operation: Operation,
        request: IncomingRequest<'_>,
        answer: Answer<'a>,
    ) -> Result<Disposition, Answer<'a>> {
        (**self).inline(operation, request, answer)
    }

    fn checks_arguments(&mut self, operation: Operation) -> bool {
        (**self).checks_arguments(operation)
    }

    fn run(&mut self, batch: Batch) {
        (**self).run(batch);
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        (**self).cancelled(key, reason);
    }

    fn initialized(&mut self) {
        (**self).initialized();
    }

    fn roots_changed(&mut self) {
        (**self).roots_changed();
    }

    fn notification(&mut self, method: &str, params: &str) {
        (**self).notification(method, params);
    }

    fn draining(&mut self) {
        (**self).draining();
    }

    fn closed(&mut self) {
        (**self).closed();
    }

    fn renew(&mut self) -> bool {
        (**self).renew()
    }
}
