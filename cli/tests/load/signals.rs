//! Signals end a load early.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::servers::example;
use super::{Scratch, number};

/// Loads the example `faulty` for an hour, and ends it after a second by a signal. Returns the status and the report.
fn interrupted(signal: &str, fault: &str, args: &[&str]) -> (Option<i32>, Value) {
    let (json, ended) = (Scratch::new("json"), Scratch::new("ended"));
    let server = format!(
        "'{}' {fault}; echo yes > '{}'",
        example("faulty"),
        ended.path()
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpbolt"));
    command.args(["load", "--workload", "echo", "--live", "--warm-up", "0s"]);
    command
        .args(["--json", json.path(), "--timeout", "1h"])
        .args(args);
    command.args(["--", "sh", "-c", &server]);
    let mut load = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(load.stderr.take().unwrap()).lines();
    let is_row = |line: &String| line.trim_start().starts_with("1 ");
    said.by_ref().map(Result::unwrap).find(is_row).unwrap();
    let begin = Instant::now();
    let kill = Command::new("kill")
        .args([signal, &load.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let rest: Vec<_> = said.map(Result::unwrap).collect();
    let status = load.wait().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(60), "{rest:?}");
    assert_eq!(ended.read(), "yes\n", "the server goes on: {rest:?}");
    (
        status.code(),
        serde_json::from_str(&json.read()).unwrap_or_default(),
    )
}

#[test]
fn what_was_measured_up_to_a_signal_is_reported() {
    for pace in [["--in-flight", "2"], ["--rate", "100"]] {
        let (status, report) =
            interrupted("-INT", "", &[&pace[..], &["--duration", "1h"]].concat());
        assert_eq!(status, Some(130), "{report}");
        assert!(number(&report, "/calls") > 10.0, "{report}");
        assert_eq!(number(&report, "/errors"), 0.0, "{report}");
        let seconds = number(&report, "/duration_s");
        assert!((0.9..600.0).contains(&seconds), "{report}");
    }
}

/// A server that answers nothing does not hold up the end.
#[test]
fn a_signal_ends_the_load_of_a_silent_server() {
    let (status, report) = interrupted("-TERM", "silent:1", &["--rate", "50", "--duration", "1h"]);
    assert_eq!(status, Some(143), "{report}");
    assert_eq!(number(&report, "/calls"), 0.0, "{report}");
}

/// Rounds and rates that are over are reported; the one that goes on is not.
#[test]
fn a_signal_ends_rounds_and_ramps() {
    let against = format!("stdio:{}", example("faulty"));
    let pace = ["--rate", "50", "--duration", "1h"];
    let (status, report) = interrupted("-INT", "", &[&pace[..], &["--against", &against]].concat());
    assert_eq!(status, Some(130), "{report}");
    assert!(report.is_null(), "no round was over: {report}");
    let ramp = ["--ramp", "50..100", "--duration", "1h"];
    let (status, report) = interrupted("-INT", "", &ramp);
    assert_eq!((status, report.is_null()), (Some(130), true), "{report}");
}
