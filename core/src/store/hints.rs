//! Subscriptions to topics, in one process. A hint carries nothing, so one that waits stands for all.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use crate::sync::lock;

/// Is told of topics.
type OnTopic = Box<dyn Fn(&Arc<str>) + Send + Sync>;

type Topics = HashMap<Arc<str>, Vec<Weak<Mutex<Waiting>>>>;

/// The subscriptions of a process, by topic: what a store hands out and wakes.
#[derive(Default)]
pub struct Hints {
    topics: Mutex<Topics>,
    /// Is told of topics that nobody subscribes to any more.
    ended: Option<OnTopic>,
}

/// A hint that waits, or the task that waits for one.
#[derive(Debug, Default)]
struct Waiting {
    is_hinted: bool,
    waker: Option<Waker>,
}

/// Hears that something may have changed: a hint to look again. Hints that come before the last one was heard are one.
#[derive(Debug)]
pub struct Subscription {
    topic: Arc<str>,
    waiting: Arc<Mutex<Waiting>>,
    all: Arc<Hints>,
}

impl Hints {
    /// Subscriptions whose topics are reported to `ended` when their last subscription is dropped.
    pub fn telling(ended: impl Fn(&Arc<str>) + Send + Sync + 'static) -> Self {
        Self {
            topics: Mutex::default(),
            ended: Some(Box::new(ended)),
        }
    }

    /// Subscribes to a topic.
    pub fn subscribe(self: &Arc<Self>, topic: &str) -> Subscription {
        let waiting = Arc::default();
        let mut all = lock(&self.topics);
        let topic = match all.get_key_value(topic) {
            Some((topic, _)) => topic.clone(),
            None => Arc::from(topic),
        };
        all.entry(topic.clone())
            .or_default()
            .push(Arc::downgrade(&waiting));
        Subscription {
            topic,
            waiting,
            all: self.clone(),
        }
    }

    /// Wakes the subscriptions to a topic.
    pub fn publish(&self, topic: &str) {
        let wakers = hinted(lock(&self.topics).get(topic).into_iter().flatten());
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Wakes all subscriptions: hints may have been lost.
    pub fn publish_all(&self) {
        let wakers = hinted(lock(&self.topics).values().flatten());
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The topics that somebody subscribes to.
    pub fn topics(&self) -> Vec<Arc<str>> {
        lock(&self.topics).keys().cloned().collect()
    }

    /// Whether somebody subscribes to a topic.
    pub fn has(&self, topic: &str) -> bool {
        lock(&self.topics).contains_key(topic)
    }
}

impl fmt::Debug for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hints").field(&self.topics()).finish()
    }
}

/// Notes a hint for each subscription. Returns the tasks to wake once no lock is held: a waker may poll its task.
fn hinted<'a>(subscriptions: impl Iterator<Item = &'a Weak<Mutex<Waiting>>>) -> Vec<Waker> {
    let wakers = subscriptions
        .filter_map(Weak::upgrade)
        .filter_map(|waiting| {
            let mut waiting = lock(&waiting);
            waiting.is_hinted = true;
            waiting.waker.take()
        });
    wakers.collect()
}

impl Subscription {
    /// Completes when there was a hint since the last time it completed, or since the subscription began.
    ///
    /// # Cancel safety
    /// A hint is not lost when the future is dropped before it completes.
    pub async fn hinted(&mut self) {
        poll_fn(|cx| self.poll_hinted(cx)).await;
    }

    /// As [`hinted`](Self::hinted), for programs that poll. Only the last task that polled is woken.
    pub fn poll_hinted(&mut self, cx: &Context<'_>) -> Poll<()> {
        let mut waiting = lock(&self.waiting);
        if std::mem::take(&mut waiting.is_hinted) {
            waiting.waker = None;
            return Poll::Ready(());
        }
        waiting.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut all = lock(&self.all.topics);
        let Some(own) = all.get_mut(&self.topic) else {
            return;
        };
        own.retain(|each| !std::ptr::eq(each.as_ptr(), Arc::as_ptr(&self.waiting)));
        if own.is_empty() {
            all.remove(&self.topic);
            drop(all);
            if let Some(ended) = &self.all.ended {
                ended(&self.topic);
            }
        }
    }
}
