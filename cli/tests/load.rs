//! `mcpbolt load` against servers whose behaviour is known.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

mod serving;

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use serving::Serving;

const SIMPLE: [&str; 5] = [
    "load",
    "--tool",
    "test_simple_text",
    "--expect",
    "This is a simple text response for testing.",
];

/// Loads the sample server of the examples, which adds.
fn load_adder(args: &[&str]) -> (Output, Value) {
    let command = PathBuf::from(env!("CARGO_BIN_EXE_mcpbolt"));
    let adder = command.with_file_name("examples").join("adder");
    let file = std::env::temp_dir().join(format!(
        "mcpbolt-load-{}-{}.json",
        std::process::id(),
        args.len()
    ));
    let mut run = Command::new(command);
    run.args(["load", "--tool", "add", "--warm-up", "100ms", "--json"])
        .arg(&file);
    let output = run.args(args).arg("--").arg(adder).output().unwrap();
    let report =
        std::fs::read(&file).map_or(Value::Null, |json| serde_json::from_slice(&json).unwrap());
    let _ = std::fs::remove_file(&file);
    (output, report)
}

#[test]
fn calls_at_a_rate_are_all_sent_and_counted() {
    let args = [
        "--arguments",
        r#"{"a": {n}, "b": 0}"#,
        "--expect",
        "{n}",
        "--rate",
        "200",
        "--duration",
        "1s",
    ];
    let (output, report) = load_adder(&args);
    assert!(output.status.success(), "{output:?}");
    // Of the warm-up none is counted; the last call of the measured time is due before its end.
    assert_eq!(
        (&report["calls"], &report["errors"]),
        (&200.into(), &0.into()),
        "{report}"
    );
    let latency = &report["latency_ms"];
    let at = |name: &str| latency[name].as_f64().unwrap();
    assert!(
        at("p50") > 0.0 && at("p50") <= at("p90") && at("p90") <= at("p95"),
        "{report}"
    );
    assert!(at("p95") <= at("p99") && at("p99") <= at("max"), "{report}");
    if cfg!(target_os = "linux") {
        assert!(
            report["server_cpu_us_per_call"].as_f64().unwrap() > 1.0,
            "{report}"
        );
        assert!(
            report["server_peak_bytes"].as_u64().unwrap() > 500_000,
            "{report}"
        );
    }
}

#[test]
fn calls_in_flight_follow_each_other_over_several_connections() {
    let args = [
        "--arguments",
        r#"{"a": {n}, "b": 1}"#,
        "--in-flight",
        "8",
        "--connections",
        "3",
        "--duration",
        "500ms",
    ];
    let (output, report) = load_adder(&args);
    assert!(output.status.success(), "{output:?}");
    assert!(report["calls"].as_u64().unwrap() > 50, "{report}");
}

#[test]
fn wrong_answers_are_errors_and_too_many_of_them_a_failure() {
    let args = [
        "--arguments",
        r#"{"a": {n}, "b": 1}"#,
        "--expect",
        "{n}",
        "--rate",
        "100",
        "--duration",
        "300ms",
    ];
    let (output, report) = load_adder(&args);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(
        (&report["calls"], &report["errors"]),
        (&0.into(), &30.into()),
        "{report}"
    );
    assert_eq!(
        report["failures"]["the answer is not the expected text"], 30,
        "{report}"
    );
    let (output, _) = load_adder(&[&args[..], &["--max-errors", "100"]].concat());
    assert!(output.status.success(), "{output:?}");
    let slow = [
        "--arguments",
        r#"{"a": 1, "b": 1}"#,
        "--duration",
        "200ms",
        "--max-p99",
        "0ms",
    ];
    let (output, _) = load_adder(&slow);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("at most 0 ms may be"),
        "{output:?}"
    );
    let (output, report) = load_adder(&[
        "--arguments",
        "{}",
        "--duration",
        "200ms",
        "--max-errors",
        "50",
    ]);
    let failures = report["failures"].as_object().unwrap();
    assert!(
        !output.status.success()
            && failures
                .keys()
                .all(|why| why.starts_with("the tool failed: ")),
        "{report}"
    );
}

#[test]
fn wrong_arguments_are_told() {
    for (args, why) in [
        (["--arguments", "[1]"], "must be a JSON object"),
        (["--arguments", "{"], "--arguments is not JSON"),
        (["--rate", "0"], "--rate must be more than 0"),
        (["--in-flight", "0"], "--in-flight must be between"),
        (["--connections", "0"], "--connections must be at least 1"),
        (["--duration", "0s"], "--duration must be more than 0"),
        (["--duration", "5"], "write 500ms, 30s, 5m or 1h"),
    ] {
        let (output, _) = load_adder(&args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains(why),
            "{args:?}: {said}"
        );
    }
}

/// A server that stands still is seen as its clients see it: each call that is due meanwhile waits for the rest of that
/// time. A loop that sends no call while one is unanswered would see one slow call (coordinated omission).
#[cfg(unix)]
#[test]
fn calls_that_are_due_while_the_server_stands_still_count() {
    let server = Serving::with(&["serve", "http://127.0.0.1:0/mcp", "--log", "info"]);
    let signal = |name: &str| {
        let mut kill = Command::new("kill");
        assert!(
            kill.args([name, &server.process.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
    };
    let is_over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(600));
                signal("-STOP");
                std::thread::sleep(Duration::from_millis(400));
                signal("-CONT");
            }
        });
        let output = server.run(
            &[
                &SIMPLE[..],
                &["--rate", "100", "--duration", "2s", "--json", "/dev/stdout"],
            ]
            .concat(),
        );
        is_over.store(true, Ordering::Relaxed);
        output
    });
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let report: Value = serde_json::from_str(&said[said.find('{').unwrap()..]).unwrap();
    assert_eq!(
        (&report["calls"], &report["errors"]),
        (&200.into(), &0.into()),
        "{output:?}"
    );
    // Four in ten calls are due while it stands still, so one in ten waits for 300 ms or more.
    let at = |name: &str| report["latency_ms"][name].as_f64().unwrap();
    assert!(at("p95") >= 250.0 && at("max") < 4000.0, "{report}");
}
