//! Requests about tasks that every process knows, answered from the store.
//!
//! A task that this process runs is answered for from its memory while the store is away.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::tasks::{HAS_ENDED, NO_TASK, PAGE, answers, cursor, write_page};
use crate::connection::{Call, Handle, Operation, Principal, Sleep};
use crate::correlate::CancelToken;
use crate::handler::Job;
use crate::handler::driven::drive;
use crate::json::reader;
use crate::mcp::{ErrorKind, Method, Revision, TaskForm};
use crate::message::Message;
use crate::server::registry::Registry;
use crate::server::subscriptions::Subscriber;
use crate::server::tasks::{
    Asked, Asker, Found, Kept, RENEWAL, SharedTasks, Task, TaskOwner, TaskRecord,
};
use crate::store::{BlobVersion, StoreError, Subscription};

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
        let proven = call.reply.principal().map(Principal::as_str);
        let principal = proven.or_else(|| handle.principal());
        let asks = Asker { handle, principal };
        Some(Self {
            shared: tasks.shared()?.clone(),
            owner: asks.owner(revision)?,
            principal: principal.map(Into::into),
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
            let answered = match call.method {
                Some(Method::ListTasks) => self.list(&call).await,
                Some(Method::TaskResult) => self.answer_at_end(&call).await,
                Some(Method::CancelTask) => self.cancel(&call).await,
                Some(Method::UpdateTask) => self.update(&call).await,
                _ => self.get(&call).await,
            };
            match answered {
                Ok(Answered::Done) => {}
                Ok(Answered::Not(record, seen)) => {
                    // From what the record has become.
                    let then = self.clone().answer(call.clone());
                    if self.run_again(&call, record, seen, then).await.is_err() {
                        self.postpone(&call);
                    }
                }
                Err(_) => self.postpone(&call),
            }
        })
    }

    fn postpone(&self, call: &Call) {
        let why = "tasks of other processes cannot be found now: try again later";
        let data = Some("{\"retryAfter\":1}");
        let mut replies = self.handle.replies();
        replies.error(&call.reply, ErrorKind::Overloaded, why, data);
    }

    /// Runs a task here that nobody runs any more, unless its record has changed. `then` goes on when it runs, or the record has changed.
    pub async fn run_again(
        &self,
        call: &Call,
        record: TaskRecord,
        seen: BlobVersion,
        then: Job,
    ) -> Result<(), StoreError> {
        if call.cancel.is_cancelled() || self.handle.is_closed() {
            return Ok(());
        }
        let Some((mut again, task, kept)) = self.take_over(call, record, seen).await? else {
            then.await;
            return Ok(());
        };
        let (registry, shared) = (self.registry.clone(), self.shared.clone());
        let timers = self.handle.timers().unwrap_or_else(|| self.handle.clone());
        let keep = shared.keep_on(registry, task.clone(), kept, timers);
        let begun = move || {
            drive(Box::pin(keep));
            drive(then);
        };
        let stream = again.reply.key().stream();
        let resuming = self.registry.tasks().resuming();
        again.reply.key = resuming.add(stream, task, begun);
        self.handle.run_detached(again);
        Ok(())
    }

    /// The call to run, its task and its record; `None` if the record has changed.
    async fn take_over(
        &self,
        call: &Call,
        record: TaskRecord,
        seen: BlobVersion,
    ) -> Result<Option<(Call, Arc<Task>, Kept)>, StoreError> {
        let (tasks, revision) = (self.registry.tasks(), self.revision);
        let request = self.shared.call(&record.id).await?;
        let depth = self.handle.config().limits.max_depth;
        let request = request.and_then(|bytes| Message::parse(&bytes, depth).ok());
        let number = |request: &Message| self.registry.tool(&request.as_ref().name()?);
        let number = request.as_ref().and_then(number);
        let number = number.filter(|number| self.registry.is_idempotent(*number));
        let Some((message, number)) = request.zip(number) else {
            self.shared.give_up(record, seen, revision).await?;
            return Ok(None);
        };
        let Some(task) = tasks.take_over(&record, revision, self.asks()) else {
            // Another process may have room.
            self.handle.sleep(RENEWAL).await;
            return Ok(None);
        };
        let taken = self.shared.take_over(&task, record, seen).await;
        let Ok(Some(kept)) = taken else {
            tasks.forget(&task);
            return taken.map(|_| None);
        };
        task.set_shared(true);
        let again = Call {
            message,
            reply: call.reply.clone(),
            method: Some(Method::CallTool),
            operation: Operation::CallTool(number),
            cancel: task.cancel.clone(),
            scope: None,
        };
        Ok(Some((again, task, kept)))
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
        self.shared.find(&self.id, &self.owner, self.revision).await
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
        let mut replies = self.handle.replies();
        replies.result(&call.reply, |result| result.members(&detail));
        Ok(Answered::Done)
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
        let page = self.shared.list(&self.owner, self.revision, after, PAGE);
        let page = page.await?;
        let mut listed = Vec::new();
        if after == 0 {
            let own = self.registry.tasks().list(self.asks(), self.revision, 0);
            let own = own.iter().filter(|own| !own.is_shared());
            listed.extend(own.map(|own| own.summary()));
        }
        listed.extend(page.tasks.into_iter().map(|record| record.detail));
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
