//! Open and closed loops, and what they see of a server that stands still.

use std::time::{Duration, Instant};

use super::servers::{Listening, example};
use super::{Loaded, Scratch, number};

/// Each call at a rate is sent and counted once, and the report has its figures.
#[test]
fn calls_at_a_rate_are_all_sent_and_counted() {
    let call = r#"{"text": "call {n}"}"#;
    let args = [
        "--tool",
        "echo",
        "--arguments",
        call,
        "--expect",
        "call {n}",
    ];
    let pace = ["--rate", "200", "--duration", "1s", "--live"];
    let loaded = Loaded::of(&[&args[..], &pace].concat(), "workloads", "stdio:");
    assert!(loaded.said().contains("p99 ms"), "{}", loaded.said());
    let report = loaded.succeeded();
    // None of the warm-up; the last call is due before the end of the measured time.
    assert_eq!(
        (number(&report, "/calls"), number(&report, "/errors")),
        (200.0, 0.0)
    );
    assert_eq!(number(&report, "/rate"), 200.0);
    let lag = |name: &str| number(&report, &format!("/send_lag_ms/{name}"));
    assert!(lag("p99") > 1e-3 && lag("max") >= lag("p99"), "{report}");
    let quantiles = ["p50", "p90", "p95", "p99", "max"]
        .map(|name| number(&report, &format!("/latency_ms/{name}")));
    assert!(quantiles[0] > 0.0 && quantiles.is_sorted(), "{report}");
    let stretches = report["timeline"].as_array().unwrap();
    let calls: f64 = stretches
        .iter()
        .map(|stretch| number(stretch, "/calls"))
        .sum();
    assert_eq!((stretches.len(), calls), (20, 200.0), "{report}");
    if cfg!(target_os = "linux") {
        assert!(number(&report, "/server_cpu_us_per_call") > 1.0, "{report}");
        assert!(number(&report, "/client_cpu_us_per_call") > 1.0, "{report}");
        let threads = report["server_threads_cpu_us_per_call"]
            .as_object()
            .unwrap();
        let all: f64 = threads.values().map(|cpu| cpu.as_f64().unwrap()).sum();
        assert!(
            all > 1.0 && threads.keys().any(|name| name.starts_with("mcpbolt")),
            "{report}"
        );
        let memory = |name: &str| number(&report, &format!("/server_memory_bytes/{name}"));
        assert!(
            memory("begin") > 5e5 && memory("peak") >= memory("end"),
            "{report}"
        );
    }
}

#[test]
fn calls_in_flight_follow_each_other_over_several_connections() {
    let args = [
        "--workload",
        "echo",
        "--in-flight",
        "8",
        "--connections",
        "3",
    ];
    let report = Loaded::good(
        &[&args[..], &["--duration", "500ms"]].concat(),
        "workloads",
        "stdio:",
    );
    assert!(number(&report, "/calls") > 50.0, "{report}");
    assert!(report.get("rate").is_none() && report.get("send_lag_ms").is_none());
}

/// Connections to a running server are closed together: closing one waits for all of the process.
#[test]
fn the_end_does_not_wait_for_each_connection() {
    let server = Listening::workloads("http://127.0.0.1:0/mcp");
    let args = ["--workload", "echo", "--in-flight", "8"];
    let more = ["--connections", "8", "--duration", "100ms", &server.address];
    let begun = Instant::now();
    Loaded::new(&[&args[..], &more].concat()).succeeded();
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// Calls that are due while a server stands still wait for the rest of that time, and an open loop counts that. The
/// truth is known: a fifth of all calls is due in 400 ms of 2 s, so one in a hundred waits for 380 ms or more. A closed
/// loop sends one call in that time and sees next to nothing (coordinated omission).
#[test]
fn an_open_loop_sees_a_frozen_server_as_its_clients_do() {
    const TRUTH_MS: f64 = 380.0;
    let run = |pace: &[&str]| {
        let args = ["--workload", "echo", "--duration", "4s", "--warm-up", "0s"];
        Loaded::good(&[&args[..], pace].concat(), "faulty", "freezes:2000:400")
    };
    let (open, closed) = (run(&["--rate", "200"]), run(&["--in-flight", "1"]));
    assert_eq!(
        number(&open, "/calls"),
        800.0,
        "the rate was not held: {open}"
    );
    let p99 = number(&open, "/latency_ms/p99");
    assert!(p99 > TRUTH_MS * 0.9 && p99 < TRUTH_MS * 10.0, "{open}");
    // A tenth of all calls waits for 200 ms or more; but of a closed loop, only one or two for each freeze.
    let p90 = |report| number(report, "/latency_ms/p90");
    assert!(p90(&open) > TRUTH_MS / 3.0, "{open}");
    assert!(p90(&closed) < TRUTH_MS / 3.0, "a closed loop: {closed}");
}

/// Each rate of a ramp is a step, and the knee is one of them.
#[test]
fn a_ramp_finds_the_rate_that_is_held() {
    let plot = Scratch::new("svg");
    let args = [
        "--workload",
        "echo",
        "--ramp",
        "5..2k",
        "--steps",
        "3",
        "--duration",
        "500ms",
    ];
    let limit = ["--knee-p99", "60s", "--plot", plot.path()];
    let loaded = Loaded::of(&[&args[..], &limit].concat(), "faulty", "");
    // A parsed report has each member once; the text may have more.
    let count = loaded.json.matches("\"rate\":").count();
    let ramp = loaded.succeeded();
    let steps = ramp["steps"].as_array().unwrap();
    assert_eq!(count, steps.len(), "{ramp}");
    let rates: Vec<_> = steps.iter().map(|step| number(step, "/rate")).collect();
    assert!(rates.len() >= 3 && rates.is_sorted(), "{ramp}");
    assert!((rates[0] - 5.0).abs() < 1e-6, "{ramp}");
    assert!(rates.contains(&number(&ramp, "/knee")), "{ramp}");
    assert!(plot.read().contains("knee: "), "{}", plot.read());
}

/// No rate is held if the p99 may not be what it is.
#[test]
fn a_ramp_without_a_held_rate_fails() {
    let args = [
        "--workload",
        "echo",
        "--ramp",
        "20..40",
        "--steps",
        "2",
        "--duration",
        "200ms",
    ];
    let loaded = Loaded::of(&[&args[..], &["--knee-p99", "0ms"]].concat(), "faulty", "");
    assert_eq!(loaded.output.status.code(), Some(1), "{}", loaded.said());
    assert!(
        loaded.said().contains("the first rate was not held"),
        "{}",
        loaded.said()
    );
    assert_eq!(loaded.report.get("knee"), None, "{}", loaded.report);
}

#[test]
fn a_server_that_listens_is_loaded_at_its_address() {
    let server = Listening::workloads("http://127.0.0.1:0/mcp");
    let plot = Scratch::new("svg");
    let args = [
        "--workload",
        "echo",
        "--rate",
        "50",
        "--duration",
        "400ms",
        "--plot",
        plot.path(),
    ];
    let report = Loaded::new(&[&[server.address.as_str()], &args[..]].concat()).succeeded();
    assert_eq!(number(&report, "/calls"), 20.0, "{report}");
    assert!(plot.read().ends_with("</svg>\n"), "{}", plot.read());
    let id = server.id().to_string();
    let named = ["--pid", &id, &server.address];
    let report = Loaded::new(&[&args[..6], &named].concat()).succeeded();
    if cfg!(target_os = "linux") {
        assert!(number(&report, "/server_cpu_us_per_call") > 1.0, "{report}");
    }
}

/// The requests of a trace are sent at its times, from the begin again when it is over.
#[test]
fn a_trace_is_replayed_at_its_times() {
    let trace = Scratch::new("jsonl");
    let line = |at: u32, text: &str| {
        format!(
            "{{\"at_ms\":{at},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":\"{text}\"}}}},\"expect\":\"{text}\"}}\n"
        )
    };
    let list = "{\"at_ms\":120,\"method\":\"tools/list\"}\n";
    std::fs::write(trace.path(), line(100, "a") + &line(110, "b") + list).unwrap();
    let args = [
        "--trace",
        trace.path(),
        "--duration",
        "300ms",
        "--warm-up",
        "0s",
    ];
    let report = Loaded::good(&args, "workloads", "stdio:");
    // Three requests in 30 ms.
    assert_eq!(number(&report, "/calls"), 30.0, "{report}");
    let twice = Loaded::good(
        &[&args[..], &["--speed", "2"]].concat(),
        "workloads",
        "stdio:",
    );
    assert_eq!(number(&twice, "/calls"), 60.0, "{twice}");
    std::fs::write(
        trace.path(),
        line(0, "a").replace("\"expect\":\"a\"", "\"expect\":\"z\""),
    )
    .unwrap();
    let wrong = Loaded::of(
        &[&args[..], &["--rate", "100"]].concat(),
        "workloads",
        "stdio:",
    );
    assert_eq!(number(&wrong.report, "/errors"), 30.0, "{}", wrong.report);
}

/// What a client has recorded with MCPBOLT_TRACE is a trace.
#[test]
fn a_recorded_session_is_replayed() {
    let folder = std::env::temp_dir().join(format!("mcpbolt-load-traces-{}", std::process::id()));
    let call = std::process::Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
        .args([
            "call",
            "echo",
            r#"{"text":"recorded"}"#,
            "--",
            &example("workloads"),
        ])
        .env("MCPBOLT_TRACE", &folder)
        .output()
        .unwrap();
    assert!(call.status.success(), "{call:?}");
    let files = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let trace = files
        .into_iter()
        .find(|path| path.to_str().unwrap().contains("client-"))
        .unwrap();
    let args = [
        "--trace",
        trace.to_str().unwrap(),
        "--rate",
        "50",
        "--duration",
        "200ms",
    ];
    let report = Loaded::good(&args, "workloads", "stdio:");
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!(number(&report, "/calls"), 10.0, "{report}");
}

/// A rate at which nothing is answered is not held.
#[test]
fn a_rate_without_an_answer_is_not_held() {
    let args = ["--workload", "echo", "--ramp", "1..2", "--steps", "2"];
    let limits = ["--duration", "200ms", "--knee-p99", "60s"];
    let loaded = Loaded::of(&[&args[..], &limits].concat(), "faulty", "");
    assert_eq!(loaded.output.status.code(), Some(1), "{}", loaded.said());
    assert!(
        loaded.said().contains("no rate was held"),
        "{}",
        loaded.said()
    );
    assert_eq!(loaded.report.get("knee"), None, "{}", loaded.report);
}

/// Answers that no request has asked for fail a ramp, whichever rates are held.
#[test]
fn a_ramp_with_second_answers_fails() {
    let args = ["--workload", "echo", "--ramp", "50..100", "--steps", "2"];
    let limits = ["--duration", "400ms", "--knee-p99", "60s"];
    let loaded = Loaded::of(&[&args[..], &limits].concat(), "faulty", "twice:10");
    assert_eq!(loaded.output.status.code(), Some(1), "{}", loaded.said());
    assert!(
        loaded.said().contains("error: errors is "),
        "{}",
        loaded.said()
    );
    assert!(number(&loaded.report, "/strays") > 0.0, "{}", loaded.report);
}
