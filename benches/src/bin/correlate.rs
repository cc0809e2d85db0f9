//! The cost of correlating a request, compared with other designs. Answers are checked first. Contenders
//! take turns in short rounds, so that a busy machine slows all equally; figures are medians.
//!
//! `cargo run --release -p mcpbolt-benches --features tables --bin correlate`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that measures"
)]

use std::collections::HashMap;
use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use mcpbolt::correlate::{
    InFlight, IncomingKey, PendingRequests, RequestKey, TimerKey, TimerQueue,
};
use mcpbolt_benches::harness::ran;
use tokio::sync::oneshot;

/// Stands for an answer read from the wire.
type Answer = [u64; 4];

/// Requests that are pending while one is measured.
const IN_FLIGHT: usize = 64;
/// Operations in one timed run.
const RUN: u64 = 2_000;
const ROUNDS: usize = 301;

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// A table of pending requests, implemented by each design.
trait Table: Sync {
    const NAME: &'static str;
    /// The state that a waiting caller holds, including the wire id.
    type Waiter;
    fn new() -> Self;
    fn register(&self) -> Self::Waiter;
    fn id(waiter: &Self::Waiter) -> u64;
    fn complete(&self, id: u64, answer: Answer) -> bool;
    fn cancel(&self, waiter: Self::Waiter) -> bool;
    fn poll(&self, waiter: &mut Self::Waiter) -> Poll<Option<Answer>>;
}

struct Shared(PendingRequests<Answer>);

impl Table for Shared {
    const NAME: &'static str = "mcpbolt, shared";
    type Waiter = RequestKey;

    fn new() -> Self {
        Self(PendingRequests::new(1 << 16))
    }
    fn register(&self) -> RequestKey {
        self.0.register().unwrap()
    }
    fn id(waiter: &RequestKey) -> u64 {
        waiter.get()
    }
    fn complete(&self, id: u64, answer: Answer) -> bool {
        RequestKey::from_wire(id).is_some_and(|key| self.0.complete(key, answer).is_ok())
    }
    fn cancel(&self, waiter: RequestKey) -> bool {
        self.0.cancel(waiter)
    }
    fn poll(&self, waiter: &mut RequestKey) -> Poll<Option<Answer>> {
        self.0.poll(*waiter, &mut cx())
    }
}

/// The waiter for tables that keep a sender per request.
type Receiver = (u64, oneshot::Receiver<Answer>);

fn poll_receiver(waiter: &mut Receiver) -> Poll<Option<Answer>> {
    pin!(&mut waiter.1).poll(&mut cx()).map(Result::ok)
}

struct Locked {
    last: AtomicU64,
    senders: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
}

impl Table for Locked {
    const NAME: &'static str = "Mutex<HashMap> + oneshot";
    type Waiter = Receiver;

    fn new() -> Self {
        Self {
            last: AtomicU64::new(0),
            senders: Mutex::default(),
        }
    }
    fn register(&self) -> Receiver {
        let (sender, receiver) = oneshot::channel();
        let id = self.last.fetch_add(1, Relaxed);
        self.senders.lock().unwrap().insert(id, sender);
        (id, receiver)
    }
    fn id(waiter: &Receiver) -> u64 {
        waiter.0
    }
    fn complete(&self, id: u64, answer: Answer) -> bool {
        let sender = self.senders.lock().unwrap().remove(&id);
        sender.is_some_and(|sender| sender.send(answer).is_ok())
    }
    fn cancel(&self, waiter: Receiver) -> bool {
        self.senders.lock().unwrap().remove(&waiter.0).is_some()
    }
    fn poll(&self, waiter: &mut Receiver) -> Poll<Option<Answer>> {
        poll_receiver(waiter)
    }
}

struct Dash {
    last: AtomicU64,
    senders: DashMap<u64, oneshot::Sender<Answer>>,
}

impl Table for Dash {
    const NAME: &'static str = "DashMap + oneshot";
    type Waiter = Receiver;

    fn new() -> Self {
        Self {
            last: AtomicU64::new(0),
            senders: DashMap::new(),
        }
    }
    fn register(&self) -> Receiver {
        let (sender, receiver) = oneshot::channel();
        let id = self.last.fetch_add(1, Relaxed);
        self.senders.insert(id, sender);
        (id, receiver)
    }
    fn id(waiter: &Receiver) -> u64 {
        waiter.0
    }
    fn complete(&self, id: u64, answer: Answer) -> bool {
        let sender = self.senders.remove(&id);
        sender.is_some_and(|(_, sender)| sender.send(answer).is_ok())
    }
    fn cancel(&self, waiter: Receiver) -> bool {
        self.senders.remove(&waiter.0).is_some()
    }
    fn poll(&self, waiter: &mut Receiver) -> Poll<Option<Answer>> {
        poll_receiver(waiter)
    }
}

struct Sharded(sharded_slab::Slab<oneshot::Sender<Answer>>);

/// sharded-slab returns a key only when the value is in place, and `take` releases it.
impl Table for Sharded {
    const NAME: &'static str = "sharded-slab + oneshot";
    type Waiter = Receiver;

    fn new() -> Self {
        Self(sharded_slab::Slab::new())
    }
    fn register(&self) -> Receiver {
        let (sender, receiver) = oneshot::channel();
        (self.0.insert(sender).unwrap() as u64, receiver)
    }
    fn id(waiter: &Receiver) -> u64 {
        waiter.0
    }
    fn complete(&self, id: u64, answer: Answer) -> bool {
        let sender = self.0.take(id as usize);
        sender.is_some_and(|sender| sender.send(answer).is_ok())
    }
    fn cancel(&self, waiter: Receiver) -> bool {
        self.0.remove(waiter.0 as usize)
    }
    fn poll(&self, waiter: &mut Receiver) -> Poll<Option<Answer>> {
        poll_receiver(waiter)
    }
}

/// Checks the guarantees of a contender before it is timed.
fn check<T: Table>() {
    let table = T::new();
    let mut waiters: Vec<_> = (0..IN_FLIGHT).map(|_| table.register()).collect();
    for (n, waiter) in waiters.iter_mut().enumerate().rev() {
        assert!(table.poll(waiter).is_pending());
        assert!(table.complete(T::id(waiter), [n as u64; 4]), "{}", T::NAME);
    }
    for (n, mut waiter) in waiters.into_iter().enumerate() {
        assert_eq!(
            table.poll(&mut waiter),
            Poll::Ready(Some([n as u64; 4])),
            "{}",
            T::NAME
        );
        assert!(!table.complete(T::id(&waiter), [0; 4]), "a late answer");
    }
    let waiter = table.register();
    let id = T::id(&waiter);
    assert!(
        table.cancel(waiter) && !table.complete(id, [0; 4]),
        "{}",
        T::NAME
    );
}

struct Contender<'a> {
    name: &'static str,
    run: Box<dyn FnMut() -> Duration + 'a>,
}

/// Times [`RUN`] repetitions of `once`.
fn timed<'a>(name: &'static str, mut once: impl FnMut() + 'a) -> Contender<'a> {
    let run = move || {
        let start = Instant::now();
        (0..RUN).for_each(|_| once());
        start.elapsed()
    };
    Contender {
        name,
        run: Box::new(run),
    }
}

fn measure(what: &str, rounds: usize, mut contenders: Vec<Contender<'_>>) {
    let mut times = vec![Vec::with_capacity(rounds); contenders.len()];
    for _ in 0..rounds {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            times.push((contender.run)().as_nanos() as f64 / RUN as f64);
        }
    }
    println!("\n{what}");
    for (contender, times) in contenders.into_iter().zip(times) {
        report(contender.name, times);
    }
}

fn report(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let (least, median) = (times[0], times[times.len() / 2]);
    println!("  {name:<28} {median:>8.1} ns   (least {least:.1})");
}

fn full<'a, T: Table + 'a>() -> Contender<'a> {
    let table = T::new();
    let others: Vec<_> = (0..IN_FLIGHT).map(|_| table.register()).collect();
    timed(T::NAME, move || {
        black_box(&others);
        let mut waiter = table.register();
        table.complete(T::id(&waiter), black_box([7; 4]));
        _ = black_box(table.poll(&mut waiter));
    })
}

fn polled<'a, T: Table + 'a>() -> Contender<'a> {
    let table = T::new();
    let others: Vec<_> = (0..IN_FLIGHT).map(|_| table.register()).collect();
    timed(T::NAME, move || {
        black_box(&others);
        let mut waiter = table.register();
        _ = black_box(table.poll(&mut waiter));
        table.complete(T::id(&waiter), black_box([7; 4]));
        _ = black_box(table.poll(&mut waiter));
    })
}

fn cancelled<'a, T: Table + 'a>() -> Contender<'a> {
    let table = T::new();
    let others: Vec<_> = (0..IN_FLIGHT).map(|_| table.register()).collect();
    timed(T::NAME, move || {
        black_box(&others);
        let waiter = table.register();
        black_box(table.cancel(waiter));
    })
}

fn late<'a, T: Table + 'a>() -> Contender<'a> {
    let table = T::new();
    let waiter = table.register();
    let id = T::id(&waiter);
    table.cancel(waiter);
    timed(T::NAME, move || {
        black_box(table.complete(black_box(id), [7; 4]));
    })
}

/// Two threads register, complete and take on one table; the figure is the time of one operation on one
/// thread.
fn on_two_threads<'a, T: Table + 'a>() -> Contender<'a> {
    let table = T::new();
    let both = move || {
        let start = Instant::now();
        for _ in 0..RUN {
            let mut waiter = table.register();
            table.complete(T::id(&waiter), black_box([7; 4]));
            _ = black_box(table.poll(&mut waiter));
        }
        start.elapsed()
    };
    let once = move || {
        thread::scope(|scope| {
            let other = scope.spawn(&both);
            let mine = both();
            (mine + other.join().unwrap()) / 2
        })
    };
    once();
    Contender {
        name: T::NAME,
        run: Box::new(once),
    }
}

fn incoming<'a>() -> Contender<'a> {
    let mut table = InFlight::<u64, u64>::new(1 << 13);
    (0..IN_FLIGHT as u64).for_each(|id| _ = table.insert(id, id));
    let mut next = IN_FLIGHT as u64;
    timed("mcpbolt, incoming", move || {
        next += 1;
        let key: IncomingKey = table.insert(black_box(next), next).unwrap();
        black_box(table.find(&next));
        black_box(table.remove(key));
    })
}

/// A million live timers with deadlines within a minute; the time per timer of each step.
fn timers() {
    const LIVE: u64 = 1_000_000;
    const STEPS: [&str; 4] = ["insert", "cancel", "insert and cancel among them", "fire"];
    let mut start = Instant::now();
    let mut queue = TimerQueue::<RequestKey>::default();
    let key = RequestKey::from_wire(1).unwrap();
    let mut seed = 1u64;
    let mut after = move || {
        seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        Duration::from_millis((seed >> 33) % 60_000)
    };
    let mut timers: Vec<TimerKey> = Vec::with_capacity(LIVE as usize);
    let mut times = [(); STEPS.len()].map(|()| Vec::new());
    let zero = start;
    let mut note = |step: usize, begin: Duration| {
        times[step].push((ran(zero) - begin).as_nanos() as f64 / LIVE as f64);
    };
    for _ in 0..9 {
        for refill in [false, true] {
            let begin = ran(zero);
            timers.extend((0..LIVE).map(|_| queue.insert(start + after(), key).unwrap()));
            note(0, begin);
            assert_eq!(queue.len(), LIVE as usize);
            if !refill {
                let begin = ran(zero);
                assert!(timers.drain(..).all(|timer| queue.cancel(timer).is_some()));
                note(1, begin);
            }
        }
        timers.clear();
        let begin = ran(zero);
        for _ in 0..LIVE {
            let timer = queue.insert(start + Duration::from_secs(60), key).unwrap();
            assert!(queue.cancel(timer).is_some());
        }
        note(2, begin);
        let begin = ran(zero);
        let mut fired = 0;
        // As a driver would: polled when a timer is due.
        while let Some(next) = queue.next_deadline() {
            while queue.poll(next).is_some() {
                fired += 1;
            }
            start = next;
        }
        note(3, begin);
        assert_eq!(fired, LIVE);
    }
    println!("\na million timers, deadlines within a minute");
    for (step, times) in STEPS.iter().zip(times) {
        report(step, times);
    }
}

macro_rules! each {
    ($measure:ident) => {
        vec![
            $measure::<Shared>(),
            $measure::<Locked>(),
            $measure::<Dash>(),
            $measure::<Sharded>(),
        ]
    };
}

fn main() {
    check::<Shared>();
    check::<Locked>();
    check::<Dash>();
    check::<Sharded>();

    measure("register + complete + take", ROUNDS, each!(full));
    measure("register + wait + complete + take", ROUNDS, each!(polled));
    measure("register + cancel", ROUNDS, each!(cancelled));
    measure("late answer", ROUNDS, each!(late));
    measure(
        "register + complete + take on two threads at once",
        51,
        each!(on_two_threads),
    );
    measure(
        "insert + find + remove an integer id",
        ROUNDS,
        vec![incoming()],
    );
    timers();
}
