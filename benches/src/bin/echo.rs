//! Calls per second through two complete connections in memory, on one core. Answers are checked
//! first, then rounds of many calls at once and of single calls are timed.
//!
//! `cargo run --release -p mcpbolt-benches --bin echo [SECONDS [PART OF A NAME]]`
#![allow(
    clippy::print_stdout,
    reason = "a program that measures prints its figures"
)]

use std::time::{Duration, Instant};

use mcpbolt::mcp::Revision;
use mcpbolt_benches::echo::{Language, Pair, Way};
use mcpbolt_benches::harness::ran;

fn main() {
    let mut args = std::env::args().skip(1);
    let seconds = args.next().and_then(|text| text.parse().ok());
    let wanted = args.next().unwrap_or_default();
    let slice = Duration::from_secs_f64(seconds.unwrap_or(12.0) / 12.0);
    for language in [
        Language::Mcp(Revision::V2025_11_25),
        Language::Mcp(Revision::V2026_07_28),
        Language::Actions,
    ] {
        for way in [Way::Inline, Way::Deferred] {
            for at_once in [64, 1] {
                let spoken = match language {
                    Language::Mcp(revision) => revision.name(),
                    Language::Actions => "actions",
                };
                let name = format!("{spoken} {way:?}, {at_once:>2} at once");
                if !name.contains(&wanted) {
                    continue;
                }
                let mut pair = Pair::open(language, way);
                pair.check();
                let rate = rate_of(&mut pair, at_once, slice);
                println!(
                    "{name}: {:.2} million calls/s, {:.0} ns each",
                    rate / 1e6,
                    1e9 / rate
                );
            }
        }
    }
}

/// Calls per second of this thread's running time: other processes affect it only through the caches.
fn rate_of(pair: &mut Pair, at_once: usize, slice: Duration) -> f64 {
    let begin = Instant::now();
    let start = ran(begin);
    let mut calls = 0;
    while begin.elapsed() < slice {
        for _ in 0..100 {
            pair.round(at_once);
        }
        calls += 100 * at_once;
    }
    calls as f64 / (ran(begin) - start).as_secs_f64()
}
