//! Fair turns: which connections run first when more is ready than a server's network threads can do.
//!
//! ```text
//!   a task is ready ─▶ no task waits, and less than CALM was used in this round ─▶ it runs
//!                   └▶ otherwise it waits ─▶ each round: one after the other, until SLICE is used;
//!                                            the one that has used least is first
//! ```
//!
//! When SLICE is used up, another round begins as soon as every task that is ready by then has run. If all
//! of them together take less than CALM, none of them waits. Until a task waits, only one poll in [`SAMPLE`] is
//! measured. From then until the current half-life is over, every poll is measured, and tasks wait as soon
//! as SLICE is used up.
//!
//! Every task of a connection is wrapped in [`Fair`], which measures how long its polls take and charges
//! it to the connection and to its [`RequestSource`]. The next task that runs belongs to the source that has
//! used least, and among its connections to the one that has used least. Used time
//! counts half after each second. A new connection begins as if it had used [`NEWCOMER`], a new source
//! [`STRANGER`]: a connection in use comes before one that somebody opens anew all the time.
//!
//! A poll is not interrupted, so work that takes long yields between its parts.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;

use super::least_used::{LeastUsed, Meter, Metered};
use crate::connection::{BySource, RequestSource};
use crate::sync::lock;

/// How long the tasks of a round run.
const SLICE: Duration = Duration::from_millis(1);
/// How long the tasks of a round run before one has to wait for the first time. That is several slices,
/// since one poll in [`SAMPLE`] tells little of how long the others took.
const CALM: Duration = Duration::from_millis(4);
/// Time that counts as used when a connection begins.
const NEWCOMER: Duration = Duration::from_millis(10);
/// Time that counts as used when the first connection of a source begins.
const STRANGER: Duration = Duration::from_millis(50);
/// While no task waits, one poll in this many is measured, and its time is charged this many times. The
/// number is odd because most calls take four polls: an even one would always measure the same of the four.
const SAMPLE: u32 = 9;
/// After this time, used time counts half.
const HALF_LIFE: Duration = Duration::from_secs(1);

/// The turns of one server.
#[derive(Debug)]
pub struct Turns {
    began: Instant,
    /// Nanoseconds used in this round.
    used: AtomicU64,
    /// How many tasks wait, those included that are gone since; changes while `state` is locked.
    waiting: AtomicUsize,
    /// Whether a task has waited since this half-life began; changes while `state` is locked.
    is_crowded: AtomicBool,
    /// How many tasks have their turn at a time: one a thread.
    lanes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The sources with tasks that wait.
    queue: LeastUsed<Arc<Group>>,
    /// The half-life of this round.
    now: u64,
    /// Whether a task begins the rounds.
    has_rounds: bool,
    sources: BySource<Group>,
}

/// The connections of one source.
#[derive(Debug)]
struct Group {
    meter: Meter,
    /// The connections with tasks that wait. Locked while the state is.
    queue: Mutex<LeastUsed<Arc<Line>>>,
}

/// The tasks of one connection.
#[derive(Debug)]
struct Line {
    meter: Meter,
    /// The tasks that wait, the first one first. Locked while the state is.
    queue: Mutex<VecDeque<Arc<Ticket>>>,
}

impl Metered for Arc<Group> {
    fn meter(&self) -> &Meter {
        &self.meter
    }
}

impl Metered for Arc<Line> {
    fn meter(&self) -> &Meter {
        &self.meter
    }
}

/// One connection, with all its tasks.
#[derive(Debug)]
pub struct Flow {
    turns: Arc<Turns>,
    source: Arc<Group>,
    own: Arc<Line>,
}

/// One task that waits for its turn.
#[derive(Debug, Default)]
struct Ticket {
    has_turn: AtomicBool,
    /// None when the task has its turn or is gone.
    waker: Mutex<Option<Waker>>,
}

impl Ticket {
    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        lock(&self.waker)
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Turns {
    /// Turns for that many threads.
    pub fn new(lanes: usize) -> Arc<Self> {
        Arc::new(Self {
            lanes,
            began: Instant::now(),
            used: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            is_crowded: AtomicBool::new(false),
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Another connection of that source.
    pub fn flow(self: &Arc<Self>, source: &RequestSource) -> Arc<Flow> {
        let now = self.half_lives(Instant::now());
        let stranger = || Group {
            meter: Meter::new(nanos(STRANGER), now),
            queue: Mutex::default(),
        };
        let source = self.state().sources.get_or_insert_with(source, stranger);
        Arc::new(Flow {
            turns: self.clone(),
            source,
            own: Arc::new(Line {
                meter: Meter::new(nanos(NEWCOMER), now),
                queue: Mutex::default(),
            }),
        })
    }

    /// How many half-lives these turns have lasted by then.
    fn half_lives(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.began).as_secs() / HALF_LIFE.as_secs()
    }

    /// Whether a task may run without waiting.
    fn is_free(&self) -> bool {
        let most = if self.is_crowded() { SLICE } else { CALM };
        self.waiting.load(Relaxed) == 0 && self.used.load(Relaxed) < nanos(most)
    }

    fn is_crowded(&self) -> bool {
        self.is_crowded.load(Relaxed)
    }

    fn wait(self: &Arc<Self>, flow: &Flow, ticket: Arc<Ticket>) {
        let mut state = self.state();
        let now = state.now;
        self.is_crowded.store(true, Relaxed);
        let mut tasks = lock(&flow.own.queue);
        tasks.push_back(ticket);
        if tasks.len() == 1 {
            let mut connections = lock(&flow.source.queue);
            if connections.is_empty() {
                state.queue.push(flow.source.clone(), now);
            }
            connections.push(flow.own.clone(), now);
        }
        drop(tasks);
        self.waiting.fetch_add(1, Relaxed);
        self.have_rounds(state);
    }

    /// Begins rounds, unless they have begun.
    fn have_rounds(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if !std::mem::replace(&mut state.has_rounds, true) {
            drop(state);
            tokio::spawn(rounds(Arc::downgrade(self)));
        }
    }

    /// Adds what a task used to this round.
    fn add(self: &Arc<Self>, took: u64) {
        let before = self.used.fetch_add(took, Relaxed);
        if before < nanos(SLICE) && before + took >= nanos(SLICE) {
            self.have_rounds(self.state());
        }
    }

    /// Takes out the next task that waits.
    fn next(&self) -> Option<Arc<Ticket>> {
        let mut state = self.state();
        let now = state.now;
        let source = state.queue.pop(now)?;
        let mut connections = lock(&source.queue);
        let connection = connections.pop(now)?;
        let mut tasks = lock(&connection.queue);
        let task = tasks.pop_front();
        if !tasks.is_empty() {
            connections.push(connection.clone(), now);
        }
        if !connections.is_empty() {
            state.queue.push(source.clone(), now);
        }
        self.waiting.fetch_sub(1, Relaxed);
        task
    }

    /// Begins another round; `false` when no task waits.
    fn next_round(&self) -> bool {
        let mut state = self.state();
        // Under the lock, so that whoever uses up the next slice finds whether rounds go on.
        self.used.store(0, Relaxed);
        let now = self.half_lives(Instant::now());
        if std::mem::replace(&mut state.now, now) != now {
            self.is_crowded.store(!state.queue.is_empty(), Relaxed);
        }
        state.has_rounds = !state.queue.is_empty();
        state.has_rounds
    }

    /// Gives the next task that waits its turn, unless the round is over.
    fn hand_on(&self) {
        while self.used.load(Relaxed) < nanos(SLICE) {
            let Some(next) = self.next() else {
                return;
            };
            next.has_turn.store(true, Relaxed);
            let waker = next.waker().take();
            if let Some(waker) = waker {
                waker.wake();
                return;
            }
        }
    }
}

/// Begins rounds for as long as a task waits.
async fn rounds(turns: Weak<Turns>) {
    loop {
        // Every task that is ready has run, or waits, before this goes on.
        tokio::task::yield_now().await;
        let Some(turns) = turns.upgrade() else {
            return;
        };
        if !turns.next_round() {
            return;
        }
        for _ in 0..turns.lanes {
            turns.hand_on();
        }
    }
}

thread_local! {
    /// The connection whose task this thread runs.
    static CURRENT: Cell<Option<Arc<Flow>>> = const { Cell::new(None) };
    /// How many polls of this thread are not measured before the next one is.
    static UNMEASURED: Cell<u32> = const { Cell::new(0) };
}

/// Keeps a flow in [`CURRENT`] until this is dropped, also by a panic.
struct Current<'a> {
    own: &'a mut Option<Arc<Flow>>,
    before: Option<Arc<Flow>>,
}

impl<'a> Current<'a> {
    fn enter(own: &'a mut Option<Arc<Flow>>) -> Self {
        let before = CURRENT.replace(own.take());
        Self { own, before }
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        *self.own = CURRENT.replace(self.before.take());
    }
}

pin_project! {
    /// A task of a connection, which runs when it has its turn.
    pub struct Fair<F> {
        // None while the task runs: then [`CURRENT`] has it.
        flow: Option<Arc<Flow>>,
        wait: Wait,
        #[pin]
        work: F,
    }
}

/// The ticket of a task that waits.
struct Wait(Option<(Arc<Turns>, Arc<Ticket>)>);

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some((turns, ticket)) = &self.0 {
            let waits = ticket.waker().take().is_some();
            if !waits {
                // It was given a turn that it does not take.
                turns.hand_on();
            }
        }
    }
}

/// Why a task runs now, or does not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runs {
    Freely,
    InTurn,
    Later,
}

impl Wait {
    /// Whether the task may run; otherwise it is woken when it may.
    fn ask(&mut self, flow: &Arc<Flow>, cx: &mut Context<'_>) -> Runs {
        let Some((_, ticket)) = &self.0 else {
            if flow.turns.is_free() {
                return Runs::Freely;
            }
            let ticket = Arc::new(Ticket::default());
            *ticket.waker() = Some(cx.waker().clone());
            self.0 = Some((flow.turns.clone(), ticket.clone()));
            flow.turns.wait(flow, ticket);
            return Runs::Later;
        };
        let mut waker = ticket.waker();
        if let Some(waker) = &mut *waker {
            waker.clone_from(cx.waker());
        }
        if !ticket.has_turn.load(Relaxed) {
            return Runs::Later;
        }
        drop(waker);
        self.0 = None;
        Runs::InTurn
    }
}

impl Flow {
    /// Wraps `work` as a task of this connection.
    pub fn task<F: Future>(self: &Arc<Self>, work: F) -> Fair<F> {
        Fair {
            flow: Some(self.clone()),
            wait: Wait(None),
            work,
        }
    }

    /// How many polls the next one counts for, if it is measured.
    fn measures(&self, runs: Runs) -> Option<u32> {
        if runs == Runs::InTurn || self.turns.is_crowded() {
            return Some(1);
        }
        let left = UNMEASURED.get();
        UNMEASURED.set(left.checked_sub(1).unwrap_or(SAMPLE - 1));
        (left == 0).then_some(SAMPLE)
    }

    /// Charges so many polls, of which one lasted since `begin`.
    fn charge(&self, polls: u32, begin: Instant) {
        let end = Instant::now();
        let (took, now) = (nanos((end - begin) * polls), self.turns.half_lives(end));
        self.turns.add(took);
        self.source.meter.add(took, now);
        self.own.meter.add(took, now);
    }
}

impl<F: Future> Future for Fair<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let runs = match this.flow {
            Some(flow) => this.wait.ask(flow, cx),
            None => Runs::Freely,
        };
        if runs == Runs::Later {
            return Poll::Pending;
        }
        let polls = this.flow.as_ref().and_then(|flow| flow.measures(runs));
        let begin = polls.map(|polls| (polls, Instant::now()));
        let current = Current::enter(this.flow);
        let outcome = this.work.poll(cx);
        drop(current);
        let Some(flow) = this.flow else {
            return outcome;
        };
        if let Some((polls, begin)) = begin {
            flow.charge(polls, begin);
        }
        if runs == Runs::InTurn {
            flow.turns.hand_on();
        }
        outcome
    }
}

/// Spawns a task that belongs to the connection whose task this thread runs, if it runs one.
pub fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    let current = CURRENT.take();
    CURRENT.set(current.clone());
    match current {
        Some(flow) => drop(tokio::spawn(flow.task(work))),
        None => drop(tokio::spawn(work)),
    }
}

/// Makes hyper spawn its tasks as tasks of the connection that it serves.
#[derive(Clone, Debug)]
pub struct FairExecutor;

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for FairExecutor {
    fn execute(&self, work: F) {
        spawn(work);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use tokio::runtime::Builder;
    use tokio::task::{JoinSet, yield_now};
    use tokio::time::sleep;

    use super::*;

    fn source(last: u8) -> RequestSource {
        RequestSource::of_address([127, 0, 0, last].into())
    }

    /// Keeps the thread for so long.
    fn work(length: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < length {
            std::hint::spin_loop();
        }
    }

    /// How many turns greedy tasks take for one of a modest task.
    fn greedy_turns(greedy: u8, modest: u8, has_begun: bool) -> usize {
        const CALLS: usize = 20;
        let runtime = Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async move {
            let turns = Turns::new(1);
            let count = Arc::new(AtomicUsize::new(0));
            let modest = turns.flow(&source(modest));
            if has_begun {
                // Its debt is forgotten after a while.
                modest.own.meter.forget();
            }
            let mut tasks = JoinSet::new();
            for _ in 0..400 {
                let count = count.clone();
                tasks.spawn(turns.flow(&source(greedy)).task(async move {
                    loop {
                        count.fetch_add(1, Relaxed);
                        work(Duration::from_micros(100));
                        yield_now().await;
                    }
                }));
            }
            let counted = count.clone();
            let served = tokio::spawn(modest.task(async move {
                for _ in 0..CALLS {
                    sleep(Duration::from_millis(2)).await;
                }
                counted.load(Relaxed)
            }));
            let taken = served.await.expect("no panic");
            drop(tasks);
            taken / CALLS
        })
    }

    #[test]
    fn a_modest_source_does_not_wait_for_a_greedy_one() {
        // Without turns each call waits for 400.
        let taken = greedy_turns(1, 2, false);
        assert!(taken < 200, "{taken}");
    }

    #[test]
    fn a_connection_in_use_does_not_wait_for_new_ones_of_its_source() {
        let taken = greedy_turns(1, 1, true);
        assert!(taken < 200, "{taken}");
    }

    #[test]
    fn one_poll_of_many_is_measured_unless_tasks_wait() {
        let runtime = Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(async {
            let turns = Turns::new(1);
            let flow = turns.flow(&source(1));
            let mut task = Box::pin(flow.task(poll_fn(|_| {
                work(Duration::from_micros(10));
                Poll::<()>::Pending
            })));
            let mut measured = |polls: u32| {
                let is_measured = |_: &u32| {
                    let before = flow.own.meter.read(0);
                    let mut context = Context::from_waker(Waker::noop());
                    assert!(task.as_mut().poll(&mut context).is_pending());
                    flow.own.meter.read(0) != before
                };
                (0..polls).filter(is_measured).count()
            };
            assert_eq!(measured(3 * SAMPLE), 3);
            turns.is_crowded.store(true, Relaxed);
            assert_eq!(measured(5), 5);
        });
    }

    #[test]
    fn tasks_wait_sooner_for_the_rest_of_a_half_life_in_which_one_waited() {
        let turns = Turns::new(1);
        turns.used.store(nanos(SLICE), Relaxed);
        assert!(turns.is_free());
        turns.is_crowded.store(true, Relaxed);
        assert!(!turns.is_free());
        assert!(!turns.next_round() && turns.is_crowded());
        turns.state().now += 1;
        assert!(!turns.next_round() && !turns.is_crowded());
    }

    #[test]
    fn nothing_is_kept_of_tasks_that_are_gone() {
        let runtime = Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(async {
            let turns = Turns::new(1);
            turns.used.store(nanos(CALM), Relaxed);
            let (flow, other) = (turns.flow(&source(1)), turns.flow(&source(2)));
            let mut gone = Box::pin(flow.task(async {}));
            let mut context = Context::from_waker(Waker::noop());
            assert!(gone.as_mut().poll(&mut context).is_pending());
            drop(gone);
            other.task(async {}).await;
            yield_now().await;
            let state = turns.state();
            assert!(state.queue.is_empty() && !state.has_rounds);
            assert_eq!(turns.waiting.load(Relaxed), 0);
            drop(state);
        });
    }
}
