//! Runs the commands as a user would, against a server in a process of its own.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

mod serving;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serving::Serving;

const HELLO: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\
    \"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}\n";

fn mcpbolt(args: &[&str]) -> Output {
    let command = PathBuf::from(env!("CARGO_BIN_EXE_mcpbolt"));
    let adder = command.with_file_name("examples").join("adder");
    let mut run = Command::new(command);
    run.args(args).arg("--").arg(adder).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn inspect_shows_the_server_and_its_tools() {
    let output = mcpbolt(&["inspect"]);
    assert_eq!(
        text(&output.stdout),
        "calculator 1.0.0, revision 2026-07-28\n\ntools\n  add                      Adds two numbers.\n"
    );
    assert!(output.status.success() && output.stderr.is_empty());
}

#[test]
fn inspect_shows_schemas_as_json() {
    let output = mcpbolt(&["inspect", "--json"]);
    let offer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let schema = &offer["tools"][0]["inputSchema"];
    assert_eq!(schema["required"], serde_json::json!(["a", "b"]));
}

#[test]
fn call_prints_what_the_tool_answers() {
    let output = mcpbolt(&["call", "add", r#"{"a":2,"b":40}"#]);
    assert_eq!(text(&output.stdout), "42\n");
    assert!(output.status.success());
}

#[test]
fn a_call_that_fails_fails_the_command_and_says_why() {
    for (args, why) in [
        (["call", "subtract", "{}"], "subtract"),
        (["call", "add", r#"{"a":2}"#], "b"),
        (["call", "add", "[1"], "not JSON"),
    ] {
        let output = mcpbolt(&args);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(!output.status.success(), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    }
}

#[test]
fn a_server_is_looked_at_wherever_it_is() {
    let socket = std::env::temp_dir().join(format!("mcpbolt-cli-{}", std::process::id()));
    let unix = format!("unix:{}", socket.display());
    for address in [
        "http://127.0.0.1:0/mcp",
        "ws://127.0.0.1:0/",
        "tcp:127.0.0.1:0",
        &unix,
    ] {
        let serving = Serving::with(&["serve", address, "--log", "info"]);
        let output = serving.run(&["inspect"]);
        let said = text(&output.stdout);
        assert!(
            output.status.success(),
            "{address}: {}",
            text(&output.stderr)
        );
        assert!(
            said.starts_with("mcpbolt-conformance "),
            "{address}: {said}"
        );
        let output = serving.run(&["call", "test_simple_text"]);
        let said = text(&output.stdout);
        assert_eq!(
            said, "This is a simple text response for testing.\n",
            "{address}"
        );
    }
    let _ = std::fs::remove_file(socket);
}

/// From a pipe to HTTP to a command, and in every other order of two carriers.
#[test]
fn a_proxy_passes_a_server_on_from_any_carrier_to_any() {
    let program = env!("CARGO_BIN_EXE_mcpbolt");
    let adder = PathBuf::from(program)
        .with_file_name("examples")
        .join("adder");
    let adder = adder.to_str().unwrap();
    let carriers = [
        "http://127.0.0.1:0/mcp",
        "ws://127.0.0.1:0/",
        "tcp:127.0.0.1:0",
    ];
    for first in carriers {
        let first = Serving::with(&["proxy", first, "--", adder]);
        for second in carriers {
            let second = Serving::with(&["proxy", second, "--to", &first.address]);
            let output = Command::new(program)
                .args(["call", "add", r#"{"a":2,"b":40}"#, "--", program])
                .args(["proxy", "stdio:", "--to", &second.address])
                .output()
                .unwrap();
            let said = text(&output.stderr);
            assert_eq!(
                text(&output.stdout),
                "42\n",
                "{} {}: {said}",
                first.address,
                second.address
            );
        }
    }
}

/// Its client waits no longer than the proxy waits itself for a server that goes on after the end of its input.
#[cfg(unix)]
#[test]
fn a_proxy_asked_to_end_while_it_ends_leaves_no_server_behind() {
    let mut proxy = Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
        .args(["proxy", "stdio:", "--grace", "0", "--", "sh", "-c"])
        .arg("echo $$ >&2; cat >/dev/null; echo over >&2; exec sleep 60")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = proxy.stdin.take().unwrap();
    stdin.write_all(HELLO.as_bytes()).unwrap();
    let mut said = BufReader::new(proxy.stderr.take().unwrap()).lines();
    let server = said.next().unwrap().unwrap();
    drop(stdin);
    assert!(said.any(|line| line.unwrap() == "over"));
    let kill = |signal, process: &str| Command::new("kill").args([signal, process]).status();
    assert!(kill("-TERM", &proxy.id().to_string()).unwrap().success());
    assert!(proxy.wait().unwrap().success());
    assert!(!kill("-0", &server).unwrap().success(), "left behind");
}

#[test]
fn a_proxy_names_the_server_that_it_cannot_reach() {
    let program = env!("CARGO_BIN_EXE_mcpbolt");
    for (server, why) in [
        (["--to", "http://127.0.0.1:1/mcp"], "http://127.0.0.1:1"),
        (["--", "no-such-program"], "no-such-program"),
    ] {
        let output = Command::new(program)
            .args(["inspect", "--", program, "proxy", "stdio:"])
            .args(server)
            .output()
            .unwrap();
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{said}");
    }
}

/// The server logs its counters and shuts down gracefully.
#[cfg(unix)]
#[test]
fn a_server_counts_what_it_does_and_ends_when_asked_to() {
    let mut serving = Serving::with(&["serve", "http://127.0.0.1:0/mcp", "--log", "info"]);
    assert!(serving.run(&["inspect"]).status.success());
    let process = serving.process.id().to_string();
    let signal = Command::new("kill").args(["-TERM", &process]).status();
    assert!(signal.unwrap().success());
    assert!(serving.process.wait().unwrap().success());
    let mut log = String::new();
    let mut stderr = serving.process.stderr.take().unwrap();
    std::io::Read::read_to_string(&mut stderr, &mut log).unwrap();
    assert!(log.contains("http_requests: "), "{log}");
    assert!(!log.contains("http_requests: 0"), "{log}");
}

#[test]
fn a_server_shows_its_counts_at_an_address_to_this_machine_alone() {
    let metrics = ["--metrics", "http://127.0.0.1:0", "--log", "info"];
    let mut serving = Serving::with(&[&["serve", "http://127.0.0.1:0/mcp"], &metrics[..]].concat());
    let mut said = BufReader::new(serving.process.stderr.take().unwrap()).lines();
    let at = "metrics at=http://";
    let line = said.find_map(|line| Some(line.unwrap()).filter(|line| line.contains(at)));
    let line = line.unwrap();
    let place = line.split(at).nth(1).unwrap().trim_end_matches("/metrics");
    assert!(serving.run(&["call", "test_simple_text"]).status.success());
    let get = |path: &str, host: &str| {
        let mut stream = std::net::TcpStream::connect(place).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        answer
    };
    let counts = get("/metrics", place);
    assert!(counts.starts_with("HTTP/1.1 200"), "{counts}");
    assert!(
        counts.contains("content-type: text/plain; version=0.0.4"),
        "{counts}"
    );
    assert!(
        counts.contains("gen_ai_tool_name=\"test_simple_text\""),
        "{counts}"
    );
    assert!(get("/", place).starts_with("HTTP/1.1 404"));
    assert!(get("/metrics", "elsewhere.example").starts_with("HTTP/1.1 403"));
    let anywhere = [
        "serve",
        "http://127.0.0.1:0/mcp",
        "--metrics",
        "http://0.0.0.0:0",
    ];
    let run = Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
        .args(anywhere)
        .output();
    let run = run.unwrap();
    let why = "--metrics can be reached from other machines, where everybody could read it; write 127.0.0.1, or --metrics-anonymous";
    assert!(text(&run.stderr).contains(why), "{}", text(&run.stderr));
}

#[test]
fn a_log_in_json_has_each_request_with_its_ids_and_nothing_of_its_arguments() {
    let args = [
        "serve",
        "http://127.0.0.1:0/mcp",
        "--log-json",
        "--log-requests",
    ];
    let mut serving = Serving::with(&args);
    let call = ["call", "test_simple_text", r#"{"password": "secret"}"#];
    assert!(serving.run(&call).status.success());
    let lines = BufReader::new(serving.process.stderr.take().unwrap()).lines();
    let mut events = lines.map(|line| {
        let line = line.unwrap();
        assert!(!line.contains("secret"), "{line}");
        serde_json::from_str::<serde_json::Value>(&line).unwrap()
    });
    let event = events
        .find(|event| event["method"] == "tools/call")
        .unwrap();
    assert_eq!(event["target"], "mcpbolt::requests");
    assert_eq!(event["name"], "test_simple_text");
    assert_eq!(event["revision"], "2026-07-28");
    let id = event["id"].as_str().and_then(|id| id.parse::<u64>().ok());
    assert!(id.is_some(), "{event}");
    assert!(
        event["seconds"].as_f64().is_some_and(|it| it > 0.0),
        "{event}"
    );
    assert_eq!(event["peer"], "127.0.0.1");
    assert!(event["error"].is_null(), "{event}");
}

#[test]
fn what_is_no_address_is_told_what_would_be() {
    let run = Command::new(env!("CARGO_BIN_EXE_mcpbolt"))
        .args(["serve", "localhost"])
        .output()
        .unwrap();
    assert!(!run.status.success());
    assert!(
        text(&run.stderr).contains("http://"),
        "{}",
        text(&run.stderr)
    );
}

/// Kills its process when a test fails.
struct Kill(std::process::Child);

impl Drop for Kill {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

/// `Server::run` serves at the address of its argument until SIGTERM, and refuses what is not one.
#[cfg(unix)]
#[test]
fn a_program_serves_at_the_address_of_its_argument() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let command = std::path::Path::new(env!("CARGO_BIN_EXE_mcpbolt"));
    let adder = command.with_file_name("examples").join("adder");
    let mut server = Kill(
        Command::new(&adder)
            .arg("tcp:127.0.0.1:0")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut line = String::new();
    let mut stderr = BufReader::new(server.0.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    let address = line.strip_prefix("listening on ").unwrap().trim();
    let inspected = Command::new(command)
        .args(["inspect", "--at", address])
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&inspected.stdout).contains("Adds two numbers."),
        "{inspected:?}"
    );
    let pid = server.0.id().to_string();
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    assert!(server.0.wait().unwrap().success());

    let refused = Command::new(adder).arg("--exact").output().unwrap();
    assert!(!refused.status.success());
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("it begins with stdio:"), "{text}");
}
