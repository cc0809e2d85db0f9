//! Bounds beyond which the command fails, and arguments that are wrong.

use super::{Loaded, Scratch};

const SHORT: [&str; 6] = ["--workload", "echo", "--rate", "50", "--duration", "200ms"];

#[test]
fn a_crossed_bound_is_told_and_fails_the_command() {
    for (bound, said) in [
        ("p99>0ms", "p99 is "),
        ("rate>1", "rate is "),
        ("max<1h", "max is "),
        ("knee<1", "knee is not known here"),
    ] {
        let loaded = Loaded::of(
            &[&SHORT[..], &["--fail-if", bound]].concat(),
            "workloads",
            "stdio:",
        );
        assert_eq!(
            loaded.output.status.code(),
            Some(1),
            "{bound}: {}",
            loaded.said()
        );
        assert!(
            loaded.said().contains(&format!("error: {said}")),
            "{}",
            loaded.said()
        );
        assert!(
            loaded.report["calls"] == 10,
            "the report is there all the same"
        );
    }
    let kept = [
        "--fail-if",
        "p99>10s",
        "--fail-if",
        "rate<1",
        "--fail-if",
        "errors>1%",
    ];
    Loaded::good(&[&SHORT[..], &kept].concat(), "workloads", "stdio:");
}

/// A trace whose times are beyond all clocks is no panic; and a table that nobody reads is none either.
#[test]
fn extremes_do_not_panic() {
    let trace = Scratch::new("jsonl");
    let line = |at: &str| format!("{{\"at_ms\":{at},\"method\":\"tools/list\"}}\n");
    std::fs::write(trace.path(), line("0") + &line("1e22")).unwrap();
    let args = ["--trace", trace.path(), "--speed", "0.001"];
    let args = [&args[..], &["--duration", "200ms", "--warm-up", "0s"]].concat();
    let report = Loaded::good(&args, "workloads", "stdio:");
    assert_eq!(report["calls"], 1, "{report}");
}

#[cfg(unix)]
#[test]
fn a_live_table_that_nobody_reads_is_dropped() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_mcpbolt"));
    command.args(["load", "--workload", "echo", "--live", "--warm-up", "0s"]);
    command.args(["--rate", "50", "--duration", "2100ms", "--"]);
    command.arg(super::example("workloads"));
    let (read, write) = std::io::pipe().unwrap();
    drop(read);
    let output = command.stderr(write).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The second request is due after the end, so there is nothing to report, and nothing to be content with.
#[test]
fn a_run_without_a_finished_request_fails() {
    let args = ["--workload", "echo", "--rate", "1", "--duration", "200ms"];
    let loaded = Loaded::of(&args, "workloads", "stdio:");
    assert_eq!(loaded.output.status.code(), Some(1), "{}", loaded.said());
    assert!(
        loaded
            .said()
            .contains("no request of the measured time has ended"),
        "{}",
        loaded.said()
    );
    for absent in ["latency_ms", "send_lag_ms", "client_cpu_us_per_call"] {
        assert_eq!(loaded.report.get(absent), None, "{}", loaded.report);
    }
    assert_eq!(loaded.report["timeline"][0].get("p50_ms"), None);
}

#[test]
fn errors_are_allowed_up_to_a_bound() {
    let wrong = |bound: &str| {
        Loaded::of(
            &[&SHORT[..], &["--fail-if", bound]].concat(),
            "faulty",
            "wrong:5",
        )
    };
    assert!(wrong("errors>2").output.status.success());
    assert!(wrong("errors>20%").output.status.success());
    assert_eq!(wrong("errors>1").output.status.code(), Some(1));
    assert_eq!(wrong("errors>10%").output.status.code(), Some(1));
    assert_eq!(
        wrong("p99>10s").output.status.code(),
        Some(1),
        "none is allowed by default"
    );
}

#[test]
fn wrong_arguments_are_told() {
    let echo = ["--workload", "echo"];
    for (args, why) in [
        (vec![], "what to send is missing"),
        (
            vec!["--tool", "echo", "--arguments", "[1]"],
            "must be a JSON object",
        ),
        (
            vec!["--tool", "echo", "--arguments", "{"],
            "--arguments is not JSON",
        ),
        (vec!["--tool", "ecko"], "it has echo, "),
        (vec!["--workload", "dance"], "possible values: echo, "),
        (vec!["--trace", "/nowhere"], "reading /nowhere"),
        (
            [&echo[..], &["--rate", "0"]].concat(),
            "a rate must be between 0.001",
        ),
        (
            [&echo[..], &["--in-flight", "0"]].concat(),
            "--in-flight must be between",
        ),
        (
            [&echo[..], &["--connections", "0"]].concat(),
            "--connections must be at least 1",
        ),
        (
            [&echo[..], &["--duration", "0s"]].concat(),
            "--duration must be more than 0",
        ),
        (
            [&echo[..], &["--duration", "5"]].concat(),
            "write 500ms, 30s, 5m or 1h",
        ),
        (
            [&echo[..], &["--bytes", "10"]].concat(),
            "--bytes must be at least 16",
        ),
        (
            [&echo[..], &["--fail-if", "p98>5ms"]].concat(),
            "the figures are p50, ",
        ),
        ([&echo[..], &["--ramp", "5"]].concat(), "write 100..20k"),
        (
            [&echo[..], &["--warm-up", "99999999999999999999h"]].concat(),
            "is more than 1000h",
        ),
        (
            [&echo[..], &["--rate", "0.00000000001"]].concat(),
            "a rate must be between",
        ),
        (
            vec!["--trace", "x", "--speed", "0"],
            "a speed must be between",
        ),
        (
            vec!["--trace", "x", "--speed", "2", "--rate", "9"],
            "cannot be used with",
        ),
        ([&echo[..], &["--steps", "3"]].concat(), "--ramp <FROM..TO>"),
        (
            [&echo[..], &["--knee-p99", "1s"]].concat(),
            "--ramp <FROM..TO>",
        ),
        (
            [&echo[..], &["--rounds", "9"]].concat(),
            "--through <ADDRESS>|--against <ADDRESS>",
        ),
        (
            [&echo[..], &["--other-pid", "9"]].concat(),
            "--through <ADDRESS>|--against <ADDRESS>",
        ),
        (
            [&echo[..], &["--other-prefix", "a"]].concat(),
            "--through <ADDRESS>|--against <ADDRESS>",
        ),
        (
            [&echo[..], &["--other-bearer", "a"]].concat(),
            "--against <ADDRESS>",
        ),
    ] {
        let loaded = Loaded::of(&args, "workloads", "stdio:");
        assert!(!loaded.output.status.success(), "{args:?}");
        assert!(loaded.said().contains(why), "{args:?}: {}", loaded.said());
    }
    let loaded = Loaded::new(&["--workload", "echo"]);
    assert!(loaded.said().contains("ADDRESS"), "{}", loaded.said());
}
