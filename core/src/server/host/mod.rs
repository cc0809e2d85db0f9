//! A server on one connection: maps its events to the registry and the executor.

mod actions;
mod admission;
mod awaited;
mod batch;
mod shared_tasks;
#[cfg(feature = "skills")]
mod skills;
#[cfg_attr(
    not(feature = "http"),
    expect(dead_code, reason = "other processes know sessions over HTTP alone")
)]
mod task_notices;
mod tasks;

use std::sync::Arc;

use self::actions::Receiver;
use self::admission::Admission;
use super::access::{Access, subject};
use super::lookup::{self, Refusal, declares};
use super::registry::Registry;
use super::snapshot::{SharedRegistry, Source};
#[cfg(all(feature = "http", feature = "sealing"))]
use super::subscriptions::ChangeFeed;
use super::subscriptions::{Filter, Interests, Subscriber};
use super::tasks::Asker;
#[cfg(feature = "http")]
use crate::connection::StreamId;
use crate::connection::{
    Answer, Awaited, BATCH, Batch, CallKey, Config, Disposition, Handle, Host, IncomingRequest,
    Operation, Principal, Stray,
};
use crate::error::ConnectionError;
use crate::handler::Executor;
#[cfg(feature = "http")]
use crate::handler::Head;
#[cfg(feature = "http")]
use crate::handler::driven::drive;
use crate::json::reader;
use crate::mcp::{ErrorKind, LogLevel, Method, extension};
use crate::message::{Dialect, Field, MessageRef};
use crate::policy::Policy;
#[cfg(all(feature = "http", feature = "sealing"))]
use crate::store::SharedStore;

/// A server as its transports see it: each accepted connection gets its own host from here. A
/// transport with short connections creates thousands of hosts a second, so hosts are light and the
/// shared state lives here.
pub trait Hosting: Send + Sync + 'static {
    /// The configuration of connections; a transport may restrict it.
    fn config(&self) -> &Arc<Config>;

    /// Creates the server's side of the connection of `handle`. If this connection ends before the
    /// protocol tasks that begin on it (an HTTP exchange of 2026-07-28), their handlers sleep by
    /// `timers`.
    fn host(&self, handle: Handle, timers: Option<&Handle>) -> ServerHost;

    /// The policy that checks callers before an HTTP request is read. Fetched for each request; whether it verifies clients at all,
    /// its resource server and its consent proxy are read when the server starts.
    fn policy(&self) -> Option<Arc<Policy>>;

    /// Whether executors receive the [`Head`](crate::handler::Head) of each HTTP request, which
    /// costs a copy of its headers.
    fn wants_heads(&self) -> bool {
        false
    }

    /// The changes of lists and resources, to be passed on to the other processes of the server and taken from them.
    /// Fetched by a transport that can, when it begins to serve. By default processes know nothing of each other's.
    #[cfg(all(feature = "http", feature = "sealing"))]
    fn change_feed(&self) -> Option<ChangeFeed> {
        None
    }

    /// Passes a secret on that all processes of the server have: the state that a client holds between the rounds of a call is
    /// signed with it, if the program has given no key, so that the next round may come to any process
    /// ([`StateSigner::share`](super::StateSigner::share)). Called by a transport before it serves.
    fn share_states(&self, _key: [u8; 32]) {}

    /// Has tasks known to all processes with this store, on which sessions are shared. Called by a transport that shares
    /// sessions, before it serves. By default the program says itself whether [tasks are shared](crate::server::Builder::share_tasks).
    #[cfg(all(feature = "http", feature = "sealing"))]
    fn share_tasks(&self, store: Arc<dyn SharedStore>) {
        let _ = store;
    }

    /// A number that changes when connections that begin from now on have another server. What a
    /// transport has kept of earlier ones, to use it again, is dropped then.
    fn generation(&self) -> u64 {
        0
    }

    /// Announces that the transport serves no connection any more: what was kept for further ones, such as connections to other
    /// servers, is closed.
    fn ended(&self) {}
}

/// The [`Host`] of a server. Requests that the registry alone can answer (lists, unknown names,
/// arguments that break the schema) never reach the executor.
#[derive(Debug)]
pub struct ServerHost<E: ?Sized = dyn Executor + Send> {
    registry: Arc<Registry>,
    /// The source of a registry that may change, and the version of the current one.
    source: Option<(Arc<dyn Source>, u64)>,
    /// Created on first use.
    subscriber: Option<Arc<Subscriber>>,
    handle: Handle,
    initialized: bool,
    /// Whether the client of a session is notified of its tasks at other processes.
    #[cfg(feature = "http")]
    follows_tasks: bool,
    admission: Admission,
    executor: Box<E>,
}

impl<E: Executor + ?Sized> ServerHost<E> {
    /// Serves a fixed `registry` on the connection of `handle`.
    pub fn new(registry: Arc<Registry>, handle: Handle, executor: Box<E>) -> Self {
        Self {
            registry,
            source: None,
            subscriber: None,
            admission: Admission::new(handle.clone()),
            handle,
            initialized: false,
            #[cfg(feature = "http")]
            follows_tasks: false,
            executor,
        }
    }

    /// Serves the current registry of `shared` on the connection of `handle`.
    pub fn shared<H>(shared: Arc<SharedRegistry<H>>, handle: Handle, executor: Box<E>) -> Self
    where
        H: Send + Sync + 'static,
    {
        // Read the version first: if the registry changes in between, it is only fetched once more.
        let version = shared.version();
        let mut host = Self::new(shared.registry(), handle, executor);
        host.source = Some((shared, version));
        host
    }

    fn refresh(&mut self) {
        if let Some((source, seen)) = &mut self.source {
            let version = source.version();
            if version != *seen {
                *seen = version;
                self.registry = source.registry();
            }
        }
    }

    /// Returns this connection's subscriber; creates it on first use.
    fn subscriber(&mut self) -> &Arc<Subscriber> {
        let (registry, handle) = (&self.registry, &self.handle);
        self.subscriber
            .get_or_insert_with(|| registry.subscribers().join(handle.clone()))
    }

    /// Sets the HTTP head of the request that carries the messages of a stream.
    #[cfg(feature = "http")]
    pub(crate) fn carried(&mut self, stream: StreamId, head: Option<Arc<Head>>) {
        self.executor.carried(stream, head);
    }

    /// Sets whether the client reads messages that belong to no request.
    #[cfg(feature = "http")]
    pub(crate) fn listened(&mut self, listens: bool) {
        self.executor.listened(listens);
        if listens
            && !self.follows_tasks
            && let Some(job) = task_notices::of_session(&self.registry, &self.handle)
        {
            self.follows_tasks = true;
            drive(job);
        }
    }

    /// Sets the sender of the messages received from now on, if it differs from the connection's.
    #[cfg(feature = "http")]
    pub(crate) fn sent_by(&mut self, principal: Option<Principal>) {
        self.admission.current = principal;
    }

    /// Sets whether the messages received from now on repeat what their client has sent to another process, which has counted
    /// them.
    #[cfg(feature = "http")]
    pub(crate) fn sent_again(&mut self, is_repeated: bool) {
        self.admission.is_repeated = is_repeated;
    }

    /// Sets the origin of the connection, by which its rates, quotas and share of the workers
    /// count.
    #[cfg(feature = "http")]
    pub(crate) fn sent_from(&mut self, source: crate::connection::RequestSource) {
        self.executor.sent_from(&source);
        self.admission.from = source;
    }

    /// Returns the current registry.
    #[cfg(feature = "http")]
    pub(crate) fn registry(&mut self) -> &Registry {
        self.refresh();
        &self.registry
    }

    /// Returns whether a GET with this action is served.
    #[cfg(feature = "http")]
    pub(crate) fn runs_on_get(&mut self, tool: Option<&str>, action: &str) -> bool {
        self.refresh();
        let implementation = &self.handle.config().implementation;
        actions::runs_on_get(&self.registry, implementation, tool, action)
    }

    /// Returns whether this host can serve another peer, because it keeps no state of the last one.
    #[cfg(feature = "http")]
    pub(crate) fn renew(&mut self) -> bool {
        self.subscriber.is_none() && !self.initialized && self.executor.renew()
    }

    /// Returns the executor.
    pub fn executor(&mut self) -> &mut E {
        &mut self.executor
    }

    /// Returns the caller: the principal of the request itself, or else of the connection.
    fn principal<'a>(&'a self, own: Option<&'a Principal>) -> Option<&'a str> {
        own.map(Principal::as_str)
            .or_else(|| self.handle.principal())
    }

    /// Answers at once if the executor runs the operation inline; otherwise defers the request.
    fn operate(
        &mut self,
        operation: Result<Operation, Refusal>,
        request: IncomingRequest<'_>,
        answer: Answer<'_>,
    ) -> Disposition {
        let operation = match operation {
            Ok(operation) => operation,
            Err(refusal) => return refusal.send(answer),
        };
        match self.executor.inline(operation, request, answer) {
            Ok(disposition) => disposition,
            Err(_answer) => Disposition::Deferred(operation),
        }
    }

    fn call_tool(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        let (profile, executor) = (self.handle.config().profile, &mut self.executor);
        let checks_later = |operation, len| executor.checks_arguments(operation, len);
        match lookup::call_tool(&self.registry, &request, profile, checks_later) {
            Ok((operation, false)) => Disposition::Deferred(operation),
            found => self.operate(found.map(|(operation, _)| operation), request, answer),
        }
    }

    /// Calls `use_it` with what this client may listen to.
    fn with_filter<R>(&self, who: Option<&Principal>, use_it: impl FnOnce(&Filter<'_>) -> R) -> R {
        let registry = &*self.registry;
        let principal = self.principal(who);
        let may_listen = |uri: &str| {
            let access = Access {
                method: Method::Subscribe,
                name: uri,
                principal,
                arguments: None,
            };
            let policy = registry.policy();
            // Without a principal, a chain asks on behalf of nobody.
            let is_known = principal.is_some() || !registry.verifies();
            let is_allowed = is_known && policy.is_none_or(|policy| policy.may_watch(uri, who));
            registry.subscribes()
                && registry.read(uri).is_some()
                && is_allowed
                && registry
                    .guard()
                    .is_none_or(|guard| guard.check(&access).is_ok())
        };
        // Whether other processes have it is found out before the stream begins.
        let has_task = |id: &str| {
            let tasks = registry.tasks();
            registry.has_tasks() && (tasks.has(id, principal) || tasks.shared().is_some())
        };
        use_it(&Filter {
            lists: registry.may_change(),
            uri: &may_listen,
            task: &has_task,
        })
    }

    /// R-SUB-01, R-SUB-12
    fn listen(&mut self, request: &IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        let params = request.message.params().unwrap_or("{}");
        let has_tasks = reader::find_path(params, &["notifications", "taskIds"]).is_some();
        if has_tasks && self.registry.has_tasks() && !declares(request, extension::TASKS) {
            return Refusal::extension(extension::TASKS).send(answer);
        }
        match self.with_filter(answer.principal(), |filter| {
            Interests::parse(params, filter)
        }) {
            Err(why) => answer.error(ErrorKind::InvalidParams, why, None),
            Ok(_) => Disposition::Deferred(Operation::Listen),
        }
    }

    /// R-RES-06, R-RES-07
    fn subscribe(
        &mut self,
        method: Method,
        request: &IncomingRequest<'_>,
        answer: Answer<'_>,
    ) -> Disposition {
        let uri = match lookup::uri(request) {
            Ok(uri) => uri,
            Err(refusal) => return refusal.send(answer),
        };
        if method == Method::Unsubscribe {
            self.subscriber().unsubscribe(&uri);
            return answer.result(|_| ());
        }
        if self.registry.read(&uri).is_none() {
            return Refusal::resource(ErrorKind::ResourceNotFound, &uri).send(answer);
        }
        match self.subscriber().subscribe(&uri) {
            true => answer.result(|_| ()),
            false => answer.error(
                ErrorKind::Overloaded,
                "too many subscriptions, or too long ones",
                None,
            ),
        }
    }

    /// Answers an action or defers it.
    fn action(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        let own = answer.principal().cloned();
        let receiver = Receiver {
            registry: &self.registry,
            implementation: &self.handle.config().implementation,
            principal: self.principal(own.as_ref()),
        };
        match receiver.receive(&request, answer) {
            Ok((operation, answer)) => self.operate(Ok(operation), request, answer),
            Err(disposition) => disposition,
        }
    }

    /// Answers a request or defers it.
    fn decide(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        self.refresh();
        let registry = self.registry.clone();
        let is_action = request.message.dialect() != Dialect::Rpc;
        let answer = match self.admission.admit(&registry, &request, answer) {
            Ok(answer) => answer,
            Err(disposition) => return disposition,
        };
        if is_action {
            return self.action(request, answer);
        }
        let answer = match self.executor.first(&request, answer) {
            Ok(disposition) => return disposition,
            Err(answer) => answer,
        };
        if let Some(guard) = registry.guard()
            && let Some((method, name)) = subject(&request)
        {
            let access = Access {
                method,
                name: &name,
                principal: self.principal(answer.principal()),
                arguments: request.message.arguments(),
            };
            if let Err(refusal) = guard.check(&access) {
                return answer.error(refusal.kind(), &refusal.to_string(), refusal.data());
            }
        }
        match request.method {
            Some(Method::CallTool) if registry.has_tools() => self.call_tool(request, answer),
            #[cfg(feature = "skills")]
            Some(Method::ReadResource)
                if !registry.skills().is_empty()
                    && let Some((uri, file)) = skills::file_of(registry.skills(), &request) =>
            {
                skills::read(&uri, file, answer)
            }
            #[cfg(feature = "skills")]
            Some(method @ (Method::ListSkills | Method::GetSkill | Method::ReadDirectory))
                if !registry.skills().is_empty() =>
            {
                skills::answer(&registry, method, &request, answer)
            }
            Some(Method::ReadResource) if registry.has_resources() => {
                self.operate(lookup::read(&registry, &request), request, answer)
            }
            Some(Method::GetPrompt) if registry.has_prompts() => {
                self.operate(lookup::prompt(&registry, &request), request, answer)
            }
            Some(method) if registry.has_list(method) => {
                let cursor = request.message.raw(Field::Cursor);
                let (revision, who) = (request.revision, answer.principal());
                let page = registry.list_page(method, revision, cursor, who);
                list(answer, page.as_deref(), registry.list_meta(method))
            }
            Some(method @ (Method::Subscribe | Method::Unsubscribe)) if registry.subscribes() => {
                self.subscribe(method, &request, answer)
            }
            Some(Method::Listen)
                if registry.subscribes() || registry.may_change() || registry.has_tasks() =>
            {
                self.listen(&request, answer)
            }
            Some(
                method @ (Method::GetTask
                | Method::CancelTask
                | Method::TaskResult
                | Method::ListTasks
                | Method::UpdateTask),
            ) if registry.has_tasks() => {
                let own = answer.principal().cloned();
                let asks = Asker {
                    handle: &self.handle,
                    principal: self.principal(own.as_ref()),
                };
                tasks::answer(&registry, asks, method, &request, answer)
            }
            Some(Method::Complete) if registry.completes() => {
                let profile = self.handle.config().profile;
                let operation = lookup::completion(&registry, &request, profile);
                self.operate(operation, request, answer)
            }
            Some(Method::SetLevel) => match request.message.params().and_then(level) {
                Some(level) => {
                    self.handle.set_log_level(level);
                    answer.result(|_| ())
                }
                // R-ERR-14
                None => answer.error(ErrorKind::InvalidParams, "unknown log level", None),
            },
            None if request.message.method().as_deref() == Some(BATCH)
                && batch::are_allowed(&registry, &self.handle, &request) =>
            {
                batch::accept(&registry, &self.handle, &request, answer)
            }
            None => self.operate(
                lookup::extension_method(&registry, &request),
                request,
                answer,
            ),
            _ => Refusal::method(&request).send(answer),
        }
    }
}

fn list(answer: Answer<'_>, page: Option<&str>, meta: Option<&str>) -> Disposition {
    match page {
        Some(members) => answer.result(|result| {
            result.encoded(members);
            if let Some(meta) = meta {
                result.meta(meta);
            }
        }),
        None => answer.error(ErrorKind::InvalidParams, "unknown cursor", None),
    }
}

/// The level that `logging/setLevel` names.
fn level(params: &str) -> Option<LogLevel> {
    let name = reader::find(params, "level").and_then(reader::as_str)?;
    LogLevel::parse(&name)
}

impl<E: Executor + ?Sized> Host for ServerHost<E> {
    fn request(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        let before = self.admission.proven.len();
        let disposition = self.decide(request, answer);
        if disposition == Disposition::Answered {
            self.admission.proven.truncate(before);
        }
        disposition
    }

    fn awaited(
        &mut self,
        request: IncomingRequest<'_>,
        answer: Answer<'_>,
        awaited: Awaited,
    ) -> Disposition {
        self.admission.awaited = Some(awaited);
        let disposition = self.request(request, answer);
        if disposition == Disposition::Answered {
            self.admission.awaited = None;
        }
        disposition
    }

    fn opens(&self, method: Method) -> bool {
        self.executor.opens(method)
    }

    fn dispatch(&mut self, mut batch: Batch) {
        for call in batch.take(Operation::AwaitAdmission) {
            let from = self.admission.from.clone();
            let known = self.admission.known_of(&call);
            let job = awaited::job(&self.registry, &self.handle, from, known, call);
            self.executor.spawn(job);
        }
        self.admission.intercept(&self.registry, &mut batch);
        for call in batch.take(Operation::Listen) {
            let params = call.message.as_ref().params().unwrap_or("{}");
            // The params were checked before; a change of the offer since then does not matter.
            let who = call.reply.principal();
            let interests = self.with_filter(who, |filter| Interests::parse(params, filter));
            let Ok(interests) = interests else { continue };
            let subscriber = self.subscriber().clone();
            let (registry, handle) = (&self.registry, &self.handle);
            if let Some(job) = task_notices::listen(registry, handle, &subscriber, call, interests)
            {
                self.executor.spawn(job);
            }
        }
        if self.registry.has_tasks() {
            for call in batch.take(Operation::AwaitTask) {
                match shared_tasks::job(&self.registry, &self.handle, &call) {
                    Some(job) => self.executor.spawn(job),
                    None => tasks::answer_at_end(&self.registry, &self.handle, call),
                }
            }
        }
        for call in batch.take(Operation::ServeBatch) {
            batch::serve(&self.registry, &self.handle, &call);
        }
        if !batch.is_empty() {
            self.executor.run(batch);
        }
    }

    fn detached(&mut self, batch: Batch) {
        self.executor.run(batch);
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        if let Some(subscriber) = &self.subscriber {
            subscriber.cancelled(key);
        }
        self.executor.cancelled(key, reason);
    }

    fn draining(&mut self) {
        if let Some(subscriber) = &self.subscriber {
            subscriber.end();
        }
        self.executor.draining();
    }

    fn overheard(&mut self, message: MessageRef<'_>) {
        self.executor.hear(message);
    }

    fn notification(&mut self, message: MessageRef<'_>) {
        if self.executor.hear(message) {
            return;
        }
        let name = message.method().unwrap_or_default();
        let method = Method::parse(&name);
        if method.is_none() {
            let params = message.params().unwrap_or("{}");
            return self.executor.notification(&name, params);
        }
        let tells = matches!(method, Some(Method::Initialized | Method::InitializedBare));
        if method == Some(Method::RootsChanged) {
            self.executor.roots_changed();
        }
        if tells && !self.initialized && self.handle.revision().is_some() {
            self.initialized = true;
            self.subscriber().set_ready();
            self.executor.initialized();
        }
    }

    fn closed(&mut self, reason: &ConnectionError) {
        self.registry.tasks().leave(&self.handle, reason);
        self.executor.closed();
    }

    fn stray(&mut self, _what: Stray, _frame: &[u8]) {}
}
