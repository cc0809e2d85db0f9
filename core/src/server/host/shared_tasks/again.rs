//! Tasks that nobody runs any more, run once more at this process.

use std::sync::Arc;

use super::Request;
use crate::connection::{Call, Operation};
use crate::handler::Job;
use crate::handler::driven::drive;
use crate::mcp::Method;
use crate::message::Message;
use crate::server::tasks::{Kept, LEASE, Task, TaskRecord, Tasks};
use crate::store::{BlobVersion, StoreError};

/// What has become of a task that was to be run here.
pub enum Again {
    Runs,
    /// Its record has changed.
    Changed,
    /// There is no room for it here, or another request runs it.
    NoRoom,
}

/// Forgets a task that is not run here after all, also if nobody waits for the store any more.
struct Claim<'a> {
    tasks: &'a Tasks,
    task: &'a Task,
    is_kept: bool,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.tasks.forget(self.task);
        }
    }
}

impl Request {
    /// Runs a task here that nobody runs any more, unless its record has changed. `then` goes on when it runs.
    pub async fn run_again(
        &self,
        call: &Call,
        record: TaskRecord,
        seen: BlobVersion,
        then: Job,
    ) -> Result<Again, StoreError> {
        let (mut again, task, kept) = match self.take_over(call, record, seen).await? {
            Ok(taken) => taken,
            Err(why) => return Ok(why),
        };
        let (registry, shared) = (self.registry.clone(), self.shared.clone());
        let timers = self.handle.timers().unwrap_or_else(|| self.handle.clone());
        let (own, patience) = (task.clone(), timers.sleep(LEASE));
        let arrived = move |has_arrived| match has_arrived {
            true => {
                drive(Box::pin(shared.keep_on(registry, own, kept, timers)));
                drive(then);
            }
            false => drive(Box::pin(async move {
                shared.let_go(registry, own, kept).await;
                then.await;
            })),
        };
        let stream = again.reply.key().stream();
        let key = self.registry.tasks().resuming().add(stream, task, arrived);
        again.reply.key = key;
        self.handle.run_detached(again);
        let (registry, handle) = (self.registry.clone(), self.handle.clone());
        drive(Box::pin(async move {
            if !handle.is_closed() {
                patience.await;
            }
            registry.tasks().resuming().give_up(key);
        }));
        Ok(Again::Runs)
    }

    /// The call to run, its task and its record, or why there is none.
    async fn take_over(
        &self,
        call: &Call,
        record: TaskRecord,
        seen: BlobVersion,
    ) -> Result<Result<(Call, Arc<Task>, Kept), Again>, StoreError> {
        let (tasks, revision) = (self.registry.tasks(), self.revision);
        let request = self.shared.call(&record.id).await?;
        let depth = self.handle.config().limits.max_depth;
        let request = request.and_then(|bytes| Message::parse(&bytes, depth).ok());
        let number = |request: &Message| self.registry.tool(&request.as_ref().name()?);
        let number = request.as_ref().and_then(number);
        let may_run = |number: &u32| {
            self.registry.is_idempotent(*number) && self.registry.supports_tasks(*number)
        };
        let number = number.filter(may_run);
        let Some((message, number)) = request.zip(number) else {
            self.shared.give_up(record, seen, revision).await?;
            return Ok(Err(Again::Changed));
        };
        let Some(task) = tasks.take_over(&record, revision, self.asks()) else {
            return Ok(Err(Again::NoRoom));
        };
        let mut claim = Claim {
            tasks,
            task: &task,
            is_kept: false,
        };
        let Some(kept) = self.shared.take_over(&task, record, seen).await? else {
            return Ok(Err(Again::Changed));
        };
        claim.is_kept = true;
        drop(claim);
        task.set_shared(true);
        let again = Call {
            message,
            reply: call.reply.clone(),
            method: Some(Method::CallTool),
            operation: Operation::CallTool(number),
            cancel: task.cancel.clone(),
            scope: None,
        };
        Ok(Ok((again, task, kept)))
    }
}
