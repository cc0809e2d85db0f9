//! Decoding under criterion: `cargo bench -p mcpbolt-benches [--features peers]`.
//!
//! Criterion shows the spread of a figure and whether it changed since the last run. It runs one
//! contender after the other, so for ratios use `cargo xtask bench codec`, which interleaves them.
//! Answers are compared before anything is timed.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measuring program stops at the first surprise"
)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mcpbolt::message::Envelope;
use mcpbolt_benches::contenders::{agree, engine, raw_routes};
use mcpbolt_benches::corpus;

fn decode(criterion: &mut Criterion) {
    for input in corpus::all() {
        assert!(agree(input.frame()), "{}: wrong answer", input.class);
        let bytes = input.bytes();
        let mut group = criterion.benchmark_group(input.class);
        group
            .throughput(Throughput::Bytes(bytes.len() as u64))
            .sample_size(20)
            .warm_up_time(Duration::from_millis(200))
            .measurement_time(Duration::from_secs(1));
        group.bench_function("mcpbolt", |bencher| {
            let mut envelope = Envelope::new();
            bencher.iter(|| engine(black_box(input.frame()), &mut envelope));
        });
        group.bench_function("serde_json RawValue+routes", |bencher| {
            bencher.iter(|| black_box(raw_routes(black_box(bytes))));
        });
        #[cfg(feature = "peers")]
        group.bench_function("sonic-rs LazyValue", |bencher| {
            bencher.iter(|| mcpbolt_benches::peers::sonic_lazy(black_box(bytes)).is_some());
        });
        group.finish();
    }
}

criterion_group!(benches, decode);
criterion_main!(benches);
