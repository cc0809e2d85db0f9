//! A bounded queue for audit events, between the threads that answer requests and the thread that
//! writes the audit.

use std::fmt;
use std::io;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Deserialize;

use super::Policy;
use super::audit::{AuditEvent, Sink};
use crate::limits::MAX_AUDIT_EVENTS;
use crate::sync::lock;

/// The treatment of an audit event whose [queue](AuditQueue) is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum WhenFull {
    /// The thread that answers the request waits for room. No event is lost, but a slow audit slows the
    /// server down.
    #[default]
    Wait,
    /// The event is dropped and counted; [`AuditEvent::dropped`] of the next event has the count.
    Drop,
    /// Requests that would be audited are refused as overloaded until there is room. Requests in flight
    /// are still answered; their events are kept up to twice the size of the queue.
    Refuse,
}

/// A bounded queue between the threads that answer requests and the one that writes an audit. Clones
/// share the queue.
#[derive(Clone)]
pub struct AuditQueue(Arc<Inner>);

struct Inner {
    places: Mutex<Places>,
    left: Condvar,
    events: usize,
    when_full: WhenFull,
    wait_by: Option<Box<WaitBy>>,
}

type WaitBy = dyn Fn(&(dyn Fn() + Send + Sync)) + Send + Sync;

#[derive(Default)]
struct Places {
    taken: usize,
    /// Events dropped since the last event that was kept.
    since: u64,
    /// Events dropped in total.
    dropped: u64,
    is_closed: bool,
}

impl Places {
    fn drop_one(&mut self) {
        self.since += 1;
        self.dropped += 1;
    }

    /// Takes a place for one event, full or not. Returns the number of events dropped since the last
    /// one that was kept; `None` if the queue is closed, which drops this event too.
    fn take_one(&mut self) -> Option<u64> {
        if self.is_closed {
            self.drop_one();
            return None;
        }
        self.taken += 1;
        Some(std::mem::take(&mut self.since))
    }
}

impl AuditQueue {
    /// Creates a queue with room for `events`, at least one.
    pub fn new(events: usize, when_full: WhenFull) -> Self {
        Self::of(events, when_full, None)
    }

    fn of(events: usize, when_full: WhenFull, wait_by: Option<Box<WaitBy>>) -> Self {
        Self(Arc::new(Inner {
            places: Mutex::default(),
            left: Condvar::new(),
            events: events.max(1),
            when_full,
            wait_by,
        }))
    }

    /// Returns a new empty queue with these settings whose threads wait inside `wait_by`. This is for
    /// programs whose audit needs something that the waiting threads may hold, such as an interpreter's
    /// lock. `wait_by` gets the function that waits and may return without calling it; the event is
    /// then kept although the queue is full.
    #[must_use]
    pub fn wait_by(
        &self,
        wait_by: impl Fn(&(dyn Fn() + Send + Sync)) + Send + Sync + 'static,
    ) -> Self {
        Self::of(self.0.events, self.0.when_full, Some(Box::new(wait_by)))
    }

    /// Reports that an event has been written, which makes room for another.
    pub fn leave(&self) {
        let mut places = self.places();
        places.taken = places.taken.saturating_sub(1);
        drop(places);
        self.0.left.notify_one();
    }

    /// Closes the queue: further events are dropped, and no thread waits any more.
    pub fn close(&self) {
        self.places().is_closed = true;
        self.0.left.notify_all();
    }

    /// Number of events dropped so far.
    pub fn dropped(&self) -> u64 {
        self.places().dropped
    }

    /// Whether requests that would be audited may begin.
    pub(super) fn takes_requests(&self) -> bool {
        self.0.when_full != WhenFull::Refuse || self.places().taken < self.0.events
    }

    /// Takes a place for one event. Returns the number of events dropped since the last one that was
    /// kept; `None` if this event is dropped.
    fn enter(&self) -> Option<u64> {
        let mut places = self.places();
        let most = match self.0.when_full {
            WhenFull::Refuse => self.0.events.saturating_mul(2),
            _ => self.0.events,
        };
        if places.taken >= most && !places.is_closed {
            if self.0.when_full == WhenFull::Wait {
                drop(places);
                return self.wait();
            }
            places.drop_one();
            return None;
        }
        places.take_one()
    }

    /// Waits until there is room and takes it before another thread can.
    fn wait(&self) -> Option<u64> {
        let take = || {
            let is_full = |places: &mut Places| !places.is_closed && places.taken >= self.0.events;
            let waited = self.0.left.wait_while(self.places(), is_full);
            waited.unwrap_or_else(PoisonError::into_inner).take_one()
        };
        let Some(wait_by) = &self.0.wait_by else {
            return take();
        };
        let taken = OnceLock::new();
        wait_by(&|| {
            taken.get_or_init(take);
        });
        // `wait_by` may return without waiting.
        taken
            .into_inner()
            .unwrap_or_else(|| self.places().take_one())
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        lock(&self.0.places)
    }
}

/// A queue for [`MAX_AUDIT_EVENTS`] events with [`WhenFull::Wait`].
impl Default for AuditQueue {
    fn default() -> Self {
        Self::new(MAX_AUDIT_EVENTS, WhenFull::default())
    }
}

impl fmt::Debug for AuditQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditQueue")
            .field("events", &self.0.events)
            .field("when_full", &self.0.when_full)
            .finish_non_exhaustive()
    }
}

impl Policy {
    /// Calls `report` with each event of [`audit`](Self::audit) as JSON, one after another, on a
    /// separate thread. `queue` limits how many events wait for that thread.
    ///
    /// ```
    /// use mcpbolt::policy::{AuditQueue, Policy, WhenFull};
    /// let queue = AuditQueue::new(1000, WhenFull::Drop);
    /// let policy = Policy::new().audit_queued(queue, |event| eprintln!("{event}"))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn audit_queued(
        self,
        queue: AuditQueue,
        mut report: impl FnMut(&str) + Send + 'static,
    ) -> io::Result<Self> {
        /// Closes the queue however the thread ends.
        struct Reporting(AuditQueue);
        impl Drop for Reporting {
            fn drop(&mut self) {
                self.0.close();
            }
        }
        let (sender, events) = channel::<String>();
        let reporting = Reporting(queue.clone());
        let reporter = std::thread::Builder::new().name("mcpbolt audit".into());
        reporter.spawn(move || {
            for event in events {
                report(&event);
                reporting.0.leave();
            }
        })?;
        Ok(self.audit_through(queue, move |event| {
            // Sending fails only if the thread has ended; the queue is closed then.
            let _ = sender.send(event.to_json());
        }))
    }

    /// Like [`audit_queued`](Self::audit_queued), for programs with their own threads or event loops.
    /// `report` runs on the thread that answers; it hands the event on and returns at once. The
    /// receiver calls [`AuditQueue::leave`] when it has written the event.
    #[must_use]
    pub fn audit_through(
        mut self,
        queue: AuditQueue,
        report: impl Fn(&AuditEvent<'_>) + Send + Sync + 'static,
    ) -> Self {
        let entering = queue.clone();
        self.sinks.push(Sink::new(move |event: &AuditEvent<'_>| {
            if let Some(dropped) = entering.enter() {
                let event = event.clone();
                report(&AuditEvent { dropped, ..event });
            }
        }));
        self.queues.push(queue);
        self
    }

    /// The queue that a policy [from JSON](Self::from_json) set with `auditQueue`; else the default
    /// queue.
    pub fn audit_queue(&self) -> AuditQueue {
        self.queue.clone().unwrap_or_default()
    }

    /// Whether every queue lets another request begin.
    pub(crate) fn can_audit(&self) -> bool {
        self.queues.iter().all(AuditQueue::takes_requests)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use super::*;
    use crate::policy::AuditOutcome;

    fn event(id: &str) -> AuditEvent<'_> {
        AuditEvent {
            method: "tools/call",
            name: "t",
            principal: None,
            id,
            revision: "",
            outcome: AuditOutcome::Done,
            code: None,
            message: None,
            duration: Duration::ZERO,
            arguments: None,
            dropped: 0,
        }
    }

    /// A policy whose audit thread reports one event per message that it is sent.
    fn slow(queue: &AuditQueue) -> (Policy, Sender<()>, Receiver<(String, u64)>) {
        let (go, may) = channel();
        let (tell, told) = channel();
        let policy = Policy::new().audit_queued(queue.clone(), move |event| {
            if may.recv().is_err() {
                return;
            }
            let event: serde_json::Value = serde_json::from_str(event).unwrap();
            let id = event["id"].as_str().unwrap().to_owned();
            let _ = tell.send((id, event["dropped"].as_u64().unwrap()));
        });
        (policy.unwrap(), go, told)
    }

    #[test]
    fn a_full_queue_drops_and_says_how_many() {
        let queue = AuditQueue::new(2, WhenFull::Drop);
        let (policy, go, told) = slow(&queue);
        for id in ["1", "2", "3", "4", "5"] {
            policy.tell(&event(id));
        }
        assert!(policy.can_audit());
        assert_eq!(queue.dropped(), 3);
        go.send(()).unwrap();
        go.send(()).unwrap();
        assert_eq!(told.recv().unwrap(), ("1".into(), 0));
        assert_eq!(told.recv().unwrap(), ("2".into(), 0));
        while queue.places().taken > 0 {
            std::thread::yield_now();
        }
        policy.tell(&event("6"));
        go.send(()).unwrap();
        assert_eq!(told.recv().unwrap(), ("6".into(), 3));
    }

    #[test]
    fn a_full_queue_has_the_answering_thread_wait() {
        let queue = AuditQueue::new(1, WhenFull::Wait);
        let (policy, go, told) = slow(&queue);
        let (tell, passed) = channel();
        let answering = std::thread::spawn(move || {
            for id in ["1", "2", "3"] {
                policy.tell(&event(id));
                tell.send(id).unwrap();
            }
        });
        assert_eq!(passed.recv().unwrap(), "1");
        assert!(passed.recv_timeout(Duration::from_millis(50)).is_err());
        for id in ["1", "2", "3"] {
            go.send(()).unwrap();
            assert_eq!(told.recv().unwrap(), (id.into(), 0));
        }
        answering.join().unwrap();
        assert_eq!(queue.dropped(), 0);
    }

    #[test]
    fn a_thread_that_waited_for_room_has_taken_it() {
        let step = Arc::new(Barrier::new(2));
        let steps = step.clone();
        let queue = AuditQueue::new(1, WhenFull::Wait).wait_by(move |wait| {
            steps.wait();
            wait();
            steps.wait();
            steps.wait();
        });
        assert_eq!(queue.enter(), Some(0));
        let entering = queue.clone();
        let answering = std::thread::spawn(move || entering.enter());
        step.wait();
        queue.leave();
        step.wait();
        let taken = queue.places().taken;
        step.wait();
        assert_eq!(answering.join().unwrap(), Some(0));
        assert_eq!((taken, queue.places().taken), (1, 1));
    }

    #[test]
    fn a_full_queue_has_requests_refused() {
        let queue = AuditQueue::new(2, WhenFull::Refuse);
        let (policy, go, told) = slow(&queue);
        for (id, takes) in [
            ("1", true),
            ("2", false),
            ("3", false),
            ("4", false),
            ("5", false),
        ] {
            policy.tell(&event(id));
            assert_eq!(policy.can_audit(), takes, "{id}");
        }
        // Four events were kept: those of the requests in flight.
        assert_eq!(queue.dropped(), 1);
        (0..4).for_each(|_| go.send(()).unwrap());
        let ids: Vec<_> = (0..4).map(|_| told.recv().unwrap().0).collect();
        assert_eq!(ids, ["1", "2", "3", "4"]);
        while queue.places().taken > 0 {
            std::thread::yield_now();
        }
        assert!(policy.can_audit());
    }

    /// A reporter that panics blocks nobody.
    #[test]
    fn nobody_waits_for_an_audit_that_has_ended() {
        let queue = AuditQueue::new(1, WhenFull::Wait);
        let policy = Policy::new().audit_queued(queue.clone(), |_| panic!("the disk is full"));
        let policy = policy.unwrap();
        (0..100).for_each(|_| policy.tell(&event("1")));
        assert!(queue.dropped() >= 98);
    }

    #[test]
    fn an_audit_has_room_for_so_many_by_default() {
        let waits = Arc::new(Mutex::new(0));
        let counts = waits.clone();
        let queue = AuditQueue::default().wait_by(move |_| *counts.lock().unwrap() += 1);
        let policy = Policy::new().audit_through(queue, |_| {});
        (0..MAX_AUDIT_EVENTS).for_each(|_| policy.tell(&event("1")));
        assert_eq!(*waits.lock().unwrap(), 0);
        policy.tell(&event("1"));
        assert_eq!(*waits.lock().unwrap(), 1);

        let read = Policy::from_json(r#"{"auditQueue": {"whenFull": "refuse"}}"#);
        let policy = Policy::new().audit_through(read.unwrap().audit_queue(), |_| {});
        (1..MAX_AUDIT_EVENTS).for_each(|_| policy.tell(&event("1")));
        assert!(policy.can_audit());
        policy.tell(&event("1"));
        assert!(!policy.can_audit());
    }
}
