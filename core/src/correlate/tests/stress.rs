//! Real threads on few slots: every request gets one outcome, its own, and nothing is leaked.
//!
//! `MCPBOLT_STRESS` sets the number of requests.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI64, AtomicU64};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use super::super::{PendingRequests, RequestKey, Unregistered};
use super::support::{Random, rounds};

const WAITERS: usize = 3;
const SETTLERS: usize = 2;
/// Fewer slots than threads need, so that every slot is reused at once.
const SLOTS: usize = 3;

fn requests() -> usize {
    let given = std::env::var("MCPBOLT_STRESS");
    given.map_or_else(|_| rounds(200_000), |count| count.parse().unwrap())
}

/// An outcome that records its request (that of a lost connection fits any), and counts those
/// alive.
struct Outcome {
    of: Option<RequestKey>,
    alive: Arc<AtomicI64>,
}

impl Outcome {
    fn new(of: Option<RequestKey>, alive: &Arc<AtomicI64>) -> Self {
        alive.fetch_add(1, SeqCst);
        Self {
            of,
            alive: alive.clone(),
        }
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, SeqCst);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    registered: u64,
    taken: u64,
    left_pending: u64,
    left_settled: u64,
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

struct Scene {
    table: PendingRequests<Outcome>,
    alive: Arc<AtomicI64>,
    /// The key each waiter used last, as a target for the settlers; `DONE` when the waiter has
    /// finished.
    aims: [AtomicU64; WAITERS],
}

const DONE: u64 = u64::MAX;

impl Scene {
    fn wait_or_leave(&self, waiter: usize, count: usize, mut random: Random) -> Tally {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut tally = Tally::default();
        while (tally.registered as usize) < count {
            let key = match self.table.register() {
                Ok(key) => key,
                Err(Unregistered::Full) => {
                    thread::yield_now();
                    continue;
                }
                Err(Unregistered::Closed) => break,
            };
            tally.registered += 1;
            self.aims[waiter].store(key.get(), Relaxed);
            // Leaves after that many polls, or never.
            let patience = [0, 1, 2, usize::MAX][random.below(4)];
            let mut polls = 0;
            let outcome = loop {
                if polls == patience {
                    break None;
                }
                polls += 1;
                match self.table.poll(key, &mut Context::from_waker(&waker)) {
                    Poll::Ready(outcome) => break Some(outcome.expect("its own request")),
                    Poll::Pending if patience == usize::MAX => thread::park(),
                    Poll::Pending => thread::yield_now(),
                }
            };
            match outcome {
                Some(outcome) => {
                    assert!(
                        outcome.of.is_none_or(|of| of == key),
                        "somebody else's outcome"
                    );
                    tally.taken += 1;
                }
                None if self.table.cancel(key) => tally.left_pending += 1,
                None => tally.left_settled += 1,
            }
        }
        self.aims[waiter].store(DONE, Relaxed);
        tally
    }

    /// Settles requests, some of them too late; returns how many it won.
    fn settle(&self, mut random: Random) -> u64 {
        let mut won = 0;
        let mut late = None;
        loop {
            let aims = self.aims.each_ref().map(|aim| aim.load(Relaxed));
            if aims.iter().all(|&aim| aim == DONE) {
                return won;
            }
            let Some(key) = aims
                .get(random.below(WAITERS))
                .copied()
                .and_then(RequestKey::from_wire)
            else {
                thread::yield_now();
                continue;
            };
            let key = if random.below(4) == 0 {
                late.unwrap_or(key)
            } else {
                key
            };
            late = Some(key);
            let outcome = Outcome::new(Some(key), &self.alive);
            match self.table.complete(key, outcome) {
                Ok(()) => won += 1,
                Err(_late) => thread::yield_now(),
            }
        }
    }
}

/// Sums over all waiters, and the number of requests that the settlers won.
fn run(count: usize, random: &mut Random, close: bool) -> (Tally, u64) {
    let scene = Scene {
        table: PendingRequests::new(SLOTS),
        alive: Arc::default(),
        aims: [const { AtomicU64::new(0) }; WAITERS],
    };
    let pause = random.below(3_000);
    let mut seed = || Random::from_seed(random.next());
    let sums = thread::scope(|scope| {
        let scene = &scene;
        let waiters = [(); WAITERS]
            .map(|()| seed())
            .into_iter()
            .enumerate()
            .map(|(n, random)| {
                scope.spawn(move || scene.wait_or_leave(n, count / WAITERS, random))
            });
        let waiters: Vec<_> = waiters.collect();
        let settlers = [(); SETTLERS]
            .map(|()| seed())
            .map(|random| scope.spawn(move || scene.settle(random)));
        if close {
            (0..pause).for_each(|_| std::hint::spin_loop());
            scene.table.close(|| Outcome::new(None, &scene.alive));
        }
        let mut sum = Tally::default();
        for tally in waiters.into_iter().map(|waiter| waiter.join().unwrap()) {
            sum.registered += tally.registered;
            sum.taken += tally.taken;
            sum.left_pending += tally.left_pending;
            sum.left_settled += tally.left_settled;
        }
        (
            sum,
            settlers.map(|settler| settler.join().unwrap()).iter().sum(),
        )
    });
    assert_eq!(scene.table.pending_count(), 0);
    drop(scene.table);
    assert_eq!(scene.alive.load(SeqCst), 0, "outcomes leaked");
    sums
}

#[test]
fn every_request_has_one_outcome_and_it_is_its_own() {
    let count = requests();
    let (sum, won) = run(count, &mut Random::new(), false);
    println!("{sum:?}, settlers won {won}");
    assert_eq!(sum.registered, (count / WAITERS * WAITERS) as u64);
    assert_eq!(
        sum.registered,
        sum.taken + sum.left_pending + sum.left_settled
    );
    assert_eq!(won, sum.taken + sum.left_settled);
}

#[test]
fn closing_at_any_moment_leaves_nobody_waiting() {
    let mut random = Random::new();
    for _ in 0..requests() / 200 {
        let (sum, won) = run(usize::MAX, &mut random, true);
        assert_eq!(
            sum.registered,
            sum.taken + sum.left_pending + sum.left_settled
        );
        assert!(won <= sum.taken + sum.left_settled);
    }
}
