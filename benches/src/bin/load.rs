//! The processor time that `mcpbolt load` itself uses for a call, beside a loop on rmcp's client. Both call `echo` of one
//! server over pipes and check each text. They take turns; figures are medians over the rounds.
//!
//! `cargo xtask bench load [--quick]`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that measures prints its figures and stops at the first surprise"
)]

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mcpbolt_benches::rounds::{interval, median};
use rmcp::model::CallToolRequestParams;
use rmcp::service::{Peer, RoleClient, ServiceExt as _};
use rmcp::transport::TokioChildProcess;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

/// Bytes of each text, as those of `--workload echo`.
const TEXT_BYTES: usize = 100;

fn main() {
    let is_quick = std::env::args().any(|it| it == "--quick");
    let (rounds, length) = match is_quick {
        true => (3, Duration::from_millis(300)),
        false => (20, Duration::from_secs(1)),
    };
    let built = std::env::current_exe().unwrap();
    let built = built.parent().unwrap();
    let (command, server) = (built.join("mcpbolt"), built.join("examples/workloads"));
    for in_flight in [1, 32] {
        let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (our, their) = (
                ours_of_a_call(&command, &server, in_flight, length),
                theirs_of_a_call(&server, in_flight, length),
            );
            ours.push(our);
            theirs.push(their);
            ratios.push(our / their);
        }
        let (our, their) = (median(ours), median(theirs));
        println!(
            "{in_flight:>2} in flight: {our:.1} µs of CPU a call, rmcp's client {their:.1} µs"
        );
        println!("              {} times as much", interval(ratios));
    }
}

/// The processor time of `mcpbolt load`, by its own report, in microseconds.
fn ours_of_a_call(command: &PathBuf, server: &PathBuf, in_flight: usize, length: Duration) -> f64 {
    let report = std::env::temp_dir().join(format!("mcpbolt-bench-load-{}", std::process::id()));
    let length = format!("{}ms", length.as_millis());
    let output = Command::new(command)
        .args([
            "load",
            "--workload",
            "echo",
            "--revision",
            "2025-11-25",
            "--warm-up",
            "200ms",
        ])
        .args([
            "--in-flight",
            &in_flight.to_string(),
            "--duration",
            &length,
            "--json",
        ])
        .arg(&report)
        .arg("--")
        .arg(server)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let figures: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    std::fs::remove_file(report).unwrap();
    figures["client_cpu_us_per_call"].as_f64().unwrap()
}

/// Processor time that a call costs rmcp's client, in this process, in microseconds.
fn theirs_of_a_call(server: &PathBuf, in_flight: usize, length: Duration) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let transport = TokioChildProcess::new(tokio::process::Command::new(server)).unwrap();
        let client = ().serve(transport).await.unwrap();
        let calls = Arc::new(AtomicU64::new(0));
        let warm = Instant::now() + Duration::from_millis(200);
        call_until(client.peer(), in_flight, warm, &calls).await;
        let (before, called) = (on_processor(), calls.load(Relaxed));
        call_until(client.peer(), in_flight, Instant::now() + length, &calls).await;
        let used = on_processor() - before;
        let called = calls.load(Relaxed) - called;
        client.cancel().await.unwrap();
        used.as_secs_f64() * 1e6 / called as f64
    })
}

async fn call_until(
    peer: &Peer<RoleClient>,
    in_flight: usize,
    end: Instant,
    calls: &Arc<AtomicU64>,
) {
    let one = |_| {
        let (peer, calls) = (peer.clone(), calls.clone());
        tokio::spawn(async move {
            while Instant::now() < end {
                let number = calls.fetch_add(1, Relaxed);
                let text = format!("{number:016x}{}", "x".repeat(TEXT_BYTES - 16));
                let arguments = serde_json::json!({ "text": text });
                let arguments = arguments.as_object().cloned().unwrap();
                let params = CallToolRequestParams::new("echo").with_arguments(arguments);
                let result = peer.call_tool(params).await.unwrap();
                assert_eq!(result.content[0].as_text().unwrap().text, text);
            }
        })
    };
    let running: Vec<_> = (0..in_flight).map(one).collect();
    for task in running {
        task.await.unwrap();
    }
}

/// The processor time of this process.
fn on_processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
