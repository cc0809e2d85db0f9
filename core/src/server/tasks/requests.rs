//! Requests of clients about tasks.

use std::time::Instant;

use super::{Asker, Task, Tasks, belongs, keeps};
use crate::connection::{Answer, Disposition, Handle, IncomingRequest, Operation, Principal};
use crate::json::reader;
use crate::mcp::{ErrorKind, Method, TaskForm, TaskSupport, extension};
use crate::message::Field;
use crate::server::registry::Registry;

/// Number of tasks on one page of a list.
const PAGE: usize = 100;

/// Whether a tool's task support permits a call.
pub(in crate::server) enum Rule {
    Goes,
    /// The call must ask for a task, or must not (R-TSK-04).
    Mismatch(&'static str),
    /// The tool requires a task, and the client cannot follow tasks (R-TSX-04).
    Missing,
}

impl Rule {
    pub fn of(support: TaskSupport, request: &IncomingRequest<'_>) -> Self {
        let asks = || {
            let params = request.message.params().unwrap_or("{}");
            reader::find(params, "task").is_some()
        };
        match (request.revision.rules().tasks, support) {
            (Some(TaskForm::Core), TaskSupport::Required) if !asks() => {
                Self::Mismatch("this tool can only be called as a task")
            }
            (Some(TaskForm::Core), TaskSupport::Forbidden) if asks() => {
                Self::Mismatch("this tool cannot be called as a task")
            }
            (Some(TaskForm::Extension), TaskSupport::Required)
                if !declares(request, extension::TASKS) =>
            {
                Self::Missing
            }
            _ => Self::Goes,
        }
    }
}

/// Returns whether the client declared this extension on the request (R-TSX-20).
pub(in crate::server) fn declares(request: &IncomingRequest<'_>, id: &str) -> bool {
    let declared = request
        .message
        .raw(Field::ClientCapabilities)
        .unwrap_or("{}");
    extension::declared(declared, id).is_some()
}

/// Refuses a request that needs this extension (R-ERR-16, R-TSX-05).
pub(in crate::server) fn missing_extension(answer: Answer<'_>, id: &str) -> Disposition {
    let data = format!("{{\"requiredCapabilities\":{{\"extensions\":{{\"{id}\":{{}}}}}}}}");
    let why = format!("this needs the extension {id}");
    answer.error(ErrorKind::MissingClientCapability, &why, Some(&data))
}

impl Tasks {
    /// Answers a task method.
    pub fn answer(
        &self,
        (registry, asks): (&Registry, Asker<'_>),
        method: Method,
        request: &IncomingRequest<'_>,
        answer: Answer<'_>,
    ) -> Disposition {
        let revision = request.revision;
        let is_extension = revision.rules().tasks == Some(TaskForm::Extension);
        if is_extension && !declares(request, extension::TASKS) {
            return missing_extension(answer, extension::TASKS);
        }
        if method == Method::ListTasks {
            return self.list(asks, request, answer);
        }
        let params = request.message.params().unwrap_or("{}");
        let id = reader::find(params, "taskId").and_then(reader::as_str);
        let task = id.and_then(|id| self.find(&id, asks, revision));
        let Some(task) = task else {
            // R-TSK-15, R-TSX-13
            return answer.error(ErrorKind::InvalidParams, "no such task", None);
        };
        match method {
            Method::TaskResult => Disposition::Deferred(Operation::AwaitTask),
            Method::CancelTask => {
                let had_ended = !self.end(&task, None, false, &registry.budget);
                task.cancel.cancel(Some("the task was cancelled"));
                if !had_ended {
                    registry.tell_task(&task);
                }
                match (is_extension, had_ended) {
                    // R-TSX-12
                    (true, _) => answer.result(|_| ()),
                    (false, false) => answer.result(|result| result.members(&task.summary())),
                    // R-TSK-14
                    (false, true) => {
                        answer.error(ErrorKind::InvalidParams, "the task has ended", None)
                    }
                }
            }
            Method::UpdateTask => {
                let given = reader::find(params, "inputResponses");
                let is_object = |text: &&str| text.starts_with('{');
                let is_fit =
                    |given: &&str| reader::members(given).all(|(_, value)| is_object(&value));
                let Some(given) = given.filter(is_object).filter(is_fit) else {
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

    /// R-TSK-20
    fn list(
        &self,
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
        let now = Instant::now();
        let kept = self.kept();
        let mine = |task: &Task| belongs(task, asks, request.revision) && keeps(task, now);
        let mut rest = kept.tasks.range(after + 1..).filter(|(_, task)| mine(task));
        let page: Vec<_> = rest.by_ref().take(PAGE).collect();
        let next = rest
            .next()
            .and(page.last())
            .map(|(number, _)| number.to_string());
        answer.result(|result| {
            let tasks: Vec<_> = page
                .iter()
                .map(|(_, task)| format!("{{{}}}", task.summary()))
                .collect();
            result.raw("tasks", &format!("[{}]", tasks.join(",")));
            if let Some(next) = next {
                result.string("nextCursor", &next);
            }
        })
    }

    /// Answers `tasks/result` once the task ends (R-TSK-10).
    pub fn answer_at_end(&self, handle: &Handle, call: crate::connection::Call) {
        let params = call.message.as_ref().params().unwrap_or("{}");
        let id = reader::find(params, "taskId").and_then(reader::as_str);
        let proven = call.reply.principal().map(Principal::as_str);
        let asks = Asker {
            handle,
            principal: proven.or_else(|| handle.principal()),
        };
        let task = id.and_then(|id| self.find(&id, asks, call.reply.revision()));
        match task {
            Some(task) => task.answer_at_end(handle, call),
            None => {
                let mut replies = handle.replies();
                replies.error(&call.reply, ErrorKind::InvalidParams, "no such task", None);
            }
        }
    }
}
