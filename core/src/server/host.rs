//! A server on one connection: answers from the registry, hands operations to an executor.

use std::sync::Arc;

use super::access::{Access, subject};
use super::audience::Listener;
use super::builder::Server;
use super::listen::Interests;
use super::live::{Live, Source};
use super::operations::{missing, not_offered};
use super::registry::{Pages, Registry, level, page};
#[cfg(feature = "skills")]
use super::skills::{Skills, file_of};
use super::tasks::{Asker, declares, missing_extension};
#[cfg(feature = "http")]
use crate::connection::StreamId;
use crate::connection::{
    Answer, BATCH, Batch, CallKey, Disposition, Handle, Host, Implementation, IncomingRequest,
    Operation, Principal, Stray,
};
use crate::error::ConnectionError;
use crate::handler::Executor;
#[cfg(feature = "http")]
use crate::handler::Head;
use crate::json::reader;
use crate::mcp::{ErrorKind, Method, extension};
use crate::message::{Dialect, Field, MessageRef};

/// The [`Host`] of a server. Requests that the registry alone can answer (lists, unknown names,
/// arguments that break the schema) never reach the executor.
#[derive(Debug)]
pub struct ServerHost<E> {
    pub(super) registry: Arc<Registry>,
    /// The source of a registry that may change, and the version of the current one.
    source: Option<(Arc<dyn Source>, u64)>,
    /// Created on first use.
    listener: Option<Arc<Listener>>,
    pub(super) handle: Handle,
    executor: E,
    initialized: bool,
    /// The origin of the connection, as far as the transport knows it.
    pub(super) from: crate::connection::RequestSource,
    /// The sender of the current message, where the transport knows it per message.
    pub(super) current: Option<Principal>,
    /// The callers of requests that are deferred but not yet dispatched, by the digest of their
    /// `auth`.
    pub(super) proven: Vec<([u8; 32], Principal)>,
}

impl<E: Executor> ServerHost<E> {
    /// Serves a fixed `registry` on the connection of `handle`.
    pub fn new(registry: Arc<Registry>, handle: Handle, executor: E) -> Self {
        Self {
            listener: None,
            registry,
            source: None,
            handle,
            executor,
            initialized: false,
            from: crate::connection::RequestSource::Unknown,
            current: None,
            proven: Vec::new(),
        }
    }

    /// Serves the current offer of `server` on the connection of `handle`.
    pub fn of(server: &Server, handle: Handle, executor: E) -> Self {
        Self::live(server.live.clone(), handle, executor)
    }

    /// Serves the current offer of `live` on the connection of `handle`.
    pub fn live<H>(live: Arc<Live<H>>, handle: Handle, executor: E) -> Self
    where
        H: Send + Sync + 'static,
    {
        // Read the version first: if the offer changes in between, it is only fetched once more.
        let version = live.version();
        let mut host = Self::new(live.registry(), handle, executor);
        host.source = Some((live, version));
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

    /// Returns this connection's listener; creates it on first use, which joins the audience.
    fn listener(&mut self) -> &Listener {
        let (registry, handle) = (&self.registry, &self.handle);
        self.listener
            .get_or_insert_with(|| registry.audience.join(handle.clone()))
    }

    /// Sets the HTTP head of the request that carries the messages of a stream.
    #[cfg(feature = "http")]
    pub(crate) fn carried(&mut self, stream: StreamId, head: Option<Arc<Head>>) {
        self.executor.carried(stream, head);
    }

    /// Sets the sender of the messages received from now on, if it differs from the connection's.
    #[cfg(feature = "http")]
    pub(crate) fn sent_by(&mut self, principal: Option<Principal>) {
        self.current = principal;
    }

    /// Sets the origin of the connection, by which its rates, quotas and share of the workers
    /// count.
    #[cfg(feature = "http")]
    pub(crate) fn sent_from(&mut self, source: crate::connection::RequestSource) {
        self.executor.sent_from(&source);
        self.from = source;
    }

    /// Returns the current registry, shared.
    pub(super) fn shared_registry(&mut self) -> Arc<Registry> {
        self.refresh();
        self.registry.clone()
    }

    /// Returns the caller: the principal of the request itself, or else of the connection.
    pub(super) fn principal<'a>(&'a self, answer: &'a Answer<'_>) -> Option<&'a str> {
        let own = answer.principal().map(Principal::as_str);
        own.or_else(|| self.handle.principal())
    }

    /// Returns the name and version of this server.
    pub(super) fn implementation(&self) -> &Implementation {
        &self.handle.config().implementation
    }

    /// Returns the current registry.
    pub(crate) fn registry(&mut self) -> &Registry {
        self.refresh();
        &self.registry
    }

    /// Returns whether this host can serve another peer, because it keeps no state of the last one.
    #[cfg(feature = "http")]
    pub(crate) fn renew(&mut self) -> bool {
        self.listener.is_none() && !self.initialized && self.executor.renew()
    }

    /// Returns the executor.
    pub fn executor(&mut self) -> &mut E {
        &mut self.executor
    }

    fn list(
        &self,
        request: &IncomingRequest<'_>,
        answer: Answer<'_>,
        offered: bool,
        pages: &Pages,
    ) -> Disposition {
        if !offered {
            return not_offered(answer, request);
        }
        match page(pages, request.message.raw(Field::Cursor)) {
            Some(members) => answer.result(|result| result.encoded(members)),
            None => answer.error(ErrorKind::InvalidParams, "unknown cursor", None),
        }
    }
}

impl<E: Executor> ServerHost<E> {
    /// R-SUB-01, R-SUB-12
    fn listen(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        let params = request.message.params().unwrap_or("{}");
        let has_tasks = reader::find_path(params, &["notifications", "taskIds"]).is_some();
        if has_tasks && self.registry.has_tasks() && !declares(&request, extension::TASKS) {
            return missing_extension(answer, extension::TASKS);
        }
        match Interests::parse(params, &self.registry, self.principal(&answer)) {
            Err(why) => answer.error(ErrorKind::InvalidParams, why, None),
            Ok(interests) if !self.listener().has_room(interests.bytes()) => answer.error(
                ErrorKind::Overloaded,
                "too many streams are open, or they name too much",
                None,
            ),
            Ok(_) => Disposition::Deferred(Operation::Listen),
        }
    }

    /// R-RES-06, R-RES-07
    fn subscribe(
        &mut self,
        method: Method,
        request: IncomingRequest<'_>,
        answer: Answer<'_>,
    ) -> Disposition {
        let Some(uri) = request.message.uri() else {
            return answer.error(ErrorKind::InvalidParams, "the uri is missing", None);
        };
        if method == Method::Unsubscribe {
            self.listener().unsubscribe(&uri);
            return answer.result(|_| ());
        }
        if !self.registry.reads(&uri) {
            return missing(answer, ErrorKind::ResourceNotFound, &uri);
        }
        match self.listener().subscribe(&uri) {
            true => answer.result(|_| ()),
            false => answer.error(
                ErrorKind::Overloaded,
                "too many subscriptions, or too long ones",
                None,
            ),
        }
    }
}

impl<E: Executor> ServerHost<E> {
    /// Answers a request or defers it.
    fn decide(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        self.refresh();
        let registry = self.registry.clone();
        let is_action = request.message.dialect() != Dialect::Rpc;
        let answer = match self.admit(&registry, &request, answer) {
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
        let lists = || registry.lists(request.revision);
        let resources = registry.has_resources();
        if registry.has_guard()
            && let Some((method, name)) = subject(&request)
        {
            let access = Access {
                method,
                name: &name,
                principal: self.principal(&answer),
                arguments: request.message.arguments(),
            };
            if let Err(refusal) = registry.admits(&access) {
                return answer.error(refusal.kind(), &refusal.to_string(), refusal.data());
            }
        }
        match request.method {
            Some(Method::CallTool) if registry.has_tools() => self.call_tool(request, answer),
            #[cfg(feature = "skills")]
            Some(Method::ReadResource)
                if !registry.skills().is_empty()
                    && let Some((uri, file)) = file_of(registry.skills(), &request) =>
            {
                Skills::read(&uri, file, answer)
            }
            #[cfg(feature = "skills")]
            Some(method @ (Method::ListSkills | Method::GetSkill | Method::ReadDirectory))
                if !registry.skills().is_empty() =>
            {
                registry.answer_skills(method, &request, answer)
            }
            Some(Method::ReadResource) if resources => self.read(request, answer),
            Some(Method::GetPrompt) if registry.has_prompts() => self.get_prompt(request, answer),
            Some(Method::ListTools) => {
                self.list(&request, answer, registry.has_tools(), &lists().tools)
            }
            Some(Method::ListResources) => {
                self.list(&request, answer, resources, &lists().resources)
            }
            Some(Method::ListResourceTemplates) => {
                self.list(&request, answer, resources, &lists().templates)
            }
            Some(Method::ListPrompts) => {
                self.list(&request, answer, registry.has_prompts(), &lists().prompts)
            }
            Some(method @ (Method::Subscribe | Method::Unsubscribe)) if registry.subscribes => {
                self.subscribe(method, request, answer)
            }
            Some(Method::Listen)
                if registry.subscribes || registry.may_change() || registry.has_tasks() =>
            {
                self.listen(request, answer)
            }
            Some(
                method @ (Method::GetTask
                | Method::CancelTask
                | Method::TaskResult
                | Method::ListTasks
                | Method::UpdateTask),
            ) if registry.has_tasks() => {
                let own = answer.principal().cloned();
                let own = own.as_ref().map(Principal::as_str);
                let asks = Asker {
                    handle: &self.handle,
                    principal: own.or_else(|| self.handle.principal()),
                };
                let whose = (&*registry, asks);
                registry.tasks().answer(whose, method, &request, answer)
            }
            Some(Method::Complete) if registry.completes => self.complete(request, answer),
            Some(Method::SetLevel) => match request.message.params().and_then(level) {
                Some(level) => {
                    self.handle.set_log_level(level);
                    answer.result(|_| ())
                }
                // R-ERR-14
                None => answer.error(ErrorKind::InvalidParams, "unknown log level", None),
            },
            None if request.message.method().as_deref() == Some(BATCH)
                && self.takes_batches(&request) =>
            {
                self.batch(&request, answer)
            }
            None => self.extension(request, answer),
            _ => not_offered(answer, &request),
        }
    }
}

impl<E: Executor> Host for ServerHost<E> {
    fn request(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        let before = self.proven.len();
        let disposition = self.decide(request, answer);
        if disposition == Disposition::Answered {
            self.proven.truncate(before);
        }
        disposition
    }

    fn opens(&self, method: Method) -> bool {
        self.executor.opens(method)
    }

    fn dispatch(&mut self, mut batch: Batch) {
        self.intercept(&mut batch);
        for call in batch.take(Operation::Listen) {
            let params = call.message.as_ref().params().unwrap_or("{}");
            // The params were checked before; a change of the offer since then does not matter.
            let who = call.reply.principal().map(Principal::as_str);
            let who = who.or_else(|| self.handle.principal());
            if let Ok(interests) = Interests::parse(params, &self.registry, who) {
                self.listener().listen(&call, interests);
            }
        }
        if self.registry.has_tasks() {
            for call in batch.take(Operation::AwaitTask) {
                self.registry.tasks().answer_at_end(&self.handle, call);
            }
        }
        for call in batch.take(Operation::ServeBatch) {
            self.serve_batch(&call);
        }
        if !batch.is_empty() {
            self.executor.run(batch);
        }
    }

    fn cancelled(&mut self, key: CallKey, reason: Option<&str>) {
        if let Some(listener) = &self.listener {
            listener.cancelled(key);
        }
        self.executor.cancelled(key, reason);
    }

    fn draining(&mut self) {
        if let Some(listener) = &self.listener {
            listener.end();
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
            self.listener().set_ready();
            self.executor.initialized();
        }
    }

    fn closed(&mut self, _reason: &ConnectionError) {
        self.registry.tasks().leave(&self.handle);
        self.executor.closed();
    }

    fn stray(&mut self, _what: Stray, _frame: &[u8]) {}
}
