//! Requests of clients about tasks.

use std::sync::Arc;

use crate::connection::{
    Answer, Call, Disposition, Handle, IncomingRequest, Operation, ResultWriter,
};
use crate::json::reader;
use crate::mcp::{ErrorKind, Method, Revision, TaskForm, extension};
use crate::message::{Field, MessageRef};
use crate::server::lookup::{Refusal, declares};
use crate::server::registry::Registry;
use crate::server::tasks::{Asker, Task, Tasks};

/// Number of tasks on one page of a list.
pub(super) const PAGE: usize = 100;

/// Answers a task method.
pub fn answer(
    registry: &Registry,
    asks: Asker<'_>,
    method: Method,
    request: &IncomingRequest<'_>,
    answer: Answer<'_>,
) -> Disposition {
    let (tasks, revision) = (registry.tasks(), request.revision);
    let is_extension = revision.rules().tasks == Some(TaskForm::Extension);
    if is_extension && !declares(request, extension::TASKS) {
        return Refusal::extension(extension::TASKS).send(answer);
    }
    let params = request.message.params().unwrap_or("{}");
    if method == Method::UpdateTask && answers(params).is_none() {
        let why = "inputResponses is an object of objects";
        return answer.error(ErrorKind::InvalidParams, why, None);
    }
    let is_elsewhere = tasks.shared().is_some() && asks.owner(revision).is_some();
    if method == Method::ListTasks {
        return match cursor(&request.message) {
            None => answer.error(ErrorKind::InvalidParams, "unknown cursor", None),
            Some(_) if is_elsewhere => Disposition::Deferred(Operation::AwaitTask),
            Some(after) => list(tasks, asks, revision, after, answer),
        };
    }
    let task = find(tasks, asks, params, revision);
    let is_here = |task: &Arc<Task>| !task.is_shared() || method == Method::UpdateTask;
    if is_elsewhere && !task.as_ref().is_some_and(is_here) {
        return Disposition::Deferred(Operation::AwaitTask);
    }
    let Some(task) = task else {
        // R-TSK-15, R-TSX-13
        return answer.error(ErrorKind::InvalidParams, NO_TASK, None);
    };
    match method {
        Method::TaskResult => Disposition::Deferred(Operation::AwaitTask),
        Method::CancelTask => {
            let had_ended = registry.cancel_task(&task);
            match (is_extension, had_ended) {
                // R-TSX-12
                (true, _) => answer.result(|_| ()),
                (false, false) => answer.result(|result| result.members(&task.summary())),
                // R-TSK-14
                (false, true) => answer.error(ErrorKind::InvalidParams, HAS_ENDED, None),
            }
        }
        Method::UpdateTask => {
            registry.answer_task(&task, answers(params).unwrap_or("{}"));
            answer.result(|_| ())
        }
        _ => answer.result(|result| result.members(&task.detail())),
    }
}

pub(super) const NO_TASK: &str = "no such task";
pub(super) const HAS_ENDED: &str = "the task has ended";

/// The answers to questions of a task: a raw JSON object of objects.
pub(super) fn answers(params: &str) -> Option<&str> {
    let is_object = |text: &&str| text.starts_with('{');
    let given = reader::find(params, "inputResponses").filter(is_object)?;
    let are_objects = reader::members(given).all(|(_, one)| is_object(&one));
    are_objects.then_some(given)
}

/// The task that the params name.
pub(super) fn find(
    tasks: &Tasks,
    asks: Asker<'_>,
    params: &str,
    revision: Revision,
) -> Option<Arc<Task>> {
    let id = reader::find(params, "taskId").and_then(reader::as_str)?;
    tasks.find(&id, asks, revision)
}

/// Where a page of a list begins; `None` if the cursor is none of this server's.
pub(super) fn cursor(message: &MessageRef<'_>) -> Option<u64> {
    match message.raw(Field::Cursor) {
        None | Some("null") => Some(0),
        Some(raw) => reader::as_str(raw)?.parse().ok(),
    }
}

/// R-TSK-20
fn list(
    tasks: &Tasks,
    asks: Asker<'_>,
    revision: Revision,
    after: u64,
    answer: Answer<'_>,
) -> Disposition {
    let all = tasks.list(asks, revision, after);
    let page = &all[..all.len().min(PAGE)];
    let last = page.last().filter(|_| all.len() > PAGE);
    let page: Vec<_> = page.iter().map(|task| task.summary()).collect();
    answer.result(|result| write_page(result, &page, last.map(|last| last.number)))
}

/// Writes a page of a list: the members of each task, and where the next page begins.
pub(super) fn write_page(result: &mut ResultWriter<'_>, page: &[String], next: Option<u64>) {
    let tasks: Vec<_> = page.iter().map(|task| format!("{{{task}}}")).collect();
    result.raw("tasks", &format!("[{}]", tasks.join(",")));
    if let Some(next) = next {
        result.string("nextCursor", &next.to_string());
    }
}

/// Answers `tasks/result` once the task ends (R-TSK-10).
pub fn answer_at_end(registry: &Registry, handle: &Handle, call: Call) {
    let asks = Asker::of(handle, &call.reply);
    let params = call.message.as_ref().params().unwrap_or("{}");
    match find(registry.tasks(), asks, params, call.reply.revision()) {
        Some(task) => task.answer_at_end(handle, call),
        None => {
            let mut replies = handle.replies();
            replies.error(&call.reply, ErrorKind::InvalidParams, NO_TASK, None);
        }
    }
}
