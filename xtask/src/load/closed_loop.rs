//! A closed-loop load: a constant number of calls in flight, for a set time.

use std::time::{Duration, Instant};

use super::carrier::Carrier;
use super::ledger::{Faults, Ledger};
use super::session::Session;
use super::wire::Workload;

/// How long a server may be silent with calls in flight before the loop gives up.
const STALL: Duration = Duration::from_secs(15);

/// The load and duration of a loop.
#[derive(Clone, Copy)]
pub struct Window {
    pub in_flight: usize,
    /// The measured time, once the warm-up is over.
    pub length: Duration,
    pub warm_up: Duration,
    /// Measuring goes on beyond `length` until this many calls are answered, for at most ten times `length`.
    pub at_least: u64,
}

/// The results of a loop.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Correctly answered calls in the measured time.
    pub calls: u64,
    pub calls_per_second: f64,
    /// Latency from queueing the call's bytes to checking its answer.
    pub p50: Duration,
    pub p99: Duration,
    /// The server's CPU time for one call.
    pub cpu_per_call: Duration,
    /// The part of it in threads that may run the server's language, if the system reports it.
    pub cpu_of_language: Option<Duration>,
    /// The most memory the server held.
    pub peak_bytes: u64,
    pub faults: Faults,
}

/// Runs a workload; calls `tick` now and then with the number of answered calls.
pub fn run<C: Carrier>(
    session: &mut Session<C>,
    workload: &Workload,
    window: Window,
    tick: &mut dyn FnMut(u64),
) -> Figures {
    session.server.forget_peak();
    let mut ledger = Ledger::new(workload);
    let begin = Instant::now();
    let mut last_answer = (0, begin);
    let mut last_tick = begin;
    // When measuring began, and the answered calls and CPU time up to then.
    let mut opened: Option<(Instant, u64, Duration, Option<Duration>)> = None;
    let mut figures = Figures::default();
    let mut measured = false;
    while !measured || ledger.in_flight() > 0 {
        let now = Instant::now();
        if opened.is_none() && now - begin >= window.warm_up {
            let (all, language) = (session.server.cpu(), session.server.cpu_of_language());
            opened = Some((now, ledger.answered, all, language));
            ledger.timing = true;
        }
        if let Some((at, answered, cpu, language)) = opened.filter(|_| !measured) {
            let calls = ledger.answered - answered;
            let enough = now - at >= window.length && calls >= window.at_least;
            if enough || now - at >= window.length * 10 {
                measured = true;
                ledger.timing = false;
                figures.calls = calls;
                figures.calls_per_second = calls as f64 / (now - at).as_secs_f64();
                let used = session.server.cpu().saturating_sub(cpu);
                let each = |used: Duration| used.div_f64(calls.max(1) as f64);
                figures.cpu_per_call = each(used);
                let now = session.server.cpu_of_language();
                figures.cpu_of_language = now
                    .zip(language)
                    .map(|(now, then)| each(now.saturating_sub(then)));
            }
        }
        while !measured && ledger.in_flight() < window.in_flight {
            let id = session.next_id();
            ledger.sent(id, Instant::now());
            session.carrier.queue(&mut |out| workload.write(id, out));
        }
        let wait = Duration::from_millis(20);
        if let Err(error) = session
            .carrier
            .turn(wait, &mut |line| ledger.line(line, Instant::now()))
        {
            ledger.faults.tell(format!("{error:#}"));
            break;
        }
        if ledger.answered != last_answer.0 {
            last_answer = (ledger.answered, now);
        }
        if now - last_answer.1 > STALL {
            ledger.faults.tell("the server has gone silent");
            break;
        }
        if now - last_tick > Duration::from_millis(100) {
            last_tick = now;
            tick(ledger.answered);
        }
    }
    if measured && figures.calls < window.at_least {
        ledger
            .faults
            .tell(format!("only {} calls were answered", figures.calls));
    }
    ledger.give_up();
    figures.peak_bytes = session.server.peak_bytes();
    figures.faults = ledger.faults;
    ledger.latencies.sort_unstable();
    figures.p50 = quantile(&ledger.latencies, 0.50);
    figures.p99 = quantile(&ledger.latencies, 0.99);
    figures
}

/// The quantile `part` of sorted values.
fn quantile(sorted: &[u64], part: f64) -> Duration {
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    let value = sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0);
    Duration::from_nanos(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(quantile(&hundred, 0.50), Duration::from_nanos(50));
        assert_eq!(quantile(&hundred, 0.99), Duration::from_nanos(99));
        assert_eq!(quantile(&[7], 0.99), Duration::from_nanos(7));
        assert_eq!(quantile(&[], 0.5), Duration::ZERO);
    }
}
