//! Two servers in turns, and a server behind a proxy.

use super::servers::{Listening, Refusing, example};
use super::{Loaded, Scratch, number};

const TURNS: [&str; 8] = [
    "--workload",
    "echo",
    "--rate",
    "100",
    "--duration",
    "200ms",
    "--rounds",
    "6",
];

/// A proxy adds latency, and has a processor time of its own.
#[test]
fn a_proxy_adds_latency() {
    let server = Listening::workloads("http://127.0.0.1:0/mcp");
    let proxy = Listening::proxy(&server.address);
    let plot = Scratch::new("svg");
    let more = [
        "--through",
        &proxy.address,
        "--plot",
        plot.path(),
        &server.address,
    ];
    let loaded = Loaded::new(&[&TURNS[..], &more].concat());
    assert!(
        loaded.said().contains("the gateway adds "),
        "{}",
        loaded.said()
    );
    let report = loaded.succeeded();
    for side in ["first", "second"] {
        assert_eq!(
            number(&report, &format!("/{side}/calls")),
            120.0,
            "{report}"
        );
        assert_eq!(number(&report, &format!("/{side}/errors")), 0.0, "{report}");
    }
    assert_eq!(report["rounds"].as_array().unwrap().len(), 6, "{report}");
    assert_eq!(report["relation"], "through", "{report}");
    for name in ["p50", "p99"] {
        let at = |end: &str| number(&report, &format!("/added_ms/{name}/{end}"));
        assert!(
            at("low") <= at("value") && at("value") <= at("high"),
            "{report}"
        );
    }
    if cfg!(target_os = "linux") {
        assert!(
            number(&report, "/gateway_cpu_us_per_call") > 1.0,
            "{report}"
        );
    }
    assert!(plot.read().contains("second p99"), "{}", plot.read());
}

/// A server that is slower by far is seen to be; bounds on the ratio heed the interval.
#[test]
fn a_slower_server_is_seen() {
    let fast = example("faulty");
    // It stands still for 490 ms of each 500, which is more than any stall of this machine adds to most calls of the other one.
    let slow = format!("stdio:{fast} freezes:500:490");
    let against = [
        "--against",
        &slow,
        "--fail-if",
        "ratio.p50>1.5",
        "--",
        &fast,
    ];
    let loaded = Loaded::new(&[&TURNS[..], &against].concat());
    assert_eq!(loaded.output.status.code(), Some(1), "{}", loaded.said());
    assert!(
        loaded.said().contains("ratio.p50 is between "),
        "{}",
        loaded.said()
    );
    assert_eq!(
        loaded.report["ratio"]["p50"]["verdict"], "more",
        "{}",
        loaded.report
    );
    let against = ["--against", &slow, "--fail-if", "ratio.p50<1", "--", &fast];
    Loaded::new(&[&TURNS[..], &against].concat()).succeeded();
}

/// A turn in which no request ends has no latency, rather than one of 0 ms, so the pair has no ratio.
#[test]
fn a_turn_without_an_answer_has_no_ratio() {
    let server = example("faulty");
    let against = format!("stdio:{server}");
    let args = ["--workload", "echo", "--rate", "2", "--duration", "200ms"];
    let more = ["--rounds", "6", "--against", &against, "--", &server];
    let loaded = Loaded::new(&[&args[..], &more].concat());
    assert_eq!(loaded.output.status.code(), Some(1), "{}", loaded.said());
    assert!(
        loaded
            .said()
            .contains("12 of 12 turns have no answered request"),
        "{}",
        loaded.said()
    );
    let report = &loaded.report;
    for absent in [
        "/ratio/p50",
        "/added_ms/p50",
        "/rounds/0/first/p50_ms",
        "/first/latency_ms",
    ] {
        assert_eq!(report.pointer(absent), None, "{absent}: {report}");
    }
}

/// The number and the share of errors are those of both sides.
#[test]
fn errors_of_the_first_side_count_too() {
    let server = example("faulty");
    let against = format!("stdio:{server}");
    let run = |bound: &str| {
        let more = [
            "--against",
            &against,
            "--fail-if",
            bound,
            "--",
            &server,
            "wrong:5",
        ];
        Loaded::new(&[&TURNS[..], &more].concat())
    };
    // A fifth of the first side's calls are wrong: a tenth of all.
    let loaded = run("errors>5%");
    assert_eq!(loaded.output.status.code(), Some(1), "{}", loaded.said());
    run("errors>15%").succeeded();
}

/// A gateway gets the credentials of the server; another server gets its own alone.
#[test]
fn another_server_does_not_get_the_credentials_of_the_first_one() {
    let server = Listening::workloads("http://127.0.0.1:0/mcp");
    let heard = |option: &str, more: &[&str]| {
        let other = Refusing::new();
        let args = [&server.address, "--bearer", "mine", option, &other.address];
        let loaded = Loaded::new(&[&TURNS[..], &args[..], more].concat());
        assert!(!loaded.output.status.success(), "{}", loaded.said());
        other.authorization()
    };
    assert_eq!(heard("--through", &[]), "bearer mine");
    assert_eq!(heard("--against", &[]), "");
    assert_eq!(
        heard("--against", &["--other-bearer", "theirs"]),
        "bearer theirs"
    );
    let header = ["--other-header", "Authorization=Basic abc"];
    assert_eq!(heard("--against", &header), "basic abc");
}

/// The same with the variables of a command.
#[cfg(unix)]
#[test]
fn another_command_does_not_get_the_variables_of_the_first_one() {
    let server = example("faulty");
    let (script, heard) = (Scratch::new("sh"), Scratch::new("heard"));
    let text = format!("echo \"<$TOKEN>\" > '{}'\nexec '{server}'\n", heard.path());
    std::fs::write(script.path(), text).unwrap();
    let other = format!("stdio:sh {}", script.path());
    let run = |relation: &str, more: &[&str]| {
        let args = [relation, &other, "--env", "TOKEN=mine"];
        let server = ["--", server.as_str()];
        Loaded::new(&[&TURNS[..], &args, more, &server].concat()).succeeded();
        heard.read()
    };
    assert_eq!(run("--against", &[]), "<>\n");
    let theirs = ["--other-env", "TOKEN=theirs"];
    assert_eq!(run("--against", &theirs), "<theirs>\n");
    assert_eq!(run("--through", &[]), "<mine>\n");
}
