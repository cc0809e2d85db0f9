//! Counts instructions per decoded message, per call through two complete connections, and per call over HTTP, under
//! callgrind. Fails if a count exceeds its guard.
//!
//! Wall-clock times depend on the load of the machine; these counts do not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measuring program stops at the first surprise"
)]

use std::process::ExitCode;
use std::sync::Arc;

use mcpbolt::connection::Observer;
use mcpbolt::mcp::Revision;
use mcpbolt::message::Envelope;
use mcpbolt::telemetry::{OpenTelemetry, Prometheus};
use mcpbolt_benches::echo::{Language, Pair, Way};
use mcpbolt_benches::http::HttpCaller;
use mcpbolt_benches::{contenders, corpus, count};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};

/// The most instructions for decoding one message of a class.
const GUARDS: [(&str, u64); 4] = [
    ("ping", 415),
    ("call150", 1220),
    ("tools10k", 67_500),
    ("action170", 1220),
];

/// The most instructions for one MCP call, by where it is answered and how many calls are in flight. An
/// action instead of an MCP call may take a quarter more.
const CALLS: [(&str, Way, u64, u64); 3] = [
    ("64", Way::Inline, 64, 5_860),
    ("1", Way::Inline, 1, 7_865),
    ("deferred 64", Way::Deferred, 64, 7_895),
];

/// The most instructions for one call over HTTP, answered by an inline tool, without sockets.
const HTTP: [(&str, Revision, u64); 2] = [
    ("http 2025", Revision::V2025_11_25, 16_300),
    ("http 2026", Revision::V2026_07_28, 16_700),
];

/// What observes a server, and the most instructions that this adds to a call.
const OBSERVED: [(&str, u64); 2] = [("counted 64", 940), ("unsampled 64", 2_060)];

/// The dialects of calls, with the prefix of their class names.
const LANGUAGES: [(&str, Language); 2] = [
    ("echo", Language::Mcp(Revision::V2025_11_25)),
    ("act", Language::Actions),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [class, runs] = &args[..] {
        let runs = runs.parse().expect("a number");
        let http = HTTP.iter().find(|(name, ..)| name == class);
        if OBSERVED.iter().any(|(name, _)| name == class) {
            call_observed(class, runs);
            return ExitCode::SUCCESS;
        }
        match call_of(class) {
            Some((language, way, at_once)) => call((language, way), at_once, runs),
            None if let Some((_, revision, _)) = http => call_http(*revision, runs),
            None if class == corpus::action().class => decode_action(runs),
            None => decode(class, runs),
        }
        return ExitCode::SUCCESS;
    }
    let decoded = guard_decoding();
    let called = guard_calls();
    let posted = guard_http();
    let observed = guard_observed();
    ExitCode::from(u8::from(!(decoded && called && posted && observed)))
}

/// Whether decoding stays below its guards.
fn guard_decoding() -> bool {
    let mut good = true;
    for input in corpus::all()
        .iter()
        .chain([&corpus::action()])
        .filter(|input| input.bytes().len() < 200_000)
    {
        let count = count::instructions(input.class).expect("valgrind counts");
        let guard = GUARDS.iter().find(|(class, _)| *class == input.class);
        let verdict = match guard {
            Some((_, most)) if count > *most => {
                good = false;
                format!("above the guard of {most}")
            }
            Some((_, most)) => format!("guard {most}"),
            None => String::new(),
        };
        println!("{:<18}{count:>9} instructions  {verdict}", input.class);
    }
    good
}

/// Whether calls stay below their guards.
fn guard_calls() -> bool {
    let mut good = true;
    for (way, _, at_once, most) in CALLS {
        let mut most = most;
        for (language, _) in LANGUAGES {
            let class = format!("{language} {way}");
            let count = count::instructions(&class).expect("valgrind counts") / at_once;
            good &= count <= most;
            let above = if count > most { "above the " } else { "" };
            println!("{class:<18}{count:>9} instructions  {above}guard {most}");
            most = count * 5 / 4;
        }
    }
    good
}

/// Whether calls over HTTP stay below their guards.
fn guard_http() -> bool {
    let mut good = true;
    for (class, _, most) in HTTP {
        let count = count::instructions(class).expect("valgrind counts");
        good &= count <= most;
        let above = if count > most { "above the " } else { "" };
        println!("{class:<18}{count:>9} instructions  {above}guard {most}");
    }
    good
}

/// Whether an observer adds no more to a call than its guard.
fn guard_observed() -> bool {
    let at_once = 64;
    let plain = count::instructions("echo 64").expect("valgrind counts") / at_once;
    let mut good = true;
    for (class, most) in OBSERVED {
        let count = count::instructions(class).expect("valgrind counts") / at_once;
        let added = count.saturating_sub(plain);
        good &= added <= most;
        let above = if added > most { "above the " } else { "" };
        println!("{class:<18}{added:>9} instructions more  {above}guard {most}");
    }
    good
}

/// Runs `runs` rounds of calls of a server with an observer: one that counts for Prometheus, or one whose spans are not sampled.
fn call_observed(class: &str, runs: u64) {
    let observer: Arc<dyn Observer> = match class {
        "counted 64" => Prometheus::new(),
        _ => {
            let tracers = SdkTracerProvider::builder().with_sampler(Sampler::AlwaysOff);
            OpenTelemetry::new(&tracers.build(), &SdkMeterProvider::builder().build())
        }
    };
    let language = Language::Mcp(Revision::V2025_11_25);
    let mut pair = Pair::observed(language, Way::Inline, Some(observer));
    // Buffers have grown to their final size after this.
    (0..100 + runs).for_each(|_| pair.round(64));
}

/// Parses a class name: the dialect, where it is answered, and the number of calls in flight.
fn call_of(class: &str) -> Option<(Language, Way, u64)> {
    let (language, way) = class.split_once(' ')?;
    let (_, language) = LANGUAGES.into_iter().find(|(name, _)| *name == language)?;
    let (_, way, at_once, _) = CALLS.into_iter().find(|(name, ..)| *name == way)?;
    Some((language, way, at_once))
}

/// Runs `runs` rounds of calls.
fn call((language, way): (Language, Way), at_once: u64, runs: u64) {
    let mut pair = Pair::open(language, way);
    // Buffers have grown to their final size after this.
    for _ in 0..100 {
        pair.round(at_once as usize);
    }
    for _ in 0..runs {
        pair.round(at_once as usize);
    }
}

/// Makes `runs` calls over HTTP.
fn call_http(revision: Revision, runs: u64) {
    let caller = HttpCaller::open(revision);
    // Buffers have grown to their final size after this.
    (0..100 + runs).for_each(|_| caller.call());
}

fn decode(class: &str, runs: u64) {
    let input = corpus::input(class).expect("a class");
    let mut envelope = Envelope::new();
    for _ in 0..runs {
        assert!(contenders::engine(
            std::hint::black_box(input.frame()),
            &mut envelope
        ));
        std::hint::black_box(&envelope);
    }
}

fn decode_action(runs: u64) {
    let input = corpus::action();
    let mut envelope = Envelope::new();
    for _ in 0..runs {
        assert!(contenders::engine_of_actions(
            std::hint::black_box(input.frame()),
            &mut envelope
        ));
        std::hint::black_box(&envelope);
    }
}
