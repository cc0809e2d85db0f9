//! What an observer adds to a call through two complete connections in memory: the counts for Prometheus, and a span that is not
//! sampled, beside such a span by the SDK alone. Answers are checked, then contenders take turns. Figures are CPU time, medians over
//! the rounds.
//!
//! `cargo xtask bench spans [--quick]`
#![allow(
    clippy::print_stdout,
    reason = "a program that measures prints its figures"
)]

use std::sync::Arc;

use mcpbolt::connection::Observer;
use mcpbolt::mcp::Revision;
use mcpbolt::telemetry::{OpenTelemetry, Prometheus};
use mcpbolt_benches::echo::{Language, Pair, Way};
use mcpbolt_benches::harness::{Contender, measure};
use opentelemetry::Context;
use opentelemetry::trace::{SpanKind, TraceContextExt, Tracer, TracerProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};

const AT_ONCE: usize = 64;

fn main() {
    let rounds = match std::env::args().any(|word| word == "--quick") {
        true => 100,
        false => 4_000,
    };
    let off = SdkTracerProvider::builder().with_sampler(Sampler::AlwaysOff);
    let off = off.build();
    let meters = SdkMeterProvider::builder().build();
    let observers: [(&str, Option<Arc<dyn Observer>>); 3] = [
        ("no observer", None),
        ("Prometheus", Some(Prometheus::new())),
        (
            "OpenTelemetry, not sampled",
            Some(OpenTelemetry::new(&off, &meters)),
        ),
    ];
    let language = Language::Mcp(Revision::V2025_11_25);
    let mut calls = observers.map(|(name, observer)| {
        let mut pair = Pair::observed(language, Way::Inline, observer);
        pair.check();
        Contender::new(name, move || pair.round(AT_ONCE))
    });
    let rows = measure("call", 0, AT_ONCE as u64, rounds, &mut calls);
    let plain = rows.first().map_or(0.0, |row| row.median_ns);
    println!("ns of CPU per call, {AT_ONCE} at once; median of {rounds} rounds");
    for row in &rows {
        let (name, took) = (row.contender, row.median_ns);
        println!("  {name:<28}{took:>8.0}{:>+8.0}", took - plain);
    }
    let tracer = off.tracer("spans");
    let span = Contender::new("a span by the SDK alone", move || {
        let builder = tracer.span_builder("tools/call echo".to_owned());
        let span = builder.with_kind(SpanKind::Server).start(&tracer);
        Context::current_with_span(span).span().end();
    });
    for row in measure("span", 0, 1, rounds, &mut [span]) {
        println!("  {:<28}{:>8.0}", row.contender, row.median_ns);
    }
}
