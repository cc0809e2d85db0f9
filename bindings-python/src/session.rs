//! One connection of a server. It is small, since over HTTP each request may be one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mcpbolt::connection::{Call, CallKey, Handle, StreamId};
use mcpbolt::correlate::Cancelled;
use mcpbolt::handler::Head;
use mcpbolt::mcp::ErrorKind;
use mcpbolt::server::{self, TaskCall};
use mcpbolt::telemetry::HostTelemetry;
use pyo3::prelude::*;

use crate::hub::{Event, Hub};
use crate::straight::Straight;
use crate::target::Target;
use crate::telemetry::Telemetry;
use crate::workers::{NOBODY, Tag};

/// A call and the function for it.
#[derive(Debug)]
pub struct Work {
    pub session: Arc<Session>,
    pub call: Call,
    pub target: Arc<Target>,
    /// The engine's context, for a call that may continue as an MCP task.
    pub context: Option<Box<server::Context>>,
    /// The session of this call alone, which keeps its values, if the connection carries calls of several clients.
    pub own: Option<Arc<Session>>,
    /// Whether the arguments need no validator; set when they are read.
    pub is_straight: AtomicBool,
}

impl Work {
    /// The way to carry out this call without a validator, if it needs none.
    pub fn straight(&self) -> Option<&Straight> {
        let is_straight = self.is_straight.load(Ordering::Relaxed);
        self.target.straight.as_ref().filter(|_| is_straight)
    }

    /// The function to call; valid once the arguments were read.
    pub fn function(&self) -> &Py<PyAny> {
        match self.straight() {
            Some(straight) => &straight.function,
            None => &self.target.function,
        }
    }

    /// The observer of the call, and the description of its span, which begins now; `None` the second time.
    pub fn span(&self) -> Option<(&Telemetry, String)> {
        let telemetry = self.session.hub.served.telemetry.as_ref()?;
        let mut span = None;
        let scope = self.call.scope.as_ref()?;
        scope.enter(&mut || span = HostTelemetry::begun());
        Some((telemetry.get(), span?))
    }

    /// The MCP task that the call has become, if any.
    pub fn task(&self) -> Option<&TaskCall> {
        let task = self.context.as_ref()?.task()?;
        task.is_task().then_some(task)
    }
}

/// One connection. Engine threads hold it too: only methods that take a `Python` token need the
/// interpreter.
pub struct Session {
    pub hub: Arc<Hub>,
    pub handle: Handle,
    /// The kernel's object for this connection.
    pub peer: ObjectSlot,
    /// Whether the kernel has accepted the handshake.
    pub is_open: AtomicBool,
    /// The HTTP request head of each stream; kept only for a kernel.
    heads: Mutex<HashMap<StreamId, Arc<Head>>>,
    /// The session id, in an HTTP session.
    name: OnceLock<Box<str>>,
    /// The running tasks of the event loop, by call.
    tasks: Mutex<HashMap<CallKey, RunningTask>>,
    /// The tag that the workers know the source of the requests by.
    tag: AtomicU64,
    /// The object for values that last as long as the connection and its calls.
    kept: ObjectSlot,
}

/// A running task of the event loop.
pub struct RunningTask {
    task: Py<PyAny>,
    /// Whether it belongs to the kernel.
    is_kernels: bool,
    /// Reports the cancellation of a call that runs as an MCP task, and is therefore answered already.
    _cancellation: Option<Cancelled>,
}

impl RunningTask {
    /// The task of a call.
    pub fn of_call(task: Py<PyAny>, cancellation: Option<Cancelled>) -> Self {
        Self {
            task,
            is_kernels: false,
            _cancellation: cancellation,
        }
    }

    /// A task of the kernel, which is cancelled only together with its call.
    pub fn of_kernel(task: Py<PyAny>) -> Self {
        Self {
            task,
            is_kernels: true,
            _cancellation: None,
        }
    }
}

/// A Python object that a connection keeps until it ends.
#[derive(Default)]
pub struct ObjectSlot(Mutex<Option<Py<PyAny>>>);

impl ObjectSlot {
    fn lock(&self) -> MutexGuard<'_, Option<Py<PyAny>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the object; makes and keeps it if there is none. Call it from one thread only.
    pub fn or_make<'py>(
        &self,
        py: Python<'py>,
        make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(kept) = &*self.lock() {
            return Ok(kept.bind(py).clone());
        }
        let made = make()?;
        *self.lock() = Some(made.clone().unbind());
        Ok(made)
    }

    /// Removes and returns the object.
    pub fn take<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.lock().take().map(|kept| kept.into_bound(py))
    }
}

impl Session {
    /// Makes the session for the connection of `handle`.
    pub fn new(hub: Arc<Hub>, handle: Handle) -> Arc<Self> {
        Arc::new(Self {
            hub,
            handle,
            peer: ObjectSlot::default(),
            is_open: AtomicBool::new(false),
            heads: Mutex::default(),
            name: OnceLock::new(),
            tasks: Mutex::default(),
            tag: AtomicU64::new(NOBODY),
            kept: ObjectSlot::default(),
        })
    }

    /// Makes the engine's context of a call. If the state that the client brings from an earlier round is
    /// invalid, answers the call with an error and returns `None`.
    pub fn context(&self, call: &Call) -> Option<server::Context> {
        let signer = self.hub.served.state_signer.as_ref();
        match server::Context::new(self.handle.clone(), call, signer) {
            Ok(context) => Some(context),
            Err(why) => {
                let mut replies = self.handle.replies();
                replies.error(&call.reply, ErrorKind::InvalidParams, why, None);
                call.cancel.cancel(None);
                None
            }
        }
    }

    /// The tag that the workers know the source of the requests by.
    pub fn tag(&self) -> Tag {
        self.tag.load(Ordering::Relaxed)
    }

    pub fn set_tag(&self, tag: Tag) {
        self.tag.store(tag, Ordering::Relaxed);
    }

    /// The object that lasts as long as the connection and its calls; `make` makes it.
    pub fn kept<'py>(&self, make: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = make.py();
        if let Some(kept) = &*self.kept.lock() {
            return Ok(kept.bind(py).clone());
        }
        let made = make.call0()?.unbind();
        let mut slot = self.kept.lock();
        // Another thread may have been first.
        if slot.is_none() {
            self.hub.keeps_one();
        }
        let kept = slot.get_or_insert(made);
        Ok(kept.bind(py).clone())
    }

    fn heads(&self) -> MutexGuard<'_, HashMap<StreamId, Arc<Head>>> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the HTTP request head of a stream; `None` when the stream has ended.
    pub fn carried(&self, stream: StreamId, head: Option<Arc<Head>>) {
        match head {
            Some(head) => {
                if let Some(name) = &head.session {
                    self.name.get_or_init(|| name.clone());
                }
                self.heads().insert(stream, head);
            }
            None => drop(self.heads().remove(&stream)),
        }
    }

    /// The HTTP request head of an open stream.
    pub fn head(&self, stream: StreamId) -> Option<Arc<Head>> {
        self.heads().get(&stream).cloned()
    }

    /// The session id, in an HTTP session.
    pub fn name(&self) -> Option<&str> {
        self.name.get().map(|name| &**name)
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<CallKey, RunningTask>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no task of the event loop is running and the kernel has no object for this connection.
    /// Clears the request heads.
    pub fn is_idle(&mut self) -> bool {
        let heads = self.heads.get_mut();
        heads.unwrap_or_else(PoisonError::into_inner).clear();
        let tasks = self.tasks.get_mut();
        let peer = self.peer.0.get_mut();
        let kept = self.kept.0.get_mut();
        kept.unwrap_or_else(PoisonError::into_inner).is_none()
            && tasks.unwrap_or_else(PoisonError::into_inner).is_empty()
            && peer.unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Calls `act` with each running task of the kernel.
    pub fn each_of_kernel(
        &self,
        py: Python<'_>,
        mut act: impl FnMut(&Bound<'_, PyAny>) -> PyResult<()>,
    ) -> PyResult<()> {
        let tasks: Vec<_> = {
            let tasks = self.tasks();
            let those = tasks.values().filter(|it| it.is_kernels);
            those.map(|it| it.task.clone_ref(py)).collect()
        };
        tasks.iter().try_for_each(|task| act(task.bind(py)))
    }

    /// Notes a running task of the event loop.
    pub fn keep_task(&self, key: CallKey, running: RunningTask) {
        if self.tasks().insert(key, running).is_none() {
            self.hub.task_begins();
        }
    }

    /// Notes that a task has ended; returns whether it was the last one of all connections.
    pub fn forget_task(&self, key: &CallKey) -> bool {
        let gone = self.tasks().remove(key);
        gone.is_some() && self.hub.task_ends()
    }

    /// Cancels the task of a call, if there is one. Does nothing the second time.
    pub fn cancel_task(&self, py: Python<'_>, key: &CallKey) -> PyResult<()> {
        let running = self.tasks().remove(key);
        match running {
            Some(running) => {
                self.hub.task_ends();
                running.task.bind(py).call_method0("cancel").map(drop)
            }
            None => Ok(()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let kept = self.kept.0.get_mut();
        if let Some(kept) = kept.unwrap_or_else(PoisonError::into_inner).take() {
            self.hub.inbox.push(Event::Left(kept));
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}
