//! Notifications of the state of tasks that other processes run.

use std::sync::Arc;

use super::shared_tasks::{Request, wait};
use crate::connection::{Call, Handle};
use crate::correlate::CancelToken;
use crate::handler::Job;
use crate::handler::driven::drive;
use crate::json::reader;
use crate::mcp::{Method, TaskForm};
use crate::server::registry::Registry;
use crate::server::subscriptions::{Interests, Subscriber};
use crate::server::tasks::{Asker, RENEWAL, SharedTasks};
use crate::store::StoreError;

/// Notifies the client of a session of its tasks at other processes (2025-11-25, R-TSK-16), until the session ends here. `None`
/// if no other process knows the session.
pub(super) fn of_session(registry: &Arc<Registry>, handle: &Handle) -> Option<Job> {
    let has_form = handle.revision()?.rules().tasks == Some(TaskForm::Core);
    if !has_form || !registry.has_tasks() {
        return None;
    }
    let session = Session {
        name: handle.shared_session()?.into(),
        shared: registry.tasks().shared()?.clone(),
        registry: registry.clone(),
        handle: handle.clone(),
    };
    Some(Box::pin(session.follow()))
}

struct Session {
    name: Box<str>,
    shared: Arc<SharedTasks>,
    registry: Arc<Registry>,
    handle: Handle,
}

impl Session {
    async fn follow(self) {
        let mut after = None;
        while !self.handle.is_closed() {
            // While the store is away, what has changed is told when it is back.
            let _ = self.follow_from(&mut after).await;
            self.handle.sleep(RENEWAL).await;
        }
    }

    async fn follow_from(&self, after: &mut Option<u64>) -> Result<(), StoreError> {
        let mut changes = self.shared.changes_in(&self.name).await?;
        while !self.handle.is_closed() {
            let page = self.shared.told_in(&self.name, *after).await?;
            for entry in &page.entries {
                self.tell(&entry.bytes);
            }
            let is_first = after.is_none();
            *after = Some(page.entries.last().map_or(page.last, |entry| entry.id));
            if page.entries.is_empty() && !is_first {
                let due = self.handle.sleep(RENEWAL * 15);
                wait(Some(&mut changes), due, &CancelToken::new()).await;
            }
        }
        Ok(())
    }

    fn tell(&self, detail: &[u8]) {
        let detail = std::str::from_utf8(detail).unwrap_or_default();
        let state = format!("{{{detail}}}");
        let id = reader::find(&state, "taskId").and_then(reader::as_str);
        if id.is_some_and(|id| !self.registry.tasks().tells(&id, &self.handle)) {
            // Cannot fail for its params: they are an object.
            let _ = self.handle.notify(Method::TaskStatus.name(), Some(&state));
        }
    }
}

/// Begins a stream of `subscriptions/listen`; the job does if it has to find out which tasks of other processes the client has
/// (2026-07-28, R-TSX-17).
pub(super) fn listen(
    registry: &Arc<Registry>,
    handle: &Handle,
    subscriber: &Arc<Subscriber>,
    call: Call,
    interests: Interests,
) -> Option<Job> {
    let principal = Asker::of(handle, &call.reply).principal;
    let is_elsewhere = |id: &&str| !registry.tasks().has(id, principal);
    let elsewhere = interests.tasks().filter(is_elsewhere).map(str::to_owned);
    let elsewhere: Vec<String> = elsewhere.collect();
    if elsewhere.is_empty() {
        subscriber.listen(&call, interests);
        return None;
    }
    let (registry, handle, subscriber) = (registry.clone(), handle.clone(), subscriber.clone());
    Some(Box::pin(async move {
        let (mut interests, mut watched) = (interests, Vec::new());
        for id in elsewhere {
            let request = Request::about(&registry, &handle, &call, &id);
            let found = match &request {
                Some(request) => request.find().await.ok().flatten(),
                None => None,
            };
            match (request, found) {
                (Some(request), Some(found)) => watched.push((request, found.record())),
                _ => interests.forget_task(&id),
            }
        }
        if call.cancel.is_cancelled() {
            return;
        }
        if !subscriber.listen(&call, interests) {
            return;
        }
        if call.cancel.is_cancelled() {
            // Its cancellation has not found it.
            return subscriber.cancelled(call.reply.key());
        }
        for (request, record) in watched {
            let watch = request.watch(subscriber.clone(), call.clone(), record);
            drive(Box::pin(watch));
        }
    }))
}
