//! The commands, run as a user runs them, against a server that runs as its own process.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use std::path::PathBuf;
use std::process::{Command, Output};

fn mcpbolt(args: &[&str]) -> Output {
    let command = PathBuf::from(env!("CARGO_BIN_EXE_mcpbolt"));
    let calculator = command.with_file_name("examples").join("calculator");
    let mut run = Command::new(command);
    run.args(args).arg("--").arg(calculator).output().unwrap()
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
