//! Loom models of simultaneous events on one pending request, and of cancel tokens.
//!
//! Loom tries each order of the steps. It reports a lost wake-up as a deadlock, and an outcome that is
//! never dropped as a leak.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p mcpbolt --lib
//! --no-default-features --release correlate::tests::loom`.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

use loom::model::Builder;
use loom::sync::{Arc, Notify};
use loom::thread;

use super::super::{CancelToken, PendingRequests, RequestKey, Unregistered};

type Table = PendingRequests<Arc<Outcome>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Answer,
    Expired,
    Lost,
}

/// An external event that ends a pending request.
#[derive(Clone, Copy, Debug)]
enum Event {
    Answer,
    Expire,
    Close,
}

impl Event {
    const ALL: [Self; 3] = [Self::Answer, Self::Expire, Self::Close];

    /// The outcome that the event won, if known.
    fn happen(self, table: &Table, key: RequestKey) -> Option<Outcome> {
        let outcome = match self {
            Self::Answer => Outcome::Answer,
            Self::Expire => Outcome::Expired,
            Self::Close => {
                table.close(|| Arc::new(Outcome::Lost));
                return None;
            }
        };
        table
            .complete(key, Arc::new(outcome))
            .ok()
            .map(|()| outcome)
    }
}

/// The action of the waiter in the meantime.
#[derive(Clone, Copy, Debug)]
enum Waiter {
    Waits,
    Leaves,
    PollsAndLeaves,
}

impl Waiter {
    const ALL: [Self; 3] = [Self::Waits, Self::Leaves, Self::PollsAndLeaves];

    /// The outcome it got, or whether it has to notify the peer.
    fn act(self, table: &Table, key: RequestKey) -> Result<Outcome, bool> {
        match self {
            Self::Waits => Ok(*wait(table, key).expect("its own request")),
            Self::Leaves => Err(table.cancel(key)),
            Self::PollsAndLeaves => match poll(table, key, Waker::noop()) {
                Poll::Ready(outcome) => Ok(*outcome.expect("its own request")),
                Poll::Pending => Err(table.cancel(key)),
            },
        }
    }
}

struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.notify();
    }
}

fn poll(table: &Table, key: RequestKey, waker: &Waker) -> Poll<Option<Arc<Outcome>>> {
    table.poll(key, &mut Context::from_waker(waker))
}

fn wait(table: &Table, key: RequestKey) -> Option<Arc<Outcome>> {
    wait_for(|cx| table.poll(key, cx))
}

/// Blocks until woken, so that a lost wake-up shows as a deadlock.
fn wait_for<R>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<R>) -> R {
    let bell = std::sync::Arc::new(Bell(Notify::new()));
    let waker = Waker::from(bell.clone());
    loop {
        match poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => {
                thread::yield_now();
                bell.0.wait();
            }
        }
    }
}

fn explore(threads: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    // Two threads are explored in full; more threads with up to three preemptions, which finds all
    // but contrived faults (Musuvathi and Qadeer, PLDI 2007).
    builder.preemption_bound = (threads > 2).then_some(3);
    builder.check(model);
}

/// A table of `slots` slots that are already allocated.
fn table(slots: usize) -> Arc<Table> {
    let table = PendingRequests::new(slots);
    let keys: Vec<_> = (0..slots).map(|_| table.register().unwrap()).collect();
    assert!(keys.iter().rev().all(|&key| table.cancel(key)));
    Arc::new(table)
}

/// One pending request with its waiter on this thread and each event on a thread of its own; the
/// slot is then reused at once.
fn one_outcome(waiter: Waiter, events: &'static [Event]) {
    explore(1 + events.len(), move || {
        let table = table(1);
        let key = table.register().unwrap();
        let start = |&event: &Event| {
            let table = table.clone();
            thread::spawn(move || event.happen(&table, key))
        };
        let threads: Vec<_> = events.iter().map(start).collect();
        let got = waiter.act(&table, key);
        let reused = table.register();
        let won: Vec<_> = threads
            .into_iter()
            .filter_map(|t| t.join().unwrap())
            .collect();
        let closed = events.iter().any(|event| matches!(event, Event::Close));

        match got {
            Ok(Outcome::Lost) => assert!(closed && won.is_empty(), "{won:?}"),
            Ok(outcome) => assert_eq!(won, [outcome]),
            Err(true) => assert_eq!(won, []),
            Err(false) => assert!(won.len() == 1 || closed && won.is_empty(), "{won:?}"),
        }
        assert!(
            table.complete(key, Arc::new(Outcome::Answer)).is_err(),
            "the key is void"
        );
        match reused {
            Ok(next) if closed => assert_eq!(wait(&table, next).as_deref(), Some(&Outcome::Lost)),
            Ok(next) => {
                assert_ne!(next, key);
                assert!(
                    poll(&table, next, Waker::noop()).is_pending(),
                    "not the old outcome"
                );
                assert!(table.complete(next, Arc::new(Outcome::Answer)).is_ok());
                assert_eq!(wait(&table, next).as_deref(), Some(&Outcome::Answer));
            }
            Err(Unregistered::Closed) => assert!(closed),
            Err(Unregistered::Full) => panic!("the waiter has freed the slot"),
        }
    });
}

#[test]
fn one_event_against_each_waiter() {
    for waiter in Waiter::ALL {
        for events in [&[Event::Answer], &[Event::Expire], &[Event::Close]] {
            one_outcome(waiter, events);
        }
    }
}

// An answer and an expiry are the same step with different outcomes, so that pair also covers two
// answers and two expiries. One test each, because tests run in parallel.

#[test]
fn two_outcomes_against_a_waiter_that_waits() {
    one_outcome(Waiter::Waits, &[Event::Answer, Event::Expire]);
}

#[test]
fn an_answer_and_a_loss_against_a_waiter_that_waits() {
    one_outcome(Waiter::Waits, &[Event::Answer, Event::Close]);
}

#[test]
fn an_expiry_and_a_loss_against_a_waiter_that_waits() {
    one_outcome(Waiter::Waits, &[Event::Expire, Event::Close]);
}

#[test]
fn two_losses_against_a_waiter_that_waits() {
    one_outcome(Waiter::Waits, &[Event::Close, Event::Close]);
}

#[test]
fn two_events_against_a_waiter_that_leaves() {
    two_events(Waiter::Leaves);
}

#[test]
fn two_events_against_a_waiter_that_polls_and_leaves() {
    two_events(Waiter::PollsAndLeaves);
}

fn two_events(waiter: Waiter) {
    use Event::{Answer, Close, Expire};
    for events in [
        &[Answer, Expire],
        &[Answer, Close],
        &[Expire, Close],
        &[Close, Close],
    ] {
        one_outcome(waiter, events);
    }
}

#[test]
fn registering_races_with_every_event_on_the_key_it_is_about_to_get() {
    for event in Event::ALL {
        explore(2, move || {
            let table = table(1);
            let key = table.register().unwrap();
            assert!(table.cancel(key));
            // A forged answer that guesses the next id.
            let next = RequestKey::from_wire(key.get() + (1 << 20)).unwrap();
            let other = thread::spawn({
                let table = table.clone();
                move || event.happen(&table, next)
            });
            let registered = table.register();
            let mine = registered.map(|key| {
                assert_eq!(key, next);
                _ = table.complete(key, Arc::new(Outcome::Expired));
                *wait(&table, key).unwrap()
            });
            let won = other.join().unwrap();
            match (event, mine) {
                (Event::Close, Ok(mine)) => assert_ne!(mine, Outcome::Answer),
                (Event::Close, Err(error)) => assert_eq!(error, Unregistered::Closed),
                (_, mine) => assert_eq!(won.unwrap_or(Outcome::Expired), mine.unwrap()),
            }
        });
    }
}

#[test]
fn two_threads_register_and_leave_without_sharing_a_slot() {
    for slots in [1, 2] {
        explore(2, move || {
            let table = table(slots);
            let use_one = move |table: &Table| match table.register() {
                Ok(key) => {
                    assert!(table.complete(key, Arc::new(Outcome::Answer)).is_ok());
                    assert_eq!(wait(table, key).as_deref(), Some(&Outcome::Answer));
                    Some(key)
                }
                Err(error) => {
                    assert_eq!((error, slots), (Unregistered::Full, 1));
                    None
                }
            };
            let other = thread::spawn({
                let table = table.clone();
                move || use_one(&table)
            });
            let mine = use_one(&table);
            let other = other.join().unwrap();
            assert!(mine != other, "{mine:?} twice");
            assert_eq!(
                (0..slots).filter_map(|_| table.register().ok()).count(),
                slots
            );
        });
    }
}

#[test]
fn a_waiter_that_changes_its_waker_while_the_answer_comes_is_woken() {
    explore(2, || {
        let table = table(1);
        let key = table.register().unwrap();
        assert!(poll(&table, key, Waker::noop()).is_pending());
        let other = thread::spawn({
            let table = table.clone();
            move || Event::Answer.happen(&table, key)
        });
        assert_eq!(wait(&table, key).as_deref(), Some(&Outcome::Answer));
        assert_eq!(other.join().unwrap(), Some(Outcome::Answer));
    });
}

#[test]
fn two_that_leave_while_the_connection_is_lost_free_the_slot_once() {
    for lost in [false, true] {
        explore(3, move || {
            let table = table(1);
            let key = table.register().unwrap();
            let other = thread::spawn({
                let table = table.clone();
                move || table.cancel(key)
            });
            let close = lost.then(|| {
                let table = table.clone();
                thread::spawn(move || Event::Close.happen(&table, key))
            });
            let mine = table.cancel(key);
            let theirs = other.join().unwrap();
            assert!(!(mine && theirs), "one of them tells the peer");
            assert!(lost || mine || theirs);
            if let Some(close) = close {
                close.join().unwrap();
                assert_eq!(table.register(), Err(Unregistered::Closed));
            } else {
                assert!(table.register().is_ok() && table.register().is_err());
            }
        });
    }
}

#[test]
fn a_token_wakes_whoever_waits_while_it_is_cancelled() {
    explore(2, || {
        let token = CancelToken::new();
        let other = thread::spawn({
            let token = token.clone();
            move || token.cancel(Some("other"))
        });
        let mut cancelled = pin!(token.cancelled());
        wait_for(|cx| cancelled.as_mut().poll(cx));
        assert!(token.is_cancelled());
        assert!(other.join().unwrap());
    });
}

#[test]
fn a_child_made_while_its_parent_is_cancelled_is_cancelled() {
    explore(2, || {
        let token = CancelToken::new();
        let other = thread::spawn({
            let token = token.clone();
            move || token.cancel(Some("all"))
        });
        let child = token.child();
        let mut cancelled = pin!(child.cancelled());
        wait_for(|cx| cancelled.as_mut().poll(cx));
        assert_eq!(child.reason(), Some("all"));
        other.join().unwrap();
    });
}

#[test]
fn of_two_reasons_one_stands() {
    explore(2, || {
        let token = CancelToken::new();
        let other = thread::spawn({
            let token = token.clone();
            move || token.cancel(Some("theirs"))
        });
        let mine = token.cancel(Some("mine"));
        let theirs = other.join().unwrap();
        assert!(mine != theirs);
        assert_eq!(token.reason(), Some(if mine { "mine" } else { "theirs" }));
    });
}
