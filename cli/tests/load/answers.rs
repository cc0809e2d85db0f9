//! Wrong answers, too many, too few, and none.

use super::{Loaded, number};

const AT_A_RATE: [&str; 6] = ["--workload", "echo", "--rate", "100", "--duration", "1s"];

fn errors(loaded: &Loaded, why: &str) -> f64 {
    assert_eq!(loaded.output.status.code(), Some(1), "{}", loaded.said());
    let failures = loaded.report["failures"].as_object().unwrap();
    let counts = failures.iter().filter(|(failure, _)| failure.contains(why));
    counts.map(|(_, count)| count.as_f64().unwrap()).sum()
}

/// What the server does with each tenth call, and what the report says of that: of 100 calls, how many failed and why, and how many were
/// answered.
#[test]
fn answers_that_are_wrong_too_many_or_missing_are_counted() {
    for (server, timeout, why, failed, answered) in [
        ("wrong:10", "60s", "not the text that was sent", 10.0, 90.0),
        // Also of the warm-up, which is 10 calls.
        ("twice:10", "60s", "no request in flight", 11.0, 100.0),
        // And hold nothing up.
        ("silent:10", "2s", "timed out", 10.0, 90.0),
    ] {
        let args = [&AT_A_RATE[..], &["--timeout", timeout]].concat();
        let loaded = Loaded::of(&args, "faulty", server);
        let report = &loaded.report;
        assert_eq!(errors(&loaded, why), failed, "{server}: {report}");
        assert_eq!(number(report, "/errors"), failed, "{server}: {report}");
        assert_eq!(number(report, "/calls"), answered, "{server}: {report}");
    }
}

/// The rate goes on: each call that is due after the end of the server is an error.
#[test]
fn a_server_that_dies_midway_fails_the_rest() {
    let loaded = Loaded::of(&AT_A_RATE, "faulty", "dies:60");
    // Ten calls of the warm-up, and 49 answered ones.
    assert_eq!(number(&loaded.report, "/calls"), 49.0, "{}", loaded.report);
    assert_eq!(number(&loaded.report, "/errors"), 51.0, "{}", loaded.report);
    assert!(loaded.said().contains("errors is 51"), "{}", loaded.said());
    let closed = [
        "--workload",
        "echo",
        "--in-flight",
        "4",
        "--duration",
        "500ms",
    ];
    let loaded = Loaded::of(&closed, "faulty", "dies:60");
    assert_eq!(loaded.output.status.code(), Some(1), "{}", loaded.said());
    // A dead server is asked again after a pause, not as fast as the processor can.
    let errors = number(&loaded.report, "/errors");
    assert!((1.0..=300.0).contains(&errors), "{}", loaded.report);
}

#[test]
fn progress_out_of_order_is_an_error() {
    let args = [
        "--workload",
        "progress",
        "--rate",
        "50",
        "--duration",
        "400ms",
        "--warm-up",
        "0s",
    ];
    let args = [&args[..], &["--notifications", "3"]].concat();
    let report = Loaded::good(&args, "faulty", "");
    assert_eq!(number(&report, "/calls"), 20.0, "{report}");
    let loaded = Loaded::of(&args, "faulty", "swaps:10");
    assert_eq!(
        errors(&loaded, "progress was not reported in order"),
        2.0,
        "{}",
        loaded.report
    );
    // The last two of 3, 2, 1 are of no use.
    assert_eq!(
        errors(&loaded, "no request in flight"),
        4.0,
        "{}",
        loaded.report
    );
}

#[test]
fn a_tool_that_fails_is_an_error() {
    let args = [
        "--tool",
        "sleep",
        "--arguments",
        "{}",
        "--rate",
        "50",
        "--duration",
        "200ms",
    ];
    let loaded = Loaded::of(&args, "workloads", "stdio:");
    assert_eq!(errors(&loaded, "ms"), 10.0, "{}", loaded.report);
}

const CANCELS: [&str; 6] = [
    "--workload",
    "cancel",
    "--rate",
    "50",
    "--duration",
    "400ms",
];

/// One call of sleep that the server refuses fails alone. It fails at once, and the later ones wait for no other start.
#[test]
fn a_refused_call_of_sleep_fails_alone() {
    let loaded = Loaded::of(&CANCELS, "faulty", "refuses:10");
    let report = &loaded.report;
    assert_eq!(errors(&loaded, "no room"), 2.0, "{report}");
    assert_eq!(number(report, "/errors"), 2.0, "{report}");
    assert_eq!(number(report, "/calls"), 18.0, "{report}");
}

/// Answers to cancelled calls are allowed; others that no request has asked for are not.
#[test]
fn cancelled_calls_hide_no_second_answers() {
    Loaded::good(&CANCELS, "faulty", "insists");
    let loaded = Loaded::of(&CANCELS, "faulty", "twice:7");
    assert!(
        errors(&loaded, "no request in flight") > 0.0,
        "{}",
        loaded.report
    );
}

/// A subscription that is not acknowledged ends at the time-out.
#[test]
fn subscriptions_without_an_answer_time_out() {
    let args = [
        "--workload",
        "listen",
        "--uri",
        "memo:note",
        "--rate",
        "20",
        "--duration",
        "200ms",
    ];
    for revision in ["2025-11-25", "2026-07-28"] {
        let times = [
            "--warm-up",
            "0s",
            "--timeout",
            "200ms",
            "--revision",
            revision,
        ];
        let loaded = Loaded::of(&[&args[..], &times].concat(), "faulty", "deaf");
        assert_eq!(
            errors(&loaded, "timed out"),
            4.0,
            "{revision}: {}",
            loaded.said()
        );
        assert_eq!(
            number(&loaded.report, "/errors"),
            4.0,
            "{revision}: {}",
            loaded.report
        );
    }
}
