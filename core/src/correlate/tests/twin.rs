//! A reference model of the table of pending requests, and a property test that compares the two.

use std::collections::HashMap;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use super::super::{PendingRequests, RequestKey, Unregistered};
use super::support::{Random, Woken, rounds};

/// The behaviour of [`PendingRequests`], behind one lock.
struct Twin<T> {
    max: usize,
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    closed: bool,
    requests: HashMap<RequestKey, Request<T>>,
}

enum Request<T> {
    Pending(Option<Waker>),
    Done(T),
}

impl<T> Twin<T> {
    fn new(max: usize) -> Self {
        let inner = Inner {
            closed: false,
            requests: HashMap::new(),
        };
        Self {
            max,
            inner: Mutex::new(inner),
        }
    }

    /// Takes the key that the table issued, because the model does not issue keys itself.
    fn register(&self, key: Result<RequestKey, Unregistered>) -> Result<RequestKey, Unregistered> {
        let mut inner = self.inner.lock().unwrap();
        if inner.closed {
            return Err(Unregistered::Closed);
        }
        if inner.requests.len() == self.max {
            return Err(Unregistered::Full);
        }
        let key = key.expect("there was room");
        assert!(
            inner.requests.insert(key, Request::Pending(None)).is_none(),
            "{key} in use"
        );
        Ok(key)
    }

    fn complete(&self, key: RequestKey, value: T) -> Result<(), T> {
        let mut inner = self.inner.lock().unwrap();
        match inner.requests.get_mut(&key) {
            Some(request @ Request::Pending(_)) => {
                if let Request::Pending(Some(waker)) =
                    std::mem::replace(request, Request::Done(value))
                {
                    waker.wake();
                }
                Ok(())
            }
            _ => Err(value),
        }
    }

    fn cancel(&self, key: RequestKey) -> bool {
        let removed = self.inner.lock().unwrap().requests.remove(&key);
        matches!(removed, Some(Request::Pending(_)))
    }

    fn poll(&self, key: RequestKey, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut inner = self.inner.lock().unwrap();
        if let Some(Request::Pending(waker)) = inner.requests.get_mut(&key) {
            *waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        match inner.requests.remove(&key) {
            Some(Request::Done(value)) => Poll::Ready(Some(value)),
            _ => Poll::Ready(None),
        }
    }

    fn close(&self, value: impl Fn() -> T) {
        let keys: Vec<_> = {
            let mut inner = self.inner.lock().unwrap();
            inner.closed = true;
            inner.requests.keys().copied().collect()
        };
        for key in keys {
            _ = self.complete(key, value());
        }
    }

    fn pending_count(&self) -> usize {
        let inner = self.inner.lock().unwrap();
        inner
            .requests
            .values()
            .filter(|request| matches!(request, Request::Pending(_)))
            .count()
    }
}

#[test]
fn the_table_does_what_its_model_does() {
    let mut random = Random::new();
    for round in 0..rounds(400) {
        let max = 1 + random.below(100);
        let table = PendingRequests::new(max);
        let twin = Twin::new(max);
        let wakers = [Woken::new(), Woken::new()];
        let twin_wakers = [Woken::new(), Woken::new()];
        let mut keys = vec![RequestKey::from_wire(1 + random.next() % 999).unwrap()];
        for step in 0..1 + random.below(600) as u64 {
            let key = *random.pick(&keys).unwrap();
            match random.below(100) {
                0..35 => {
                    let made = table.register();
                    assert_eq!(made, twin.register(made), "round {round} step {step}");
                    keys.extend(made);
                }
                35..60 => {
                    let value = Box::new(step);
                    let expected = twin.complete(key, value.clone());
                    assert_eq!(table.complete(key, value), expected);
                }
                60..75 => assert_eq!(table.cancel(key), twin.cancel(key)),
                75..98 => {
                    let which = random.below(2);
                    let polled = table.poll(key, &mut Context::from_waker(&wakers[which].1));
                    let waker = &twin_wakers[which].1;
                    assert_eq!(polled, twin.poll(key, &mut Context::from_waker(waker)));
                }
                98 => assert_eq!(table.pending_count(), twin.pending_count()),
                _ if step > 300 => {
                    table.close(|| Box::new(step));
                    twin.close(|| Box::new(step));
                }
                _ => {}
            }
            for (ours, theirs) in wakers.iter().zip(&twin_wakers) {
                assert_eq!(
                    ours.0.count(),
                    theirs.0.count(),
                    "woken otherwise at {step}"
                );
            }
        }
    }
}
