//! Requests of clients about tasks.

use std::sync::Arc;

use crate::connection::{Answer, Call, Disposition, Handle, IncomingRequest, Operation, Principal};
use crate::handler::Job;
use crate::json::reader;
use crate::mcp::{ErrorKind, Method, Revision, TaskForm, extension};
use crate::message::Field;
use crate::server::lookup::{Refusal, declares};
use crate::server::registry::Registry;
use crate::server::tasks::{Asked, Asker, Task, Tasks};

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
    if method == Method::UpdateTask && answers(params).is_none() {
        let why = "inputResponses is an object of objects";
        return answer.error(ErrorKind::InvalidParams, why, None);
    }
    let task = find(tasks, asks, params, revision);
    if is_extension && tasks.shared().is_some() && (method == Method::GetTask || task.is_none()) {
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
                (false, true) => answer.error(ErrorKind::InvalidParams, "the task has ended", None),
            }
        }
        Method::UpdateTask => {
            registry.answer_task(&task, answers(params).unwrap_or("{}"));
            answer.result(|_| ())
        }
        _ => answer.result(|result| result.members(&task.detail())),
    }
}

const NO_TASK: &str = "no such task";

/// The answers to questions of a task: a raw JSON object of objects.
fn answers(params: &str) -> Option<&str> {
    let is_object = |text: &&str| text.starts_with('{');
    let given = reader::find(params, "inputResponses").filter(is_object)?;
    let are_objects = reader::members(given).all(|(_, one)| is_object(&one));
    are_objects.then_some(given)
}

/// Answers a request about a task that another process may run, or have ended.
pub fn answer_elsewhere(registry: &Arc<Registry>, handle: &Handle, call: Call) -> Option<Job> {
    let (registry, handle) = (registry.clone(), handle.clone());
    let shared = registry.tasks().shared()?.clone();
    Some(Box::pin(async move {
        let (params, revision) = (call.message.as_ref().params(), call.reply.revision());
        let params = params.unwrap_or("{}").to_owned();
        let principal = call.reply.principal().map(Principal::as_str);
        let principal = principal.or_else(|| handle.principal()).map(str::to_owned);
        let asks = Asker {
            handle: &handle,
            principal: principal.as_deref(),
        };
        let own = find(registry.tasks(), asks, &params, revision);
        let id = reader::find(&params, "taskId").and_then(reader::as_str);
        let id = id.unwrap_or_default().into_owned();
        let found = match shared.find(&id, revision).await {
            Ok(Some(record)) if record.belongs_to(principal.as_deref(), revision) => {
                Ok(Some(record.detail))
            }
            // The store has not taken it, or lost it.
            Ok(_) => Ok(own.map(|task| task.detail())),
            Err(why) => own.map(|task| Some(task.detail())).ok_or(why),
        };
        let asked = match (call.method, answers(&params)) {
            (Some(Method::CancelTask), _) => Some(Asked::Cancel),
            (Some(Method::UpdateTask), Some(given)) => Some(Asked::Answers(given.to_owned())),
            _ => None,
        };
        let done = match (&found, &asked) {
            (Ok(Some(_)), Some(asked)) => shared.ask(&id, asked).await,
            _ => Ok(()),
        };
        let mut replies = handle.replies();
        match (found.and_then(|found| done.map(|()| found)), asked) {
            (Ok(None), _) => replies.error(&call.reply, ErrorKind::InvalidParams, NO_TASK, None),
            // R-TSX-12
            (Ok(Some(_)), Some(_)) => replies.result(&call.reply, |_| ()),
            (Ok(Some(detail)), None) => {
                replies.result(&call.reply, |result| result.members(&detail));
            }
            (Err(_), _) => {
                let why = "tasks of other processes cannot be found now: try again later";
                let data = Some("{\"retryAfter\":1}");
                replies.error(&call.reply, ErrorKind::Overloaded, why, data);
            }
        }
    }))
}

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
