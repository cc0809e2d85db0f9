//! What a gateway serves, also when its file changes.

use std::time::Duration;

use crate::serving::Serving;
use crate::{Folder, Log, adder, comes, gateway, http, inspected, status};

#[test]
fn several_servers_are_one() {
    let folder = Folder::new("several");
    let third = Serving::with(&[
        "proxy",
        "http://127.0.0.1:0/mcp",
        "--",
        adder().to_str().unwrap(),
    ]);
    let text = format!(
        "[servers.one]\ncommand = {:?}\n[servers.two]\ncommand = [{:?}]\n[servers.third]\nurl = {:?}\nprefix = \"\"\n",
        adder(),
        adder(),
        third.address
    );
    let gateway = gateway(&folder.write("gateway.toml", &text));
    let said = inspected(&gateway);
    for tool in ["one_add", "two_add", "add"] {
        assert!(said.contains(&format!("\n  {tool} ")), "{said}");
    }
    for (tool, arguments, expected) in [
        ("one_add", r#"{"a": 1, "b": 2}"#, "3\n"),
        ("two_add", r#"{"a": 3, "b": 4}"#, "7\n"),
        ("add", r#"{"a": 5, "b": 6}"#, "11\n"),
    ] {
        let called = gateway.run(&["call", tool, arguments]);
        assert_eq!(
            String::from_utf8(called.stdout).unwrap(),
            expected,
            "{tool}"
        );
    }
    // A server that is away is left out; the others serve on.
    drop(third);
    assert!(comes(|| {
        let said = inspected(&gateway);
        said.contains("one_add") && !said.contains("\n  add ")
    }));
    let called = gateway.run(&["call", "add", "{}"]);
    let said = String::from_utf8(called.stderr).unwrap();
    assert!(!called.status.success() && said.contains("third"), "{said}");
}

#[test]
fn a_changed_file_is_read_again_and_no_call_is_lost() {
    let folder = Folder::new("reloaded");
    let command = env!("CARGO_BIN_EXE_mcpbolt");
    let one = format!("[servers.one]\ncommand = [{command:?}, \"serve\", \"stdio:\"]\n");
    let two = format!("[servers.two]\ncommand = {:?}\n", adder());
    let file = folder.write("gateway.toml", &one);
    let mut gateway = gateway(&file);
    let log = Log::of(&mut gateway);
    assert!(!inspected(&gateway).contains("two_add"));
    std::thread::scope(|scope| {
        // Clients with a session keep the connections that they have; others come to the new ones at once.
        let gateway = &gateway;
        let loads = ["2025-06-18", "2026-07-28"].map(|revision| {
            scope.spawn(move || {
                // Each call takes some time, so that some are under way at each change.
                let call = ["load", "--tool", "one_test_tool_with_progress"];
                let how = ["--rate", "50", "--duration", "6s", "--revision", revision];
                gateway.run(&[&call[..], &how].concat())
            })
        });
        // The file comes to be both again and again; what is wrong changes nothing. Each change is read before the next one.
        for (text, told, count) in [
            (format!("{one}{two}"), ": reloaded", 1),
            (one.clone(), ": reloaded", 2),
            ("[servers.one]\n".to_owned(), ": not reloaded", 1),
            (format!("{one}\n{two}"), ": reloaded", 3),
        ] {
            std::thread::sleep(Duration::from_millis(300));
            folder.write("gateway.toml", &text);
            let is_told = || log.text().matches(told).count() == count;
            assert!(comes(is_told), "{told}: {}", log.text());
        }
        for load in loads {
            let load = load.join().unwrap();
            assert!(load.status.success(), "{load:?}");
        }
    });
    // Once clients that open a session have the new server, all others have it, too.
    let call = [
        "load",
        "--tool",
        "two_add",
        "--arguments",
        r#"{"a": 1, "b": 1}"#,
    ];
    let how = [
        "--warm-up",
        "0s",
        "--duration",
        "50ms",
        "--revision",
        "2025-06-18",
    ];
    let serves = || gateway.run(&[&call[..], &how].concat()).status.success();
    assert!(comes(serves));
    let said = inspected(&gateway);
    assert!(
        said.contains("one_test_simple_text") && said.contains("two_add"),
        "{said}"
    );
}

/// R-CHN-12: a client of 2026-07-28 is asked before the file changes, and answers after it. Of a server of the same revision, only the process
/// that has asked accepts the state, which it has signed.
#[test]
fn a_call_that_waits_for_its_client_goes_on_when_the_file_changes() {
    for revision in ["2025-11-25", "2026-07-28"] {
        goes_on(revision);
    }
}

fn goes_on(revision: &str) {
    let folder = Folder::new(&format!("asked-{revision}"));
    let command = env!("CARGO_BIN_EXE_mcpbolt");
    let text = format!(
        "[servers.one]\ncommand = [{command:?}, \"serve\", \"stdio:\"]\nrevisions = [{revision:?}]\n"
    );
    let mut gateway = gateway(&folder.write("gateway.toml", &text));
    let log = Log::of(&mut gateway);
    let place = gateway.address.trim_start_matches("http://");
    let place = place.trim_end_matches("/mcp").to_owned();
    let call = |more: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"one_test_elicitation","arguments":{{"message":"Who?"}},{more}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"test","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{"form":{{}}}}}}}}}}}}"#
        );
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {place}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: one_test_elicitation"
        );
        let answer = http(&place, &head, &body);
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let message: serde_json::Value =
            serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
        message
    };
    let asked = call("");
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let (key, _) = result["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    folder.write("gateway.toml", &format!("{text}timeout = 60\n"));
    assert!(
        comes(|| log.text().contains(": reloaded")),
        "{}",
        log.text()
    );
    let answers = serde_json::json!({key: {"action": "accept", "content": {"username": "ada", "email": "ada@example.com"}}});
    let state = &result["requestState"];
    let done = call(&format!(
        r#""inputResponses":{answers},"requestState":{state},"#
    ));
    let said = done["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default();
    assert!(said.contains("ada@example.com"), "{done}");
}

/// What is read at the start is told to be not in effect; what decides who may use what keeps other changes away, too.
#[test]
fn a_changed_file_says_what_is_not_in_effect_and_counts_go_on() {
    let folder = Folder::new("started");
    let of = |more: &str| {
        let server = format!("[servers.one]\ncommand = {:?}\n", adder());
        format!("status = \"http://127.0.0.1:0\"\n{more}\n{server}")
    };
    let file = folder.write("gateway.toml", &of(""));
    let mut gateway = gateway(&file);
    let log = Log::of(&mut gateway);
    let place = log.status();
    let connected = || {
        let call = ["call", "one_add", r#"{"a": 1, "b": 2}"#];
        assert!(gateway.run(&call).status.success());
        status(&place)["upstreams"][0]["connections"]
            .as_u64()
            .unwrap()
    };
    let mut before = connected();
    assert!(before > 0);
    let counts = http(
        &place,
        &format!("GET /metrics HTTP/1.1\r\nHost: {place}"),
        "",
    );
    for (side, tool) in [("server", "one_add"), ("client", "add")] {
        let called = counts.lines().any(|line| {
            line.starts_with(&format!("mcp_{side}_operation_duration_seconds_count"))
                && line.contains(&format!("gen_ai_tool_name=\"{tool}\""))
        });
        assert!(called, "{side}: {counts}");
    }
    for (more, told) in [
        (
            "listen = \"http://127.0.0.1:1\"",
            "has changed, which is not in effect: it is read at the start; restart the gateway key=\"listen\"",
        ),
        (
            "status_anonymous = true",
            "restart the gateway key=\"status\"",
        ),
        (
            "[policy]\nkeys = { k = { client = \"ada\" } }",
            "not reloaded, the gateway serves as before: policy has changed: clients are verified by one policy, and not by the other; \
             restart the gateway",
        ),
    ] {
        folder.write("gateway.toml", &of(more));
        assert!(
            comes(|| log.text().contains(told)),
            "{told}: {}",
            log.text()
        );
        let is_reloaded = !told.starts_with("not reloaded");
        let count = || log.text().matches(": reloaded").count();
        assert!(comes(|| count() >= 1));
        let now = connected();
        assert!(
            now >= before + u64::from(is_reloaded),
            "{before}, then {now}"
        );
        before = now;
    }
    assert_eq!(
        log.text().matches(": reloaded").count(),
        2,
        "{}",
        log.text()
    );
}

/// R-PER-05: who may do what is read again, too, and what clients have used of a limit that stays counts on.
#[test]
fn a_changed_policy_is_in_force_at_once_and_counts_go_on() {
    let folder = Folder::new("policy");
    let file = |policy: &str| {
        let server = format!("[servers.one]\ncommand = {:?}\n", adder());
        folder.write("gateway.toml", &format!("{server}[policy]\n{policy}\n"))
    };
    let key = |name: &str| format!("{name} = {{ client = \"{name}\" }}");
    let keys = |all: &[&str]| {
        let all: Vec<_> = all.iter().map(|name| key(name)).collect();
        format!("keys = {{ {} }}", all.join(", "))
    };
    let quota = |calls: u64| format!("quota = {{ calls = {calls}, period = 3600000 }}");
    let mut gateway = gateway(&file(&format!("{}\n{}", keys(&["ada", "bob"]), quota(2))));
    let log = Log::of(&mut gateway);
    let place = gateway.address.trim_start_matches("http://");
    let place = place.trim_end_matches("/mcp").to_owned();
    let call = |key: &str| {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one_add","arguments":{"a":1,"b":2},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {place}\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: one_add"
        );
        http(&place, &head, body)[9..12].to_owned()
    };
    let mut reloads = 0;
    let mut change = |policy: &str| {
        file(policy);
        reloads += 1;
        let is_there = || log.text().matches(": reloaded").count() == reloads;
        assert!(comes(is_there), "{}", log.text());
    };
    assert_eq!(
        [call("ada"), call("bob"), call("eve")],
        ["200", "200", "401"]
    );
    // Bob goes, Eve comes; Ada has one call left.
    change(&format!("{}\n{}", keys(&["ada", "eve"]), quota(2)));
    assert_eq!(
        [call("ada"), call("bob"), call("eve")],
        ["200", "401", "200"]
    );
    assert_eq!(call("ada"), "429");
    // Something else changes.
    change(&format!(
        "{}\n{}\n[policy.scopes]\nother = [\"x\"]",
        keys(&["ada", "eve"]),
        quota(2)
    ));
    assert_eq!(call("ada"), "429");
    // Another limit counts anew, and a scope that is needed is asked for.
    change(&format!("{}\n{}", keys(&["ada"]), quota(3)));
    assert_eq!(call("ada"), "200");
    change(&format!(
        "{}\n{}\n[policy.scopes]\none_add = [\"x\"]",
        keys(&["ada"]),
        quota(3)
    ));
    assert_eq!(call("ada"), "403");
}

/// Each worker has the servers for itself.
#[cfg(unix)]
#[test]
fn several_processes_are_one_gateway() {
    let folder = Folder::new("workers");
    let server = format!("[servers.one]\ncommand = {:?}\n", adder());
    let file = folder.write("gateway.toml", &server);
    let file = file.to_str().unwrap();
    let args = ["gateway", "http://127.0.0.1:0/mcp", "--config", file];
    let args = [&args[..], &["--workers", "2"]].concat();
    let gateway = Serving::with(&args);
    for _ in 0..4 {
        let called = gateway.run(&["call", "one_add", r#"{"a": 1, "b": 2}"#]);
        assert_eq!(String::from_utf8(called.stdout).unwrap(), "3\n");
    }
    folder.write(
        "gateway.toml",
        &format!("status = \"http://127.0.0.1:0\"\n{server}"),
    );
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
        .args(args)
        .output()
        .unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(!run.status.success() && said.contains("--health"), "{said}");
}

/// Beside the status, for which the Host matters.
#[test]
fn the_health_of_a_gateway_stands_beside_its_status() {
    let folder = Folder::new("health");
    let text = format!(
        "status = \"http://127.0.0.1:0\"\n[servers.one]\ncommand = {:?}\n",
        adder()
    );
    let mut gateway = gateway(&folder.write("gateway.toml", &text));
    let place = Log::of(&mut gateway).status();
    for (path, host, expected) in [
        ("/readyz", &*place, "HTTP/1.1 200"),
        ("/healthz", "probe.example.com", "HTTP/1.1 200"),
        ("/status.json", "probe.example.com", "HTTP/1.1 403"),
    ] {
        let answer = http(&place, &format!("GET {path} HTTP/1.1\r\nHost: {host}"), "");
        assert!(answer.starts_with(expected), "{path}: {answer}");
    }
}
