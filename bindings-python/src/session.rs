//! One connection of a server: light, for over HTTP each request may be one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mcpbolt::connection::{Call, CallKey, Handle, StreamId};
use mcpbolt::handler::Head;
use mcpbolt::mcp::ErrorKind;
use mcpbolt::server::{self, TaskCall};
use pyo3::prelude::*;

use crate::hub::Hub;
use crate::running::Running;
use crate::straight::Straight;
use crate::target::Target;

/// A call and the function for it.
#[derive(Debug)]
pub struct Work {
    pub session: Arc<Session>,
    pub call: Call,
    pub target: Arc<Target>,
    /// That of a call which may go on as a task of the protocol.
    pub context: Option<Box<server::Context>>,
    /// Whether its arguments need no validator, as was seen when they were read.
    pub is_straight: AtomicBool,
}

impl Work {
    /// What carries it out without a validator, if nothing needs one.
    pub fn straight(&self) -> Option<&Straight> {
        let is_straight = self.is_straight.load(Ordering::Relaxed);
        self.target.straight.as_ref().filter(|_| is_straight)
    }

    /// The function, once the arguments were read.
    pub fn function(&self) -> &Py<PyAny> {
        match self.straight() {
            Some(straight) => &straight.function,
            None => &self.target.function,
        }
    }

    /// The task of the protocol that the call has become, if it has.
    pub fn task(&self) -> Option<&TaskCall> {
        let task = self.context.as_ref()?.task()?;
        task.is_task().then_some(task)
    }
}

/// One connection. Engine threads hold it too: nothing here needs the interpreter but what says
/// so.
pub struct Session {
    pub hub: Arc<Hub>,
    pub handle: Handle,
    /// The kernel's side of it.
    pub peer: Kept,
    /// The kernel has answered the handshake, and well.
    pub is_open: AtomicBool,
    /// What brings the messages of each stream, where somebody wants to know.
    heads: Mutex<HashMap<StreamId, Arc<Head>>>,
    /// Its name, where it is a session of HTTP.
    name: OnceLock<Box<str>>,
    /// Tasks of the event loop under way.
    tasks: Mutex<HashMap<CallKey, Running>>,
}

/// An object of Python's that a connection keeps until it ends.
#[derive(Default)]
pub struct Kept(Mutex<Option<Py<PyAny>>>);

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Option<Py<PyAny>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept, or what `make` makes, which is kept then. On one thread alone.
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

    /// What was kept.
    pub fn take<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.lock().take().map(|kept| kept.into_bound(py))
    }
}

impl Session {
    /// The connection of `handle`.
    pub fn new(hub: Arc<Hub>, handle: Handle) -> Arc<Self> {
        Arc::new(Self {
            hub,
            handle,
            peer: Kept::default(),
            is_open: AtomicBool::new(false),
            heads: Mutex::default(),
            name: OnceLock::new(),
            tasks: Mutex::default(),
        })
    }

    /// The engine's context of a call. When what the client brings from an earlier round is wrong,
    /// there is none: the call is answered here.
    pub fn context(&self, call: &Call) -> Option<server::Context> {
        let seal = self.hub.catalog.seal.as_ref();
        match server::Context::new(self.handle.clone(), call, seal) {
            Ok(context) => Some(context),
            Err(why) => {
                let mut replies = self.handle.replies();
                replies.error(&call.reply, ErrorKind::InvalidParams, why, None);
                call.cancel.cancel(None);
                None
            }
        }
    }

    fn heads(&self) -> MutexGuard<'_, HashMap<StreamId, Arc<Head>>> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what brings the messages of a stream.
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

    /// What brought a request that is not answered yet.
    pub fn head(&self, stream: StreamId) -> Option<Arc<Head>> {
        self.heads().get(&stream).cloned()
    }

    /// Its name, where it is a session of HTTP.
    pub fn name(&self) -> Option<&str> {
        self.name.get().map(|name| &**name)
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<CallKey, Running>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no task of the event loop is under way, and Python keeps nothing of it.
    pub fn is_idle(&mut self) -> bool {
        let heads = self.heads.get_mut();
        heads.unwrap_or_else(PoisonError::into_inner).clear();
        let tasks = self.tasks.get_mut();
        let peer = self.peer.0.get_mut();
        tasks.unwrap_or_else(PoisonError::into_inner).is_empty()
            && peer.unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Does something with each request under way that the kernel answers.
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

    /// A task of the event loop is under way.
    pub fn keep_task(&self, key: CallKey, running: Running) {
        if self.tasks().insert(key, running).is_none() {
            self.hub.task_begins();
        }
    }

    /// It has ended; whether it was the last one of all connections.
    pub fn forget_task(&self, key: &CallKey) -> bool {
        let gone = self.tasks().remove(key);
        gone.is_some() && self.hub.task_ends()
    }

    /// Cancels the task of a call, if there is one; once.
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

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}
