//! Which workers begin and end, and when: a state machine without a clock, processes or sockets of its own.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::io::reconnect::Backoff;
use crate::limits::later;

/// The number of a worker, unique within its tree.
pub type Number = u64;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Start a worker in a slot.
    Begin(usize, Number),
    /// Tell a worker that another has taken over.
    Replace(Number),
    /// Tell a worker to end.
    End(Number),
    /// Kill a worker.
    Kill(Number),
}

/// Times and waits.
#[derive(Clone, Copy, Debug)]
pub struct PlanTerms {
    pub start_timeout: Duration,
    pub end_timeout: Duration,
    pub backoff: Backoff,
}

/// A worker that has not ended.
#[derive(Debug)]
struct Member {
    number: Number,
    /// When it began, or was ready.
    since: Instant,
    /// When it is killed.
    due: Option<Instant>,
}

/// A place for a worker.
#[derive(Debug, Default)]
struct Slot {
    /// The one that serves.
    serving: Option<Member>,
    /// The one that is to serve, and is not ready yet.
    starting: Option<Member>,
    /// How many in a row have ended soon.
    failures: u32,
    /// When another one is to begin.
    begins: Option<Instant>,
}

/// The plan of one tree.
#[derive(Debug)]
pub struct Plan {
    terms: PlanTerms,
    slots: Vec<Slot>,
    /// Workers that were told to end, or that another has replaced.
    leaving: Vec<Member>,
    /// Slots whose workers are still to be replaced.
    to_replace: VecDeque<usize>,
    /// When all were last to be replaced.
    asked: Option<Instant>,
    /// The worker whose end the next replacement waits for.
    replaced: Option<Number>,
    orders: VecDeque<Order>,
    last: Number,
    /// All slots have had a worker that was ready.
    is_up: bool,
    /// A worker ended before the tree was up.
    has_failed: bool,
    is_stopping: bool,
}

/// How a worker's end is dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It was told to end, or replaced.
    Expected,
    /// Another one begins after that time.
    Replaced(Duration),
    /// The one that it was to replace serves on.
    Kept,
    /// The tree ends, as a worker could not begin.
    Fatal,
}

impl Plan {
    /// Begins a worker in each of `count` slots.
    pub fn new(count: usize, terms: PlanTerms, now: Instant) -> Self {
        let mut plan = Self {
            terms,
            slots: (0..count.max(1)).map(|_| Slot::default()).collect(),
            leaving: Vec::new(),
            to_replace: VecDeque::new(),
            asked: None,
            replaced: None,
            orders: VecDeque::new(),
            last: 0,
            is_up: false,
            has_failed: false,
            is_stopping: false,
        };
        (0..plan.slots.len()).for_each(|slot| plan.start(slot, now));
        plan
    }

    /// The next thing to do now.
    pub fn poll_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let begins = self.slots.iter().filter_map(|slot| slot.begins);
        let starting = self.slots.iter().filter_map(|slot| slot.starting.as_ref());
        let due = starting.chain(&self.leaving).filter_map(|one| one.due);
        begins.chain(due).min()
    }

    /// How many workers serve.
    pub fn serving(&self) -> usize {
        let serving = self.slots.iter().filter(|slot| slot.serving.is_some());
        serving.count()
    }

    /// Whether all slots have had a worker that was ready.
    pub fn is_up(&self) -> bool {
        self.is_up
    }

    /// Whether the workers are ending.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Whether the tree ends because a worker could not begin.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Whether no worker is left, nor will be.
    pub fn is_over(&self) -> bool {
        let is_empty = |slot: &Slot| slot.serving.is_none() && slot.starting.is_none();
        self.is_stopping && self.leaving.is_empty() && self.slots.iter().all(is_empty)
    }

    fn start(&mut self, slot: usize, now: Instant) {
        self.last += 1;
        let number = self.last;
        let due = Some(later(now, self.terms.start_timeout));
        let since = now;
        let slot_state = &mut self.slots[slot];
        slot_state.begins = None;
        slot_state.starting = Some(Member { number, since, due });
        self.orders.push_back(Order::Begin(slot, number));
    }

    fn leave(&mut self, mut member: Member, order: Order, now: Instant) {
        member.due = Some(later(now, self.terms.end_timeout));
        self.leaving.push(member);
        self.orders.push_back(order);
    }

    /// A worker says that it serves.
    pub fn ready(&mut self, number: Number, now: Instant) {
        let is_it = |slot: &Slot| slot.starting.as_ref().is_some_and(|it| it.number == number);
        let Some(index) = self.slots.iter().position(is_it) else {
            return;
        };
        let slot = &mut self.slots[index];
        let due = None;
        let since = now;
        let member = Member { number, since, due };
        slot.starting = None;
        if let Some(old) = slot.serving.replace(member) {
            self.replaced = Some(old.number);
            let order = Order::Replace(old.number);
            self.leave(old, order, now);
        }
        self.is_up |= self.slots.iter().all(|slot| slot.serving.is_some());
        self.go_on(now);
    }

    /// A worker has ended.
    pub fn ended(&mut self, number: Number, now: Instant) -> Loss {
        let is_it = |one: &Option<Member>| one.as_ref().is_some_and(|it| it.number == number);
        if let Some(at) = self.leaving.iter().position(|one| one.number == number) {
            self.leaving.remove(at);
            if self.replaced == Some(number) {
                self.replaced = None;
                self.go_on(now);
            }
            return Loss::Expected;
        }
        if let Some(index) = self.slots.iter().position(|slot| is_it(&slot.starting)) {
            let began = self.slots[index].starting.take().map(|it| it.since);
            if !self.is_up {
                self.has_failed = true;
                self.stop(now);
                return Loss::Fatal;
            }
            if self.slots[index].serving.is_some() {
                // What fails here would fail in the other slots, too, unless something has changed meanwhile.
                match began < self.asked {
                    true => self.go_on(now),
                    false => self.to_replace.clear(),
                }
                return Loss::Kept;
            }
            let wait = self.back_off(index, now, Duration::ZERO);
            self.go_on(now);
            return Loss::Replaced(wait);
        }
        let Some(index) = self.slots.iter().position(|slot| is_it(&slot.serving)) else {
            return Loss::Expected;
        };
        let served = self.slots[index].serving.take();
        let lasted = served.map_or(Duration::ZERO, |it| now.saturating_duration_since(it.since));
        if self.slots[index].starting.is_some() {
            return Loss::Replaced(Duration::ZERO);
        }
        Loss::Replaced(self.back_off(index, now, lasted))
    }

    /// Has another worker begin in a slot after a while. Returns how long that is.
    fn back_off(&mut self, slot: usize, now: Instant, lasted: Duration) -> Duration {
        let backoff = self.terms.backoff;
        let slot = &mut self.slots[slot];
        if lasted > backoff.longest {
            slot.failures = 0;
        }
        slot.failures = slot.failures.saturating_add(1);
        let wait = backoff.wait(slot.failures);
        slot.begins = Some(later(now, wait));
        wait
    }

    /// Replaces all workers, one after the other: the next one begins when the one before it has ended. A call meanwhile
    /// begins from the front; one before all workers serve waits for that.
    pub fn restart(&mut self, now: Instant) {
        if !self.is_stopping {
            self.to_replace = (0..self.slots.len()).collect();
            self.asked = Some(now);
            self.go_on(now);
        }
    }

    fn go_on(&mut self, now: Instant) {
        let is_starting = self.slots.iter().any(|slot| slot.starting.is_some());
        if !self.is_up || self.is_stopping || self.replaced.is_some() || is_starting {
            return;
        }
        if let Some(slot) = self.to_replace.pop_front() {
            self.start(slot, now);
        }
    }

    /// Ends all workers.
    pub fn stop(&mut self, now: Instant) {
        self.is_stopping = true;
        self.to_replace.clear();
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            slot.begins = None;
            let members = [slot.serving.take(), slot.starting.take()];
            for member in members.into_iter().flatten() {
                let order = Order::End(member.number);
                self.leave(member, order, now);
            }
        }
        // A worker that was replaced takes no more time either.
        if let Some(number) = self.replaced.take() {
            self.orders.push_back(Order::End(number));
        }
    }

    /// Kills all workers.
    pub fn kill(&mut self, now: Instant) {
        self.stop(now);
        for one in &mut self.leaving {
            one.due = None;
            self.orders.push_back(Order::Kill(one.number));
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        for index in 0..self.slots.len() {
            if is_due(self.slots[index].begins) {
                self.start(index, now);
            }
        }
        let starting = self.slots.iter_mut();
        let starting = starting.filter_map(|slot| slot.starting.as_mut());
        for one in starting.chain(&mut self.leaving) {
            if is_due(one.due) {
                one.due = None;
                self.orders.push_back(Order::Kill(one.number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: PlanTerms = PlanTerms {
        start_timeout: Duration::from_secs(60),
        end_timeout: Duration::from_secs(30),
        backoff: Backoff {
            first: Duration::from_millis(100),
            longest: Duration::from_secs(10),
            attempts: 0,
        },
    };

    /// A plan on a virtual clock.
    struct Scene {
        plan: Plan,
        start: Instant,
        at: Duration,
    }

    impl Scene {
        fn new(count: usize) -> Self {
            let start = Instant::now();
            Self {
                plan: Plan::new(count, TERMS, start),
                start,
                at: Duration::ZERO,
            }
        }

        /// Two workers that serve, with numbers 1 and 2.
        fn up() -> Self {
            let mut scene = Self::new(2);
            assert_eq!(scene.orders(), [Order::Begin(0, 1), Order::Begin(1, 2)]);
            scene.ready(1);
            assert!(!scene.plan.is_up());
            scene.ready(2);
            assert!(scene.plan.is_up());
            assert_eq!(scene.orders(), []);
            scene
        }

        fn now(&self) -> Instant {
            self.start + self.at
        }

        fn orders(&mut self) -> Vec<Order> {
            std::iter::from_fn(|| self.plan.poll_order()).collect()
        }

        fn ready(&mut self, number: Number) {
            let now = self.now();
            self.plan.ready(number, now);
        }

        fn ended(&mut self, number: Number) -> Loss {
            let now = self.now();
            self.plan.ended(number, now)
        }

        /// Lets time pass, and returns what came due.
        fn wait(&mut self, time: Duration) -> Vec<Order> {
            let until = self.at + time;
            while let Some(due) = self.plan.poll_timeout() {
                if due > self.start + until {
                    break;
                }
                self.at = due - self.start;
                self.plan.handle_timeout(due);
            }
            self.at = until;
            self.orders()
        }
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_worker_that_dies_is_replaced_later_and_later_until_one_lasts() {
        let mut scene = Scene::up();
        let mut number = 1;
        for (next, wait) in [(3, 100), (4, 200), (5, 400)] {
            assert_eq!(scene.ended(number), Loss::Replaced(ms(wait)));
            assert_eq!(scene.plan.serving(), 1);
            assert_eq!(scene.wait(ms(wait - 1)), []);
            assert_eq!(scene.wait(ms(1)), [Order::Begin(0, next)]);
            scene.ready(next);
            number = next;
        }
        assert_eq!(scene.wait(Duration::from_secs(11)), []);
        assert_eq!(scene.ended(number), Loss::Replaced(ms(100)));
        assert_eq!(
            scene.ended(2),
            Loss::Replaced(ms(100)),
            "slots are counted apart"
        );
        assert_eq!(scene.plan.serving(), 0);
    }

    #[test]
    fn workers_are_replaced_one_by_one() {
        let mut scene = Scene::up();
        scene.plan.restart(scene.now());
        assert_eq!(scene.orders(), [Order::Begin(0, 3)]);
        assert_eq!(
            scene.plan.serving(),
            2,
            "the old one serves until the new one does"
        );
        scene.ready(3);
        assert_eq!(scene.orders(), [Order::Replace(1)]);
        assert_eq!(scene.plan.serving(), 2);
        assert_eq!(scene.ended(1), Loss::Expected);
        assert_eq!(scene.orders(), [Order::Begin(1, 4)]);
        scene.ready(4);
        assert_eq!(scene.orders(), [Order::Replace(2)]);
        assert_eq!(scene.ended(2), Loss::Expected);
        assert_eq!(scene.wait(Duration::from_secs(600)), []);
    }

    #[test]
    fn a_restart_before_all_workers_serve_is_not_forgotten() {
        let mut scene = Scene::new(2);
        scene.orders();
        scene.ready(1);
        scene.plan.restart(scene.now());
        assert_eq!(scene.orders(), []);
        scene.ready(2);
        assert_eq!(scene.orders(), [Order::Begin(0, 3)]);
        scene.ready(3);
        assert_eq!(scene.orders(), [Order::Replace(1)]);
        assert_eq!(scene.ended(1), Loss::Expected);
        assert_eq!(scene.orders(), [Order::Begin(1, 4)]);
    }

    #[test]
    fn a_replaced_worker_that_does_not_end_is_killed_and_the_next_one_follows() {
        let mut scene = Scene::up();
        scene.plan.restart(scene.now());
        scene.orders();
        scene.ready(3);
        scene.orders();
        assert_eq!(scene.wait(TERMS.end_timeout), [Order::Kill(1)]);
        assert_eq!(scene.ended(1), Loss::Expected);
        assert_eq!(scene.orders(), [Order::Begin(1, 4)]);
    }

    #[test]
    fn a_replacement_that_cannot_begin_leaves_all_as_it_is() {
        let mut scene = Scene::up();
        scene.plan.restart(scene.now());
        scene.orders();
        assert_eq!(scene.ended(3), Loss::Kept);
        assert_eq!(scene.orders(), []);
        assert_eq!(scene.plan.serving(), 2);
        assert_eq!(scene.wait(Duration::from_secs(600)), []);
        scene.plan.restart(scene.now());
        assert_eq!(
            scene.orders(),
            [Order::Begin(0, 4)],
            "it can be tried again"
        );
    }

    /// What a replacement failed for may have been mended since it began.
    #[test]
    fn a_replacement_that_fails_ends_no_later_restart() {
        let mut scene = Scene::up();
        scene.plan.restart(scene.now());
        assert_eq!(scene.orders(), [Order::Begin(0, 3)]);
        scene.wait(ms(10));
        scene.plan.restart(scene.now());
        assert_eq!(scene.ended(3), Loss::Kept);
        assert_eq!(scene.orders(), [Order::Begin(0, 4)]);
        assert_eq!(scene.ended(4), Loss::Kept);
        assert_eq!(scene.orders(), []);
    }

    #[test]
    fn a_slot_whose_workers_fail_holds_up_no_restart_of_the_others() {
        let mut scene = Scene::up();
        scene.ended(1);
        scene.wait(ms(100));
        scene.plan.restart(scene.now());
        assert_eq!(scene.ended(3), Loss::Replaced(ms(200)));
        assert_eq!(scene.orders(), [Order::Begin(0, 4)]);
        assert_eq!(scene.ended(4), Loss::Replaced(ms(400)));
        assert_eq!(scene.orders(), [Order::Begin(1, 5)]);
    }

    #[test]
    fn a_replacement_that_is_never_ready_is_killed() {
        let mut scene = Scene::up();
        scene.plan.restart(scene.now());
        scene.orders();
        assert_eq!(scene.wait(TERMS.start_timeout), [Order::Kill(3)]);
        assert_eq!(scene.ended(3), Loss::Kept);
    }

    #[test]
    fn a_worker_that_dies_while_its_replacement_starts_needs_no_other() {
        let mut scene = Scene::up();
        scene.plan.restart(scene.now());
        scene.orders();
        assert_eq!(scene.ended(1), Loss::Replaced(Duration::ZERO));
        scene.ready(3);
        assert_eq!(
            scene.orders(),
            [Order::Begin(1, 4)],
            "nobody is to be replaced"
        );
    }

    #[test]
    fn a_tree_whose_workers_cannot_begin_ends() {
        let mut scene = Scene::new(2);
        scene.orders();
        scene.ready(1);
        assert_eq!(scene.ended(2), Loss::Fatal);
        assert!(scene.plan.has_failed());
        assert_eq!(scene.orders(), [Order::End(1)]);
        assert!(!scene.plan.is_over());
        assert_eq!(scene.ended(1), Loss::Expected);
        assert!(scene.plan.is_over());
    }

    #[test]
    fn a_stop_ends_every_worker_and_kills_those_that_do_not() {
        let mut scene = Scene::up();
        scene.plan.restart(scene.now());
        scene.orders();
        scene.ready(3);
        scene.orders();
        scene.plan.stop(scene.now());
        assert_eq!(
            scene.orders(),
            [Order::End(3), Order::End(2), Order::End(1)]
        );
        scene.plan.restart(scene.now());
        assert_eq!(scene.ended(3), Loss::Expected);
        assert_eq!(scene.ended(1), Loss::Expected);
        assert_eq!(scene.wait(TERMS.end_timeout), [Order::Kill(2)]);
        assert_eq!(scene.ended(2), Loss::Expected);
        assert!(scene.plan.is_over());
        assert_eq!(scene.wait(Duration::from_secs(600)), []);
    }

    #[test]
    fn a_second_stop_kills() {
        let mut scene = Scene::up();
        scene.plan.stop(scene.now());
        scene.orders();
        scene.plan.kill(scene.now());
        assert_eq!(scene.orders(), [Order::Kill(1), Order::Kill(2)]);
    }
}
