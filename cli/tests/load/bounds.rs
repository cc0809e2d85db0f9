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

/// The status is 2, and no server was started.
#[test]
fn wrong_arguments_are_told() {
    let (untimed, timed) = (Scratch::new("jsonl"), Scratch::new("jsonl"));
    let line = "{\"method\":\"tools/list\"}\n";
    std::fs::write(untimed.path(), line).unwrap();
    let line = "{\"at_ms\":5,\"method\":\"tools/list\"}\n";
    std::fs::write(timed.path(), line.repeat(2)).unwrap();
    let (untimed, timed) = (untimed.path(), timed.path());
    let started = Scratch::new("started");
    let server = format!("echo yes > '{}'", started.path());
    let against = ["--against", "stdio:true", "--connections", "2"];
    for (args, why) in [
        ("", "what to send is missing"),
        ("--tool echo --arguments [1]", "must be a JSON object"),
        ("--tool echo --arguments {", "--arguments is not JSON"),
        ("--workload dance", "possible values: echo, "),
        ("--trace /nowhere", "reading /nowhere"),
        ("--workload echo --rate 0", "a rate must be between 0.001"),
        (
            "--workload echo --rate 0.00000000001",
            "a rate must be between",
        ),
        (
            "--workload echo --in-flight 0",
            "it must be between 1 and 65536",
        ),
        ("--workload echo --connections 0", "it must be at least 1"),
        ("--workload echo --duration 0s", "it must be more than 0"),
        ("--workload echo --duration 5", "write 500ms, 30s, 5m or 1h"),
        ("--workload echo --bytes 10", "it must be at least 16"),
        ("--workload echo --fail-if p98>5ms", "the figures are p50, "),
        ("--workload echo --ramp 5", "write 100..20k"),
        (
            "--workload echo --ramp 1..2 --steps 1",
            "1 is not in 2..=1000",
        ),
        (
            "--workload echo --warm-up 99999999999999999999h",
            "is more than 1000h",
        ),
        ("--trace x --speed 0", "a speed must be between"),
        ("--trace x --speed 2 --rate 9", "cannot be used with"),
        (
            &format!("--trace {untimed} --speed 2"),
            "--speed is for a trace with at_ms",
        ),
        (&format!("--trace {timed}"), "no two different at_ms"),
        (
            &format!("--trace {timed} --speed 2"),
            "no two different at_ms",
        ),
        (
            &format!("--trace {timed} --uri a:b"),
            "--uri is for --workload listen",
        ),
        (
            &format!("--trace {timed} --tool echo"),
            "--tool is for calls of one tool",
        ),
        (
            "--workload cancel --tool echo",
            "--tool is for calls of one tool",
        ),
        (
            "--workload list --tool echo",
            "--tool is for calls of one tool",
        ),
        (
            "--workload listen --tool echo",
            "--tool is for calls of one tool",
        ),
        (
            "--workload echo --arguments {}",
            "--arguments is for --tool without --workload",
        ),
        (
            "--workload list --bytes 100",
            "--bytes is for --workload echo or sizes",
        ),
        (
            "--tool echo --notifications 5",
            "--notifications is for --workload progress",
        ),
        (
            "--workload echo --uri a:b",
            "--uri is for --workload listen",
        ),
        (
            "--workload cancel --connections 2",
            "takes one connection to a command",
        ),
        ("--workload echo --steps 3", "--ramp <FROM..TO>"),
        ("--workload echo --knee-p99 1s", "--ramp <FROM..TO>"),
        (
            "--workload echo --rounds 9",
            "--through <ADDRESS>|--against <ADDRESS>",
        ),
        (
            "--workload echo --other-pid 9",
            "--through <ADDRESS>|--against <ADDRESS>",
        ),
        (
            "--workload echo --other-prefix a",
            "--through <ADDRESS>|--against <ADDRESS>",
        ),
        ("--workload echo --other-bearer a", "--against <ADDRESS>"),
        ("--workload echo --other-env A=b", "--against <ADDRESS>"),
    ] {
        let words: Vec<_> = args.split_whitespace().collect();
        let loaded = Loaded::new(&[&words[..], &["--", "sh", "-c", &server]].concat());
        assert_eq!(loaded.output.status.code(), Some(2), "{args}");
        assert!(loaded.said().contains(why), "{args}: {}", loaded.said());
        assert_eq!(started.read(), "", "{args}");
    }
    let address = ["http://127.0.0.1:1/mcp", "--workload", "cancel"];
    let loaded = Loaded::new(&[&address[..], &against].concat());
    assert_eq!(loaded.output.status.code(), Some(2), "{}", loaded.said());
    let loaded = Loaded::new(&["--workload", "echo"]);
    assert!(loaded.said().contains("ADDRESS"), "{}", loaded.said());
    assert_eq!(loaded.output.status.code(), Some(2), "{}", loaded.said());
}

/// Options that do not fit the server are refused once it is connected, before any load.
#[test]
fn what_the_server_does_not_have_is_told() {
    let old = "2025-11-25";
    for (args, why) in [
        (&["--tool", "ecko"][..], "it has echo, "),
        (&["--workload", "listen", "--revision", old], "add --uri"),
    ] {
        let loaded = Loaded::of(args, "workloads", "stdio:");
        assert_eq!(loaded.output.status.code(), Some(1), "{args:?}");
        assert!(loaded.said().contains(why), "{args:?}: {}", loaded.said());
    }
}
