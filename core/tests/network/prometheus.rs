//! Counts for Prometheus of servers and clients that are running.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpbolt::client::{Client, block_on};
use mcpbolt::connection::Principal;
use mcpbolt::io::ConnectOptions;
use mcpbolt::mcp::{Revision, Revisions};
use mcpbolt::model::Root;
use mcpbolt::policy::{Credentials, Policy};
use mcpbolt::server::{Arguments, Context, HandlerError, Server, Tool};
use mcpbolt::telemetry::{BUCKETS, Prometheus};
use serde_json::json;

fn server(prometheus: &Arc<Prometheus>) -> Server {
    Server::builder("counted", "1.0.0")
        .observer(prometheus.clone())
        .tool(Tool::new("good"), |_: Arguments, _| async {
            "secret answer"
        })
        .tool(Tool::new("bad"), |_: Arguments, _| async {
            Err::<&str, _>(HandlerError::new("secret failure"))
        })
        .build()
        .unwrap()
}

/// The samples of a text by their names and labels. Checks what every metric has: help and type before its samples, and
/// buckets that grow.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let (mut samples, mut metric) = (BTreeMap::new(), (String::new(), String::new()));
    let mut seen = std::collections::HashSet::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(seen.insert(name.to_owned()), "{name} twice");
            assert!(help.ends_with('.'), "{line}");
            metric.0 = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, metric.0);
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
            metric.1 = kind.to_owned();
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let base = name.split('{').next().unwrap();
            let suffixes = match &*metric.1 {
                "histogram" => &["_bucket", "_sum", "_count"][..],
                _ => &[""],
            };
            assert!(
                suffixes
                    .iter()
                    .any(|it| base == format!("{}{it}", metric.0)),
                "{line}"
            );
            let old = samples.insert(name.to_owned(), value.parse().unwrap());
            assert_eq!(old, None, "{name} twice");
        }
    }
    samples
}

/// The sum of the samples of that name that have these labels.
fn sum(samples: &BTreeMap<String, f64>, name: &str, labels: &[&str]) -> f64 {
    let has = |sample: &&String| {
        sample.split('{').next() == Some(name) && labels.iter().all(|it| sample.contains(it))
    };
    samples
        .iter()
        .filter(|(sample, _)| has(sample))
        .map(|(_, value)| value)
        .sum()
}

fn until(
    prometheus: &Prometheus,
    is_so: impl Fn(&BTreeMap<String, f64>) -> bool,
) -> BTreeMap<String, f64> {
    let begun = Instant::now();
    loop {
        let now = samples(&prometheus.text());
        if is_so(&now) {
            return now;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{now:#?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn both_sides_count_by_tool_outcome_and_transport() {
    for (address, revision, labels) in [
        (
            "http://127.0.0.1:0/mcp",
            Revision::V2026_07_28,
            [
                "network_transport=\"tcp\"",
                "network_protocol_name=\"http\"",
            ],
        ),
        (
            "http://127.0.0.1:0/mcp",
            Revision::V2025_11_25,
            [
                "network_transport=\"tcp\"",
                "network_protocol_name=\"http\"",
            ],
        ),
        (
            "tcp:127.0.0.1:0",
            Revision::V2025_11_25,
            ["network_transport=\"tcp\"", ""],
        ),
    ] {
        let (near, far) = (Prometheus::new(), Prometheus::new());
        let serving = server(&far).serve(address).start().unwrap();
        far.watch(serving.metrics().clone());
        let client = Client::builder("test", "1")
            .revisions(Revisions::only(revision))
            .observer(near.clone());
        let client = client.open(serving.address(), ConnectOptions::default());
        let client = block_on(client).unwrap();
        let call = |name: &str| {
            client
                .call_tool(name, &json!({"password": "secret"}))
                .wait()
        };
        for _ in 0..3 {
            call("good").unwrap();
        }
        assert!(call("bad").unwrap().is_error);
        call("unknown").unwrap_err();
        let version = format!("mcp_protocol_version=\"{revision}\"");
        for (prometheus, side) in [(&far, "server"), (&near, "client")] {
            let idle = format!("mcpbolt_{side}_active_requests");
            let now = until(prometheus, |now| now[&idle] == 0.0);
            let name = format!("mcp_{side}_operation_duration_seconds");
            let count = |more: &[&str]| {
                let labels = [&[&*version, labels[0], labels[1]], more].concat();
                sum(&now, &format!("{name}_count"), &labels)
            };
            let tool = |name: &str| format!("gen_ai_tool_name=\"{name}\"");
            let method = "mcp_method_name=\"tools/call\"";
            assert_eq!(count(&[method, &tool("good")]), 3.0, "{now:#?}");
            // A tool that has never succeeded is not told apart: it may not exist.
            assert_eq!(
                count(&[method, &tool("_OTHER"), "error_type=\"tool_error\""]),
                1.0
            );
            let code = "rpc_response_status_code=\"-32602\"";
            assert_eq!(count(&[method, &tool("_OTHER"), code]), 1.0);
            // It is the client's fault, so an error for the client alone.
            let is_client = f64::from(u8::from(side == "client"));
            assert_eq!(count(&[code, "error_type=\"-32602\""]), is_client);
            assert_eq!(
                count(&[method, "gen_ai_operation_name=\"execute_tool\""]),
                5.0
            );
            let buckets = now
                .keys()
                .filter(|it| it.starts_with(&format!("{name}_bucket")));
            let good = buckets.filter(|it| it.contains(&tool("good"))).count();
            assert_eq!(good, BUCKETS.len() + 1);
            let (sent, got) = ("request_bytes_total", "answer_bytes_total");
            for bytes in [sent, got] {
                assert!(sum(&now, &format!("mcpbolt_{side}_{bytes}"), &[&tool("good")]) > 90.0);
            }
            let text = prometheus.text();
            assert!(
                ["secret", "bad", "unknown"]
                    .iter()
                    .all(|it| !text.contains(it)),
                "{text}"
            );
        }
        let now = samples(&far.text());
        assert_eq!(now["mcpbolt_memory_limit_bytes"], (256 << 20) as f64);
        assert!(now["mcpbolt_received_bytes_total"] > 0.0);
        drop(client);
        let side = |now: &BTreeMap<String, f64>, side: &str| {
            sum(
                now,
                &format!("mcp_{side}_session_duration_seconds_count"),
                &[&version],
            )
        };
        until(&near, |now| side(now, "client") == 1.0);
        if revision == Revision::V2025_11_25 {
            until(&far, |now| side(now, "server") == 1.0);
            assert_eq!(samples(&far.text())["mcpbolt_server_active_sessions"], 0.0);
        }
    }
}

/// Each client of a server has an address of its own, which tells nothing of the server.
#[test]
fn a_server_that_asks_its_clients_does_not_tell_them_apart() {
    let prometheus = Prometheus::new();
    let server = Server::builder("asks", "1.0.0")
        .observer(prometheus.clone())
        .tool(
            Tool::new("ask"),
            |_: Arguments, context: Context| async move {
                context.roots().await?;
                Ok::<_, HandlerError>("done")
            },
        )
        .build()
        .unwrap();
    let serving = server.serve("ws://127.0.0.1:0/mcp").start().unwrap();
    for _ in 0..3 {
        let client = Client::builder("test", "1")
            .revisions(Revisions::only(Revision::V2025_11_25))
            .roots([Root::new("file:///here")]);
        let client = client.open(serving.address(), ConnectOptions::default());
        let client = block_on(client).unwrap();
        client.call_tool("ask", &json!({})).wait().unwrap();
    }
    let name = "mcp_client_operation_duration_seconds_count";
    let all = until(&prometheus, |samples| {
        sum(samples, name, &["roots/list"]) == 3.0
    });
    let series = all
        .keys()
        .filter(|it| it.starts_with(name) && it.contains("roots/list"));
    assert_eq!(series.count(), 1, "{all:#?}");
}

/// What HTTP refuses is no request of MCP: it counts by its status.
#[test]
fn requests_that_http_refuses_are_counted_by_status() {
    let prometheus = Prometheus::new();
    let policy = Policy::new().verifier(|credentials| match credentials {
        Credentials::Bearer("good") => Ok(Principal::new("alice")),
        _ => Err("unknown".to_owned()),
    });
    let server = Server::builder("counted", "1.0.0").policy(policy);
    let server = server.observer(prometheus.clone()).build().unwrap();
    let serving = server.serve("http://127.0.0.1:0/mcp").start().unwrap();
    prometheus.watch(serving.metrics().clone());
    let at = serving.address().to_string();
    let at = at.trim_start_matches("http://").trim_end_matches("/mcp");
    let usual = "Host: localhost\r\nContent-Length: 2\r\nConnection: close\r\n";
    let (known, json) = (
        "Authorization: Bearer good\r\n",
        "Content-Type: application/json\r\n",
    );
    for (path, headers, status) in [
        ("/mcp", json.to_owned(), "401"),
        ("/mcp", json.to_owned(), "401"),
        (
            "/mcp",
            format!("{known}{json}Origin: http://evil.example\r\n"),
            "403",
        ),
        (
            "/mcp",
            format!("{known}Content-Type: text/plain\r\n"),
            "415",
        ),
        ("/elsewhere", format!("{known}{json}"), "404"),
    ] {
        let mut stream = TcpStream::connect(at).unwrap();
        write!(stream, "POST {path} HTTP/1.1\r\n{usual}{headers}\r\n{{}}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(
            answer.split(' ').nth(1),
            Some(status),
            "{headers}: {answer}"
        );
    }
    let now = samples(&prometheus.text());
    let errors = now.iter().filter(|(name, _)| name.contains("http_errors"));
    let label =
        |status| format!("mcpbolt_http_errors_total{{http_response_status_code=\"{status}\"}}");
    let expected = [(401, 2.0), (403, 1.0), (404, 1.0), (415, 1.0)];
    assert!(
        errors
            .map(|(name, count)| (name.clone(), *count))
            .eq(expected.map(|(status, count)| (label(status), count))),
        "{now:#?}"
    );
    let is_of_mcp =
        |name: &&String| name.contains("refused") || name.contains("operation_duration");
    assert_eq!(now.keys().find(is_of_mcp), None);
    assert_eq!(serving.metrics().counts().http_errors, 5);
}

#[test]
fn every_name_in_the_dashboard_is_one_of_these() {
    let board: serde_json::Value =
        serde_json::from_str(include_str!("../../telemetry/grafana.json")).unwrap();
    let prometheus = Prometheus::new();
    let serving = server(&prometheus)
        .serve("tcp:127.0.0.1:0")
        .start()
        .unwrap();
    prometheus.watch(serving.metrics().clone());
    let text = prometheus.text();
    let kinds: BTreeMap<_, _> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    let mut named = 0;
    for panel in board["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let expr = target["expr"].as_str().unwrap();
            let words = expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let names = words.filter(|it| it.starts_with("mcp_") || it.starts_with("mcpbolt_"));
            for name in
                names.filter(|it| !it.starts_with("mcp_method") && !it.starts_with("mcp_protocol"))
            {
                let parts = ["_bucket", "_sum", "_count"];
                let base = parts.iter().find_map(|it| name.strip_suffix(it));
                match base {
                    Some(base) => assert_eq!(kinds.get(base), Some(&"histogram"), "{name}"),
                    None => assert!(kinds.contains_key(name), "{name}"),
                }
                named += 1;
            }
        }
    }
    assert!(named > 15, "{named}");
}
