//! Calls a second through two whole connections in memory, on one core: answers are checked
//! first, then rounds of many calls at once and of one at a time are timed.
//!
//! `cargo run --release -p mcpbolt-benches --bin echo [SECONDS]`
#![allow(
    clippy::print_stdout,
    reason = "a program that measures prints its figures"
)]

use std::time::{Duration, Instant};

use mcpbolt::mcp::Revision;
use mcpbolt_benches::echo::{Pair, Way};

const PARAMS: &str = r#"{"name":"echo","arguments":{"text":"hello, world"}}"#;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let slice = Duration::from_secs_f64(seconds.unwrap_or(8.0) / 8.0);
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for way in [Way::Inline, Way::Deferred] {
            for at_once in [64, 1] {
                let mut pair = Pair::open(revision, way);
                let answer = pair.check(PARAMS);
                assert!(
                    answer.contains(r#""echo":{"text":"hello, world"}"#),
                    "{answer}"
                );
                let rate = rate_of(&mut pair, at_once, slice);
                println!(
                    "{revision} {way:?}, {at_once:>2} at once: {:.2} million calls/s, {:.0} ns each",
                    rate / 1e6,
                    1e9 / rate
                );
            }
        }
    }
}

/// The median of short rounds: what a neighbour takes away shows in few of them.
fn rate_of(pair: &mut Pair, at_once: usize, slice: Duration) -> f64 {
    const CALLS: usize = 6400;
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < slice {
        let start = Instant::now();
        for _ in 0..CALLS / at_once {
            pair.round(at_once, PARAMS);
        }
        times.push(start.elapsed().as_secs_f64() / CALLS as f64);
    }
    times.sort_by(f64::total_cmp);
    1.0 / times[times.len() / 2]
}
