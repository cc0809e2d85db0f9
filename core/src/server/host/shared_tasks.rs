//! Requests about tasks that every process knows, answered from the store.
//!
//! A task that this process runs is answered for from its memory while the store is away.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::tasks::{HAS_ENDED, NO_TASK, PAGE, answers, cursor, find, write_page};
use crate::connection::{Call, Handle, Principal};
use crate::handler::Job;
use crate::json::reader;
use crate::mcp::{ErrorKind, Method, Revision, TaskForm};
use crate::server::registry::Registry;
use crate::server::tasks::{Asked, Asker, RENEWAL, SharedTasks, Task, TaskOwner};
use crate::store::{StoreError, Subscription};

/// The job that answers a request about tasks from the store; `None` if it is about a task that this process alone knows.
pub(super) fn job(registry: &Arc<Registry>, handle: &Handle, call: &Call) -> Option<Job> {
    let request = Request::new(registry, handle, call)?;
    Some(Box::pin(request.answer(call.clone())))
}

struct Request {
    registry: Arc<Registry>,
    handle: Handle,
    shared: Arc<SharedTasks>,
    principal: Option<Box<str>>,
    owner: TaskOwner,
    revision: Revision,
    params: String,
    /// The task that the request names; empty if it names none.
    id: String,
    /// The task of this process, if it is one.
    own: Option<Arc<Task>>,
}

impl Request {
    fn new(registry: &Arc<Registry>, handle: &Handle, call: &Call) -> Option<Self> {
        let (tasks, revision) = (registry.tasks(), call.reply.revision());
        let proven = call.reply.principal().map(Principal::as_str);
        let principal = proven.or_else(|| handle.principal());
        let asks = Asker { handle, principal };
        let params = call.message.as_ref().params().unwrap_or("{}");
        let own = find(tasks, asks, params, revision);
        let waits = call.method == Some(Method::TaskResult);
        if waits && own.as_ref().is_some_and(|own| !own.is_shared()) {
            return None;
        }
        let id = reader::find(params, "taskId").and_then(reader::as_str);
        Some(Self {
            shared: tasks.shared()?.clone(),
            owner: asks.owner(revision)?,
            principal: principal.map(Into::into),
            revision,
            id: id.unwrap_or_default().into_owned(),
            params: params.to_owned(),
            own,
            registry: registry.clone(),
            handle: handle.clone(),
        })
    }

    async fn answer(self, call: Call) {
        let answered = match call.method {
            Some(Method::ListTasks) => self.list(&call).await,
            Some(Method::TaskResult) => self.answer_at_end(&call).await,
            Some(Method::CancelTask) => self.cancel(&call).await,
            Some(Method::UpdateTask) => self.update(&call).await,
            _ => self.get(&call).await,
        };
        if answered.is_err() {
            let why = "tasks of other processes cannot be found now: try again later";
            let data = Some("{\"retryAfter\":1}");
            let mut replies = self.handle.replies();
            replies.error(&call.reply, ErrorKind::Overloaded, why, data);
        }
    }

    fn refuse(&self, call: &Call, why: &str) {
        let mut replies = self.handle.replies();
        replies.error(&call.reply, ErrorKind::InvalidParams, why, None);
    }

    async fn get(&self, call: &Call) -> Result<(), StoreError> {
        let found = self.shared.find(&self.id, &self.owner, self.revision);
        let detail = match (found.await, &self.own) {
            (Ok(Some(record)), _) => record.detail,
            // The store has lost it, or is away.
            (_, Some(own)) => own.detail(),
            // R-TSK-15, R-TSX-13
            (Ok(None), None) => {
                self.refuse(call, NO_TASK);
                return Ok(());
            }
            (Err(why), None) => return Err(why),
        };
        let mut replies = self.handle.replies();
        replies.result(&call.reply, |result| result.members(&detail));
        Ok(())
    }

    async fn cancel(&self, call: &Call) -> Result<(), StoreError> {
        let cancelled = self.shared.cancel(&self.id, &self.owner, self.revision);
        let (cancelled, own) = (cancelled.await, self.own.as_ref());
        let had_ended = own.map(|own| self.registry.cancel_task(own));
        let (detail, had_ended) = match (cancelled, own.zip(had_ended)) {
            (Ok(Some((record, had_ended))), _) => (record.detail, had_ended),
            (_, Some((own, had_ended))) => (own.summary(), had_ended),
            (Ok(None), None) => {
                self.refuse(call, NO_TASK);
                return Ok(());
            }
            (Err(why), None) => return Err(why),
        };
        let is_extension = self.revision.rules().tasks == Some(TaskForm::Extension);
        let mut replies = self.handle.replies();
        match (is_extension, had_ended) {
            // R-TSX-12
            (true, _) => replies.result(&call.reply, |_| ()),
            (false, false) => replies.result(&call.reply, |result| result.members(&detail)),
            // R-TSK-14
            (false, true) => {
                replies.error(&call.reply, ErrorKind::InvalidParams, HAS_ENDED, None);
            }
        }
        Ok(())
    }

    /// R-TSX-12
    async fn update(&self, call: &Call) -> Result<(), StoreError> {
        let found = self.shared.find(&self.id, &self.owner, self.revision);
        if found.await?.is_none() {
            self.refuse(call, NO_TASK);
            return Ok(());
        }
        let given = answers(&self.params).unwrap_or("{}").to_owned();
        self.shared.ask(&self.id, &Asked::Answers(given)).await?;
        self.handle.replies().result(&call.reply, |_| ());
        Ok(())
    }

    /// R-TSK-20. Tasks that this process alone knows come first.
    async fn list(&self, call: &Call) -> Result<(), StoreError> {
        let after = cursor(&call.message.as_ref()).unwrap_or_default();
        let page = self.shared.list(&self.owner, self.revision, after, PAGE);
        let page = page.await?;
        let asks = Asker {
            handle: &self.handle,
            principal: self.principal.as_deref(),
        };
        let mut listed = Vec::new();
        if after == 0 {
            let own = self.registry.tasks().list(asks, self.revision, 0);
            let own = own.iter().filter(|own| !own.is_shared());
            listed.extend(own.map(|own| own.summary()));
        }
        listed.extend(page.tasks.into_iter().map(|record| record.detail));
        let mut replies = self.handle.replies();
        replies.result(&call.reply, |result| write_page(result, &listed, page.next));
        Ok(())
    }

    /// Answers `tasks/result` once the task has ended (R-TSK-10).
    async fn answer_at_end(&self, call: &Call) -> Result<(), StoreError> {
        let mut changes = None;
        while !call.cancel.is_cancelled() && !self.handle.is_closed() {
            let found = self.shared.find(&self.id, &self.owner, self.revision);
            match (found.await, &self.own, &mut changes) {
                (Ok(Some(record)), ..) if record.has_ended => {
                    record.answer(&mut self.handle.replies(), &call.reply);
                    return Ok(());
                }
                (Ok(Some(_)), _, Some(changes)) => self.wait(call, changes).await,
                // What changes before this is seen by looking again.
                (Ok(Some(record)), ..) => changes = Some(self.shared.changes(&record).await?),
                // The store has lost it, or is away.
                (_, Some(own), _) => {
                    own.answer_at_end(&self.handle, call.clone());
                    return Ok(());
                }
                (Ok(None), None, _) => {
                    self.refuse(call, NO_TASK);
                    return Ok(());
                }
                (Err(why), None, _) => return Err(why),
            }
        }
        Ok(())
    }

    /// Waits for a change of a task, at most until the process that runs it must have shown that it lives.
    async fn wait(&self, call: &Call, changes: &mut Subscription) {
        let mut cancelled = pin!(call.cancel.cancelled());
        let mut due = pin!(self.handle.sleep(RENEWAL));
        poll_fn(|cx| {
            let is_cancelled = cancelled.as_mut().poll(cx).is_ready();
            let is_due = due.as_mut().poll(cx).is_ready();
            match is_cancelled || is_due || changes.poll_hinted(cx).is_ready() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}
