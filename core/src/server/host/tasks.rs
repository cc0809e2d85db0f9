//! Requests of clients about tasks.

use std::sync::Arc;

use crate::connection::{Answer, Call, Disposition, Handle, IncomingRequest, Operation, Principal};
use crate::json::reader;
use crate::mcp::{ErrorKind, Method, Revision, TaskForm, extension};
use crate::message::Field;
use crate::server::lookup::{Refusal, declares};
use crate::server::registry::Registry;
use crate::server::tasks::{Asker, Task, Tasks};

/// Number of tasks on one page of a list.
const PAGE: usize = 100;

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
    if method == Method::ListTasks {
        return list(tasks, asks, request, answer);
    }
    let params = request.message.params().unwrap_or("{}");
    let Some(task) = find(tasks, asks, params, revision) else {
        // R-TSK-15, R-TSX-13
        return answer.error(ErrorKind::InvalidParams, NO_TASK, None);
    };
    match method {
        Method::TaskResult => Disposition::Deferred(Operation::AwaitTask),
        Method::CancelTask => {
            let had_ended = !tasks.end(&task, None, false, registry.budget());
            task.cancel.cancel(Some("the task was cancelled"));
            if !had_ended {
                registry.tell_task(&task);
            }
            match (is_extension, had_ended) {
                // R-TSX-12
                (true, _) => answer.result(|_| ()),
                (false, false) => answer.result(|result| result.members(&task.summary())),
                // R-TSK-14
                (false, true) => answer.error(ErrorKind::InvalidParams, "the task has ended", None),
            }
        }
        Method::UpdateTask => {
            let is_object = |text: &&str| text.starts_with('{');
            let given = reader::find(params, "inputResponses").filter(is_object);
            let given = given.filter(|all| reader::members(all).all(|(_, one)| is_object(&one)));
            let Some(given) = given else {
                let why = "inputResponses is an object of objects";
                return answer.error(ErrorKind::InvalidParams, why, None);
            };
            if task.take_answers(given) {
                registry.tell_task(&task);
            }
            answer.result(|_| ())
        }
        _ => answer.result(|result| result.members(&task.detail())),
    }
}

const NO_TASK: &str = "no such task";

/// The task that the params name.
fn find(tasks: &Tasks, asks: Asker<'_>, params: &str, revision: Revision) -> Option<Arc<Task>> {
    let id = reader::find(params, "taskId").and_then(reader::as_str)?;
    tasks.find(&id, asks, revision)
}

/// R-TSK-20
fn list(
    tasks: &Tasks,
    asks: Asker<'_>,
    request: &IncomingRequest<'_>,
    answer: Answer<'_>,
) -> Disposition {
    let after = match request.message.raw(Field::Cursor) {
        None | Some("null") => Some(0),
        Some(raw) => reader::as_str(raw).and_then(|text| text.parse().ok()),
    };
    let Some(after) = after else {
        return answer.error(ErrorKind::InvalidParams, "unknown cursor", None);
    };
    let all = tasks.list(asks, request.revision, after);
    let page = &all[..all.len().min(PAGE)];
    answer.result(|result| {
        let tasks: Vec<_> = page
            .iter()
            .map(|task| format!("{{{}}}", task.summary()))
            .collect();
        result.raw("tasks", &format!("[{}]", tasks.join(",")));
        if let Some(last) = page.last().filter(|_| all.len() > PAGE) {
            result.string("nextCursor", &last.number.to_string());
        }
    })
}

/// Answers `tasks/result` once the task ends (R-TSK-10).
pub fn answer_at_end(registry: &Registry, handle: &Handle, call: Call) {
    let proven = call.reply.principal().map(Principal::as_str);
    let asks = Asker {
        handle,
        principal: proven.or_else(|| handle.principal()),
    };
    let params = call.message.as_ref().params().unwrap_or("{}");
    match find(registry.tasks(), asks, params, call.reply.revision()) {
        Some(task) => task.answer_at_end(handle, call),
        None => {
            let mut replies = handle.replies();
            replies.error(&call.reply, ErrorKind::InvalidParams, NO_TASK, None);
        }
    }
}
