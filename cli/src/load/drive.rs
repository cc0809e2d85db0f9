//! One run: sends the requests when they are due, and takes the answers.
//!
//! In an open loop this thread does nothing but send. The answer is checked, and its time taken, on the thread that has
//! read it, so neither waits for the other. In a closed loop that thread also sends the next request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;

use super::interrupt::Interrupt;
use super::live::Live;
use super::plan::{MAX_IN_FLIGHT, Pace, Plan};
use super::process::{Usage, own_cpu};
use super::side::Side;
use super::tally::{Counts, Tally, Window, latencies};
use super::threads::{self, ByName};
use super::workload::Failure;
use crate::on_the_spot;

/// How soon a place in a closed loop is filled again after a request without an answer.
const PAUSE: Duration = Duration::from_millis(10);

/// How long requests in flight are waited for after a signal.
const PATIENCE: Duration = Duration::from_secs(1);

/// The results of a run.
pub struct Outcome {
    pub plan: Plan,
    pub whole: Counts,
    pub stretches: Vec<Counts>,
    pub stretch: Duration,
    pub failures: BTreeMap<String, u64>,
    pub ended: u64,
    pub answered: u64,
    /// How late the requests of an open loop were sent, in nanoseconds.
    pub lag: Histogram<u64>,
    /// The use of the server in the measured time.
    pub used: Option<Used>,
    /// The processor time of this process in the measured time.
    pub own_cpu: Option<Duration>,
}

impl Outcome {
    /// Processor time for one request, in microseconds; `None` if none has ended.
    pub fn each(&self, cpu: Duration) -> Option<f64> {
        (self.ended > 0).then(|| cpu.as_secs_f64() * 1e6 / self.ended as f64)
    }

    /// Adds a later run with the same server.
    pub fn add(&mut self, later: &Self) -> Result<()> {
        self.plan.duration += later.plan.duration;
        self.whole.add(&later.whole)?;
        for (failure, count) in &later.failures {
            *self.failures.entry(failure.clone()).or_default() += count;
        }
        self.ended += later.ended;
        self.answered += later.answered;
        self.lag.add(&later.lag)?;
        self.used = self
            .used
            .take()
            .zip(later.used.clone())
            .map(|(used, later)| {
                let mut threads = used.threads;
                for (name, cpu) in later.threads {
                    *threads.entry(name).or_default() += cpu;
                }
                Used {
                    cpu: used.cpu + later.cpu,
                    cpu_alone: used.cpu_alone + later.cpu_alone,
                    threads,
                    bytes_before: used.bytes_before,
                    ..later
                }
            });
        self.own_cpu = self
            .own_cpu
            .zip(later.own_cpu)
            .map(|(own, later)| own + later);
        Ok(())
    }
}

/// The processor time and memory that a server used in some time.
#[derive(Clone, Debug)]
pub struct Used {
    pub cpu: Duration,
    pub cpu_alone: Duration,
    /// The part of it in the threads of each name, without descendants.
    pub threads: ByName,
    pub bytes_before: u64,
    pub bytes_after: u64,
    pub peak_bytes: u64,
}

/// A run that is under way.
struct Run {
    side: Arc<Side>,
    window: Window,
    tally: Mutex<Tally>,
    number: Arc<AtomicU64>,
    in_flight: AtomicUsize,
    /// Places of a closed loop that wait to be filled again.
    paused: AtomicUsize,
    /// Whether nothing more is sent, so that the thread that drives waits for the last answer.
    is_sent: AtomicBool,
    driver: Thread,
    interrupt: Interrupt,
}

/// Runs a plan on this thread, and waits for the last answer. `number` counts the requests of all runs with this side.
pub fn drive(
    side: &Arc<Side>,
    plan: &Plan,
    number: &Arc<AtomicU64>,
    live: &Live,
) -> Result<Outcome> {
    let begin = Instant::now();
    let measured = begin + plan.warm_up;
    let window = Window {
        begin,
        measured,
        end: measured + plan.duration,
    };
    let run = Arc::new(Run {
        side: side.clone(),
        window,
        tally: Mutex::new(Tally::new(window)?),
        number: number.clone(),
        in_flight: AtomicUsize::new(0),
        paused: AtomicUsize::new(0),
        is_sent: AtomicBool::new(false),
        driver: thread::current(),
        interrupt: plan.interrupt.clone(),
    });
    let (lag, end, watched) = thread::scope(|scope| {
        let watch = scope.spawn(|| run.watch(live));
        let lag = match plan.pace {
            Pace::InFlight(count) => run.keep(count),
            _ => run.send(plan.pace.dues()),
        };
        let end = window.end.min(Instant::now());
        run.wait();
        Ok::<_, anyhow::Error>((
            lag?,
            end,
            watch.join().ok().context("the watch has failed")?,
        ))
    })?;
    let mut tally = run.tally().clone();
    let mut plan = plan.clone();
    if plan.interrupt.has_come() {
        plan.duration = end.saturating_duration_since(measured);
        let stretches = plan.duration.as_nanos().div_ceil(tally.stretch.as_nanos());
        tally.stretches.truncate(usize::try_from(stretches)?);
    } else if let Err(failure) = side.settle() {
        tally.failed(&failure.why, 1);
    }
    let (used, own_cpu) = watched;
    Ok(Outcome {
        plan,
        whole: tally.whole,
        stretches: tally.stretches,
        stretch: tally.stretch,
        failures: tally.failures,
        ended: tally.ended,
        answered: tally.answered,
        lag,
        used,
        own_cpu,
    })
}

impl Run {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the end of a request, unless the run was over before.
    fn ended(&self, due: Instant, ended: Result<(), Failure>) {
        if !self.interrupt.has_come() {
            self.tally().ended(due, Instant::now(), ended);
        }
    }

    fn next_number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    /// An open loop: sends each request when it is due. Returns how late they were sent.
    fn send(self: &Arc<Self>, dues: impl Iterator<Item = Duration>) -> Result<Histogram<u64>> {
        wake_in_time();
        let mut lag = latencies(3)?;
        for due in dues {
            let due = self.window.begin.checked_add(due);
            let Some(due) = due.filter(|due| *due < self.window.end) else {
                break;
            };
            self.interrupt.sleep_until(due);
            if self.interrupt.has_come() {
                break;
            }
            let late = due.elapsed().as_nanos();
            if due >= self.window.measured {
                lag.saturating_record(u64::try_from(late).unwrap_or(u64::MAX));
            }
            if self.in_flight.load(Ordering::Relaxed) >= MAX_IN_FLIGHT {
                let why = format!("{MAX_IN_FLIGHT} requests were in flight");
                let failure = Failure::unanswered(why);
                self.ended(due, Err(failure));
                continue;
            }
            self.in_flight.fetch_add(1, Ordering::Relaxed);
            let run = self.clone();
            on_the_spot::begin(async move {
                let number = run.next_number();
                let ended = run.side.one(number).await;
                run.ended(due, ended);
                run.leave();
            });
        }
        Ok(lag)
    }

    /// A closed loop: keeps so many requests in flight.
    fn keep(self: &Arc<Self>, count: usize) -> Result<Histogram<u64>> {
        self.paused.store(count, Ordering::Relaxed);
        while Instant::now() < self.window.end && !self.interrupt.has_come() {
            for _ in 0..self.paused.swap(0, Ordering::Relaxed) {
                self.in_flight.fetch_add(1, Ordering::Relaxed);
                on_the_spot::begin(self.clone().one_place());
            }
            let left = self.window.end.saturating_duration_since(Instant::now());
            thread::sleep(left.min(PAUSE));
        }
        latencies(3)
    }

    /// One request after the other, until one is not answered.
    async fn one_place(self: Arc<Self>) {
        let mut due = Instant::now();
        while due < self.window.end && !self.interrupt.has_come() {
            let ended = self.side.one(self.next_number()).await;
            let now = Instant::now();
            let is_answered = ended.as_ref().map_or_else(|it| it.is_answered, |()| true);
            self.ended(due, ended);
            if !is_answered {
                self.paused.fetch_add(1, Ordering::Relaxed);
                break;
            }
            due = now;
        }
        self.leave();
    }

    fn leave(&self) {
        let is_last = self.in_flight.fetch_sub(1, Ordering::SeqCst) == 1;
        if is_last && self.is_sent.load(Ordering::SeqCst) {
            self.driver.unpark();
        }
    }

    /// Waits until nothing is in flight. Requests have timeouts, so it ends; at a signal, it ends soon.
    fn wait(&self) {
        self.is_sent.store(true, Ordering::SeqCst);
        let mut last = None;
        while self.in_flight.load(Ordering::SeqCst) > 0 {
            if self.interrupt.has_come()
                && *last.get_or_insert(Instant::now() + PATIENCE) < Instant::now()
            {
                break;
            }
            thread::park_timeout(PAUSE);
        }
    }

    /// Shows how it goes, and takes what the server and this process use in the measured time.
    fn watch(&self, live: &Live) -> (Option<Used>, Option<Duration>) {
        let server = &self.side.server;
        self.interrupt.sleep_until(self.window.measured);
        let (before, own_before) = (server.usage(), own_cpu());
        let threads = server.threads();
        self.tally().take_recent();
        if live.is_shown() {
            self.show(live, before);
        }
        self.interrupt.sleep_until(self.window.end);
        let (after, own_after) = (server.usage(), own_cpu());
        let threads = threads::between(&threads, &server.threads());
        let used = before.zip(after).map(|(before, after)| Used {
            threads,
            cpu: after.cpu.saturating_sub(before.cpu),
            cpu_alone: after.cpu_alone.saturating_sub(before.cpu_alone),
            bytes_before: before.resident_bytes,
            bytes_after: after.resident_bytes,
            peak_bytes: after.peak_bytes,
        });
        let own = own_after.zip(own_before);
        (
            used,
            own.map(|(after, before)| after.saturating_sub(before)),
        )
    }

    /// A row for each second, up to the end.
    fn show(&self, live: &Live, mut before: Option<Usage>) {
        let second = Duration::from_secs(1);
        let mut next = self.window.measured + second;
        while next <= self.window.end {
            self.interrupt.sleep_until(next);
            if self.interrupt.has_come() {
                break;
            }
            let usage = self.side.server.usage();
            let cpu = before.zip(usage);
            let cpu = cpu.map(|(before, now)| now.cpu.saturating_sub(before.cpu));
            before = usage;
            let recent = self.tally().take_recent();
            let at = next - self.window.measured;
            live.row(at, &recent, self.in_flight.load(Ordering::Relaxed), cpu);
            next += second;
        }
    }
}

/// Has the system wake this thread at the time that it asks for, rather than up to 50 µs later.
fn wake_in_time() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_timerslack(1);
}
