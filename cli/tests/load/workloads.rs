//! Each kind of requests, over each carrier, in both eras.

use super::servers::{Listening, SseOnly};
use super::{Loaded, number};

/// All kinds, with what they need besides.
const KINDS: [&[&str]; 7] = [
    &["echo"],
    &["sizes", "--bytes", "100,10k"],
    &["list"],
    &["progress", "--notifications", "5"],
    &["cancel"],
    &["listen", "--uri", "memo:note"],
    &["sampling"],
];

fn all_kinds(server: &[&str]) {
    for kind in KINDS {
        for revision in ["2025-11-25", "2026-07-28"] {
            let args = [
                "--rate",
                "50",
                "--duration",
                "200ms",
                "--revision",
                revision,
            ];
            let loaded = Loaded::new(&[&["--workload"], kind, &args[..], server].concat());
            let said = format!("{kind:?} in {revision}: {}", loaded.said());
            assert!(loaded.output.status.success(), "{said}");
            assert_eq!(number(&loaded.report, "/calls"), 10.0, "{said}");
        }
    }
}

#[test]
fn over_stdio() {
    let server = super::example("workloads");
    all_kinds(&["--", &server]);
}

#[test]
fn over_http() {
    all_kinds(&[&Listening::workloads("http://127.0.0.1:0/mcp").address]);
}

#[test]
fn over_websockets() {
    let server = Listening::workloads("ws://127.0.0.1:0/mcp");
    all_kinds(&[&server.address.replace("http", "ws")]);
}

#[test]
fn over_tcp() {
    all_kinds(&[&Listening::workloads("tcp:127.0.0.1:0").address]);
}

#[cfg(unix)]
#[test]
fn over_a_unix_socket() {
    let socket = super::Scratch::new("socket");
    let server = Listening::workloads(&format!("unix:{}", socket.path()));
    all_kinds(&[&server.address]);
    if cfg!(target_os = "linux") {
        // The process that listens is found.
        let args = ["--workload", "echo", "--rate", "50", "--duration", "200ms"];
        let report = Loaded::new(&[&[server.address.as_str()], &args[..]].concat()).succeeded();
        assert!(number(&report, "/server_cpu_us_per_call") > 1.0, "{report}");
    }
}

/// A server of 2024-11-05, which has two endpoints and no other.
#[test]
fn over_http_with_sse() {
    let server = Listening::workloads("http://127.0.0.1:0/mcp");
    let old = SseOnly::before(&server.address);
    let args = ["--workload", "echo", "--rate", "50", "--duration", "200ms"];
    let report = Loaded::new(&[&[old.address.as_str()], &args[..]].concat()).succeeded();
    assert_eq!(number(&report, "/calls"), 10.0, "{report}");
    assert_eq!(old.streams(), 1);
}
