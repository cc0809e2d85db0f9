//! Requests about tasks that every process knows, answered from the store.
//!
//! A task that this process runs is answered for from its memory while the store is away.

mod again;

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use self::again::Again;
use super::tasks::{HAS_ENDED, NO_TASK, PAGE, answers, cursor, write_page};
use crate::connection::{Call, Handle, Sleep};
use crate::correlate::CancelToken;
use crate::handler::Job;
use crate::json::reader;
use crate::mcp::{ErrorKind, Method, Revision, TaskForm};
use crate::server::registry::Registry;
use crate::server::subscriptions::Subscriber;
use crate::server::tasks::{
    Asked, Asker, Found, RENEWAL, SharedTasks, Task, TaskOwner, TaskRecord,
};
use crate::store::{BlobVersion, StoreError, StoreFault, Subscription};

/// The job that answers a request about tasks from the store; `None` if it is about a task that this process alone knows.
pub(super) fn job(registry: &Arc<Registry>, handle: &Handle, call: &Call) -> Option<Job> {
    let request = Request::new(registry, handle, call)?;
    Some(Arc::new(request).answer(call.clone()))
}

/// Whether a request about a task was answered.
enum Answered {
    Done,
    /// Nobody runs the task any more, and it may be run here.
    Not(TaskRecord, BlobVersion),
}

type Answering = Result<Answered, StoreError>;

pub(super) struct Request {
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
        let params = call.message.as_ref().params().unwrap_or("{}");
        let id = reader::find(params, "taskId").and_then(reader::as_str);
        let request = Self::about(registry, handle, call, &id.unwrap_or_default())?;
        let waits = call.method == Some(Method::TaskResult);
        let is_here = waits && request.own.as_ref().is_some_and(|own| !own.is_shared());
        (!is_here).then_some(request)
    }

    /// A request about that task; `None` if tasks are not shared with who asks.
    pub fn about(registry: &Arc<Registry>, handle: &Handle, call: &Call, id: &str) -> Option<Self> {
        let (tasks, revision) = (registry.tasks(), call.reply.revision());
        let asks = Asker::of(handle, &call.reply);
        Some(Self {
            shared: tasks.shared()?.clone(),
            owner: asks.owner(revision)?,
            principal: asks.principal.map(Into::into),
            revision,
            id: id.to_owned(),
            params: call.message.as_ref().params().unwrap_or("{}").to_owned(),
            own: tasks.find(id, asks, revision),
            registry: registry.clone(),
            handle: handle.clone(),
        })
    }

    fn answer(self: Arc<Self>, call: Call) -> Job {
        Box::pin(async move {
            if let Err(why) = self.try_to_answer(&call).await {
                self.fail(&call, &why);
            }
        })
    }

    async fn try_to_answer(self: &Arc<Self>, call: &Call) -> Result<(), StoreError> {
        while !call.cancel.is_cancelled() && !self.handle.is_closed() {
            let answered = match call.method {
                Some(Method::ListTasks) => self.list(call).await?,
                Some(Method::TaskResult) => self.answer_at_end(call).await?,
                Some(Method::CancelTask) => self.cancel(call).await?,
                Some(Method::UpdateTask) => self.update(call).await?,
                _ => self.get(call).await?,
            };
            let Answered::Not(record, seen) = answered else {
                break;
            };
            let detail = record.detail.clone();
            // From what the record has become.
            let then = self.clone().answer(call.clone());
            match self.run_again(call, record, seen, then).await? {
                Again::Runs => break,
                Again::Changed => {}
                // Another process may have.
                Again::NoRoom if call.method == Some(Method::TaskResult) => {
                    wait(None, self.handle.sleep(RENEWAL), &call.cancel).await;
                }
                Again::NoRoom => {
                    self.tell(call, &detail);
                    break;
                }
            }
        }
        Ok(())
    }

    fn fail(&self, call: &Call, why: &StoreError) {
        let mut replies = self.handle.replies();
        match why.fault() {
            StoreFault::Misuse | StoreFault::Unreadable => {
                let text = format!("the task cannot be read from the store: {why}");
                replies.error(&call.reply, ErrorKind::Internal, &text, None);
            }
            _ => {
                let text = "tasks of other processes cannot be found now: try again later";
                let data = Some("{\"retryAfter\":1}");
                replies.error(&call.reply, ErrorKind::Overloaded, text, data);
            }
        }
    }

    fn asks(&self) -> Asker<'_> {
        Asker {
            handle: &self.handle,
            principal: self.principal.as_deref(),
        }
    }

    fn refuse(&self, call: &Call, why: &str) {
        let mut replies = self.handle.replies();
        replies.error(&call.reply, ErrorKind::InvalidParams, why, None);
    }

    /// What the store knows of the task.
    pub async fn find(&self) -> Result<Option<Found>, StoreError> {
        let is_here = self.registry.tasks().runs_shared(&self.id);
        let owner = (&self.owner, self.revision);
        self.shared.find(&self.id, owner, is_here).await
    }

    async fn get(&self, call: &Call) -> Answering {
        let detail = match (self.find().await, &self.own) {
            (Ok(Some(Found::Known(record))), _) => record.detail,
            (Ok(Some(Found::Abandoned(record, seen))), None) => {
                return Ok(Answered::Not(record, seen));
            }
            // It runs here after all, or the store has lost it, or is away.
            (_, Some(own)) => own.detail(),
            // R-TSK-15, R-TSX-13
            (Ok(None), None) => {
                self.refuse(call, NO_TASK);
                return Ok(Answered::Done);
            }
            (Err(why), None) => return Err(why),
        };
        self.tell(call, &detail);
        Ok(Answered::Done)
    }

    /// Answers with the state of a task.
    fn tell(&self, call: &Call, detail: &str) {
        let mut replies = self.handle.replies();
        replies.result(&call.reply, |result| result.members(detail));
    }

    async fn cancel(&self, call: &Call) -> Answering {
        let cancelled = self.shared.cancel(&self.id, &self.owner, self.revision);
        let (cancelled, own) = (cancelled.await, self.own.as_ref());
        let had_ended = own.map(|own| self.registry.cancel_task(own));
        let (detail, had_ended) = match (cancelled, own.zip(had_ended)) {
            (Ok(Some((record, had_ended))), _) => (record.detail, had_ended),
            (_, Some((own, had_ended))) => (own.summary(), had_ended),
            (Ok(None), None) => {
                self.refuse(call, NO_TASK);
                return Ok(Answered::Done);
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
        Ok(Answered::Done)
    }

    /// R-TSX-12
    async fn update(&self, call: &Call) -> Answering {
        if self.find().await?.is_none() {
            self.refuse(call, NO_TASK);
            return Ok(Answered::Done);
        }
        let given = answers(&self.params).unwrap_or("{}").to_owned();
        self.shared.ask(&self.id, &Asked::Answers(given)).await?;
        self.handle.replies().result(&call.reply, |_| ());
        Ok(Answered::Done)
    }

    /// R-TSK-20. Tasks that this process alone knows come first.
    async fn list(&self, call: &Call) -> Answering {
        let after = cursor(&call.message.as_ref()).unwrap_or_default();
        let tasks = self.registry.tasks();
        let owner = (&self.owner, self.revision);
        let page = self
            .shared
            .list(owner, (after, PAGE), |id| tasks.runs_shared(id));
        let page = page.await?;
        let mut listed = Vec::new();
        if after == 0 {
            let own = self.registry.tasks().list(self.asks(), self.revision, 0);
            let own = own.iter().filter(|own| !own.is_shared());
            listed.extend(own.map(|own| own.summary()));
        }
        listed.extend(page.tasks);
        let mut replies = self.handle.replies();
        replies.result(&call.reply, |result| write_page(result, &listed, page.next));
        Ok(Answered::Done)
    }

    /// Answers `tasks/result` once the task has ended (R-TSK-10).
    async fn answer_at_end(&self, call: &Call) -> Answering {
        let mut changes = None;
        while !call.cancel.is_cancelled() && !self.handle.is_closed() {
            match (self.find().await, &self.own, &mut changes) {
                (Ok(Some(Found::Known(record))), ..) if record.has_ended => {
                    record.answer(&mut self.handle.replies(), &call.reply);
                    return Ok(Answered::Done);
                }
                (Ok(Some(Found::Abandoned(record, seen))), None, _) => {
                    return Ok(Answered::Not(record, seen));
                }
                (Ok(Some(_)), _, Some(changes)) => {
                    // At most until the process that runs it must have shown that it lives.
                    let due = self.handle.sleep(RENEWAL);
                    wait(Some(changes), due, &call.cancel).await;
                }
                // What changes before this is seen by looking again.
                (Ok(Some(Found::Known(record))), ..) => {
                    changes = Some(self.shared.changes(&record).await?)
                }
                // It runs here after all, or the store has lost it, or is away.
                (_, Some(own), _) => {
                    own.answer_at_end(&self.handle, call.clone());
                    return Ok(Answered::Done);
                }
                (Ok(None), None, _) => {
                    self.refuse(call, NO_TASK);
                    return Ok(Answered::Done);
                }
                (Err(why), None, _) => return Err(why),
            }
        }
        Ok(Answered::Done)
    }

    /// Tells a stream of changes of the task, which another process runs, until it has ended, is run here, or the stream is
    /// over. `told` is the state that is known.
    pub async fn watch(self, subscriber: Arc<Subscriber>, call: Call, told: TaskRecord) {
        let mut changes = self.shared.changes(&told).await.ok();
        let (key, mut told) = (call.reply.key(), told.detail);
        while !call.cancel.is_cancelled() && !self.handle.is_closed() {
            if self
                .registry
                .tasks()
                .has(&self.id, self.principal.as_deref())
            {
                return;
            }
            match self.find().await {
                Ok(Some(Found::Known(record))) => {
                    if record.detail != told {
                        subscriber.tell_task(key, &self.id, &record.detail);
                        told = record.detail;
                    }
                    if record.has_ended {
                        return;
                    }
                }
                Ok(Some(Found::Abandoned(record, seen))) => {
                    let nothing = Box::pin(async {});
                    let _ = self.run_again(&call, record, seen, nothing).await;
                }
                Ok(None) => return,
                // The store is away.
                Err(_) => {}
            }
            wait(changes.as_mut(), self.handle.sleep(RENEWAL), &call.cancel).await;
        }
    }
}

/// Waits for a change, for the time, or until nobody waits any more.
pub(super) async fn wait(
    mut changes: Option<&mut Subscription>,
    sleep: Sleep,
    cancel: &CancelToken,
) {
    let (mut cancelled, mut due) = (pin!(cancel.cancelled()), pin!(sleep));
    poll_fn(|cx| {
        let is_cancelled = cancelled.as_mut().poll(cx).is_ready();
        let is_due = due.as_mut().poll(cx).is_ready();
        let changes = changes.as_mut();
        let is_hinted = changes.is_some_and(|changes| changes.poll_hinted(cx).is_ready());
        match is_cancelled || is_due || is_hinted {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}
