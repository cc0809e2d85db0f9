//! A call that may continue as a task.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::task::{Asker, Outcome, Task};
use crate::connection::{Call, Handle, ReplyTo, ResultWriter, answer_object};
use crate::correlate::CancelToken;
use crate::handler::driven::drive;
use crate::json::{number, reader};
use crate::mcp::{ErrorKind, Method, TaskForm, extension};
use crate::message::{Field, Message};
use crate::server::registry::Registry;

/// A call of a tool that opted in to tasks. For executors; handlers use
/// [`Context::begin_task`](crate::server::Context::begin_task).
#[derive(Debug)]
pub struct TaskCall {
    registry: Arc<Registry>,
    handle: Handle,
    reply: ReplyTo,
    cancel: CancelToken,
    form: TaskForm,
    /// The lifetime that the client wants, if it asked for a task and named one.
    asked: Option<Option<Duration>>,
    /// The request, if another process may run its call once more.
    again: Option<Message>,
    task: OnceLock<Arc<Task>>,
}

/// The end of a call.
pub(in crate::server) enum Ended<W> {
    /// A result, and whether it reports an error.
    Result(W, bool),
    /// A protocol error with its kind, its text and its `data` as raw JSON.
    Error(ErrorKind, String, Option<Box<str>>),
    Cancelled,
}

impl TaskCall {
    /// Creates the task side of a call. `None` when the call of tool `number` cannot become a task:
    /// the tool did not opt in, or the client cannot follow tasks.
    pub fn new(
        registry: &Arc<Registry>,
        number: u32,
        handle: &Handle,
        call: &Call,
    ) -> Option<Arc<Self>> {
        if !registry.supports_tasks(number) {
            return None;
        }
        let view = call.message.as_ref();
        let form = call.reply.revision().rules().tasks?;
        let resumed = registry.tasks().resuming().arrived(call.reply.key());
        let asked = match form {
            _ if resumed.is_some() => Some(None),
            TaskForm::Core => {
                let task =
                    reader::find(view.params()?, "task").filter(|task| task.starts_with('{'))?;
                let ttl = reader::find(task, "ttl").and_then(number::as_u64);
                Some(ttl.map(Duration::from_millis))
            }
            TaskForm::Extension => {
                let capabilities = view.raw(Field::ClientCapabilities)?;
                // R-TSX-02
                extension::declared(capabilities, extension::TASKS)?;
                None
            }
        };
        Some(Arc::new(Self {
            registry: registry.clone(),
            handle: handle.clone(),
            reply: call.reply.clone(),
            cancel: call.cancel.clone(),
            form,
            asked,
            again: Self::again(registry, number, call),
            task: resumed.map(OnceLock::from).unwrap_or_default(),
        }))
    }

    /// The request, if another process may run its call once more when this one has ended.
    fn again(registry: &Registry, number: u32, call: &Call) -> Option<Message> {
        let may = registry.tasks().shared().is_some() && registry.is_idempotent(number);
        let params = call.message.as_ref().params().filter(|_| may)?;
        let has_rounds = |name| reader::find(params, name).is_some();
        let is_whole = !has_rounds("requestState") && !has_rounds("inputResponses");
        is_whole.then(|| call.message.clone())
    }

    fn owner(&self) -> Asker<'_> {
        Asker::of(&self.handle, &self.reply)
    }

    /// Returns whether the client asked for a task, so that the call must become one at once.
    pub fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Returns whether the call has become a task.
    pub fn is_task(&self) -> bool {
        self.task.get().is_some()
    }

    /// Makes the call a task: the client is answered, and the handler continues. Returns `false`
    /// when the task limits are reached; the call then stays a call.
    pub fn begin(&self) -> bool {
        if self.is_task() {
            return true;
        }
        let tasks = self.registry.tasks();
        let begun = tasks.begin(
            self.reply.revision(),
            self.owner(),
            self.asked.flatten(),
            self.cancel.clone(),
        );
        let Some(task) = begun else {
            return false;
        };
        let summary = task.summary();
        let _ = self.task.set(task.clone());
        let (handle, reply, form) = (self.handle.clone(), self.reply.clone(), self.form);
        // R-TSK-06, R-TSX-06, R-TSX-08
        let announce = move || {
            handle.replies().result(&reply, |result| match form {
                TaskForm::Core => result.raw("task", &format!("{{{summary}}}")),
                TaskForm::Extension => {
                    result.result_type("\"task\"");
                    result.members(&summary);
                }
            });
        };
        let owner = self.owner().owner(self.reply.revision());
        match (tasks.shared(), self.handle.timers(), owner) {
            (Some(shared), Some(timers), Some(owner)) => {
                let (shared, registry) = (shared.clone(), self.registry.clone());
                let begun = (task, owner, self.again.clone());
                drive(Box::pin(shared.keep(registry, begun, timers, announce)));
            }
            _ => announce(),
        }
        true
    }

    /// Sets the task's status message, its progress in one sentence, for clients that poll or
    /// listen. Does nothing if the call is no task.
    pub fn say(&self, message: &str) {
        if self.task.get().is_some_and(|task| task.say(message)) {
            self.tell();
        }
    }

    /// Ends the task with a result. `is_error` tells whether the result reports an error. Returns
    /// `false` if the call is no task.
    pub fn end_with(&self, is_error: bool, write: impl FnOnce(&mut ResultWriter<'_>)) -> bool {
        self.end(Ended::Result(write, is_error))
    }

    /// Ends the task with a protocol error; `data` is raw JSON. Returns `false` if the call is no task.
    pub fn fail(&self, kind: ErrorKind, text: &str, data: Option<&str>) -> bool {
        self.end(Ended::<fn(&mut ResultWriter<'_>)>::Error(
            kind,
            text.to_owned(),
            data.map(Into::into),
        ))
    }

    /// Ends the task. Returns `false` if the call is no task; the call must then be answered.
    pub(in crate::server) fn end(&self, ended: Ended<impl FnOnce(&mut ResultWriter<'_>)>) -> bool {
        let Some(task) = self.task.get() else {
            return false;
        };
        let (outcome, is_error) = match ended {
            Ended::Result(write, is_error) => {
                let json = answer_object(self.reply.revision(), write);
                (Some(Outcome::Result(json.into())), is_error)
            }
            Ended::Error(kind, text, data) => (Some(Outcome::Error(kind, text.into(), data)), true),
            Ended::Cancelled => (None, false),
        };
        let budget = &self.handle.config().budget;
        let tasks = self.registry.tasks();
        if tasks.end(task, outcome, is_error, budget) {
            self.tell();
        }
        true
    }

    /// Notifies the task's listeners of its state.
    fn tell(&self) {
        if let Some(task) = self.task.get() {
            self.registry.tell_task(task);
        }
    }

    /// Asks the client through the task, in the revisions with the tasks extension, and returns the
    /// raw answer. `None` when the client must be asked otherwise.
    pub(in crate::server) async fn ask(
        &self,
        method: Method,
        params: Option<String>,
    ) -> Option<Box<str>> {
        let task = self
            .task
            .get()
            .filter(|_| self.form == TaskForm::Extension)?;
        Some(task.ask(method, params, || self.tell()).await)
    }

    /// Shows the task as waiting for input until the result is dropped; `None` when the call is no
    /// task.
    pub(in crate::server) fn waits(self: &Arc<Self>) -> Option<Waits> {
        let task = self.task.get()?;
        if task.set_waiting(true) {
            self.tell();
        }
        Some(Waits(self.clone()))
    }

    /// The `_meta` of messages that belong to the task.
    pub(in crate::server) fn related(&self) -> Option<String> {
        let task = self.task.get().filter(|_| self.form == TaskForm::Core)?;
        Some(task.related())
    }
}

/// Shows the task as waiting for the client's input until dropped (R-TSK-13).
pub(in crate::server) struct Waits(Arc<TaskCall>);

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(task) = self.0.task.get()
            && task.set_waiting(false)
        {
            self.0.tell();
        }
    }
}
