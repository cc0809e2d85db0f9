//! Single-threaded tests of [`PendingRequests`].

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use super::super::key::MAX_SLOTS;
use super::super::{PendingRequests, RequestKey, Unregistered};
use super::support::Woken;

fn poll<T>(table: &PendingRequests<T>, key: RequestKey) -> Poll<Option<T>> {
    table.poll(key, &mut Context::from_waker(Waker::noop()))
}

#[test]
fn the_first_ids_are_one_two_three() {
    let table = PendingRequests::<()>::new(9);
    let ids: Vec<_> = (0..3).map(|_| table.register().unwrap().get()).collect();
    assert_eq!(ids, [1, 2, 3]);
}

#[test]
fn an_answer_wakes_the_waiter_and_is_taken_once() {
    let table = PendingRequests::new(9);
    let key = table.register().unwrap();
    let (woken, waker) = Woken::new();
    let mut cx = Context::from_waker(&waker);
    assert_eq!(table.poll(key, &mut cx), Poll::Pending);
    assert_eq!(table.complete(key, "answer"), Ok(()));
    assert_eq!(woken.count(), 1);
    assert_eq!(table.poll(key, &mut cx), Poll::Ready(Some("answer")));
    assert_eq!(table.poll(key, &mut cx), Poll::Ready(None));
}

#[test]
fn only_the_waker_of_the_last_poll_is_woken() {
    let table = PendingRequests::new(9);
    let key = table.register().unwrap();
    let ((first, old), (second, new)) = (Woken::new(), Woken::new());
    for waker in [&old, &old, &new, &new] {
        assert_eq!(
            table.poll(key, &mut Context::from_waker(waker)),
            Poll::Pending
        );
    }
    table.complete(key, ()).unwrap();
    assert_eq!((first.count(), second.count()), (0, 1));
    assert_eq!(Arc::strong_count(&first), 2, "the old waker was let go");
}

#[test]
fn the_first_outcome_stands_and_later_ones_are_strays() {
    let table = PendingRequests::new(9);
    let key = table.register().unwrap();
    assert_eq!(table.complete(key, 1), Ok(()));
    assert_eq!(table.complete(key, 2), Err(2));
    assert_eq!(poll(&table, key), Poll::Ready(Some(1)));
    assert_eq!(table.complete(key, 3), Err(3));
}

#[test]
fn an_answer_of_an_earlier_use_of_the_slot_is_a_stray() {
    let table = PendingRequests::new(1);
    let first = table.register().unwrap();
    assert!(table.cancel(first));
    let second = table.register().unwrap();
    assert_ne!(first, second);
    assert_eq!(table.complete(first, 1), Err(1));
    assert_eq!(poll(&table, second), Poll::Pending);
    assert!(!table.cancel(first));
    assert_eq!(table.complete(second, 2), Ok(()));
    assert_eq!(poll(&table, second), Poll::Ready(Some(2)));
}

#[test]
fn forged_ids_are_strays() {
    let table = PendingRequests::new(100);
    table.register().unwrap();
    for id in [
        2,
        64,
        65,
        100_000,
        u64::from(MAX_SLOTS),
        (1 << 20) + 1,
        (1 << 53) - 1,
    ] {
        let key = RequestKey::from_wire(id).unwrap();
        assert_eq!(table.complete(key, ()), Err(()), "{id}");
        assert!(!table.cancel(key));
        assert_eq!(poll(&table, key), Poll::Ready(None));
    }
    assert_eq!(table.pending_count(), 1);
}

#[test]
fn cancelling_tells_whether_the_peer_must_hear_of_it() {
    let table = PendingRequests::new(9);
    let (pending, settled) = (table.register().unwrap(), table.register().unwrap());
    let outcome = Arc::new(());
    table.complete(settled, outcome.clone()).unwrap();
    assert!(table.cancel(pending));
    assert!(!table.cancel(settled));
    assert_eq!(Arc::strong_count(&outcome), 1, "the outcome is dropped");
    assert!(!table.cancel(pending));
    assert_eq!(table.pending_count(), 0);
}

#[test]
fn a_full_table_refuses_and_recovers() {
    for max in [1, 63, 64, 65, 300] {
        let table = PendingRequests::<()>::new(max);
        let keys: Vec<_> = (0..max).map(|_| table.register().unwrap()).collect();
        assert_eq!(table.pending_count(), max);
        assert_eq!(table.register(), Err(Unregistered::Full));
        assert!(keys.iter().all(|&key| table.cancel(key)));
        assert!((0..max).all(|_| table.register().is_ok()));
        assert_eq!(table.register(), Err(Unregistered::Full));
    }
    assert_eq!(
        PendingRequests::<()>::new(0).register(),
        Err(Unregistered::Full)
    );
}

#[test]
fn closing_settles_every_pending_request_and_refuses_new_ones() {
    let table = PendingRequests::new(200);
    let keys: Vec<_> = (0..150).map(|_| table.register().unwrap()).collect();
    table.complete(keys[0], "answer").unwrap();
    assert!(table.cancel(keys[1]));
    let (woken, waker) = Woken::new();
    assert!(
        table
            .poll(keys[2], &mut Context::from_waker(&waker))
            .is_pending()
    );
    table.close(|| "lost");
    table.close(|| "again");
    assert_eq!(woken.count(), 1);
    assert_eq!(table.pending_count(), 0);
    assert_eq!(table.register(), Err(Unregistered::Closed));
    assert_eq!(poll(&table, keys[0]), Poll::Ready(Some("answer")));
    assert_eq!(poll(&table, keys[1]), Poll::Ready(None));
    for &key in &keys[2..] {
        assert_eq!(poll(&table, key), Poll::Ready(Some("lost")));
    }
    assert_eq!(table.register(), Err(Unregistered::Closed));
}

#[test]
fn dropping_the_table_drops_outcomes_and_wakers() {
    let table = PendingRequests::new(9);
    let (outcome, (woken, waker)) = (Arc::new(()), Woken::new());
    let (settled, waiting) = (table.register().unwrap(), table.register().unwrap());
    table.complete(settled, outcome.clone()).unwrap();
    assert!(
        table
            .poll(waiting, &mut Context::from_waker(&waker))
            .is_pending()
    );
    drop(table);
    drop(waker);
    assert_eq!(
        (Arc::strong_count(&outcome), Arc::strong_count(&woken)),
        (1, 1)
    );
}

#[test]
fn a_parked_thread_can_wait() {
    let table = Arc::new(PendingRequests::new(9));
    let key = table.register().unwrap();
    let waiter = thread::spawn({
        let table = table.clone();
        move || {
            let waker = Waker::from(Arc::new(Unpark(thread::current())));
            loop {
                match table.poll(key, &mut Context::from_waker(&waker)) {
                    Poll::Ready(outcome) => return outcome,
                    Poll::Pending => thread::park(),
                }
            }
        }
    });
    thread::sleep(Duration::from_millis(5));
    table.complete(key, 7).unwrap();
    assert_eq!(waiter.join().unwrap(), Some(7));
}

struct Unpark(thread::Thread);

impl std::task::Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn a_table_has_no_more_slots_than_may_be() {
    let table = PendingRequests::<()>::new(usize::MAX);
    let taken = (0..=MAX_SLOTS).take_while(|_| table.register().is_ok());
    assert_eq!(taken.count(), MAX_SLOTS as usize);
}
