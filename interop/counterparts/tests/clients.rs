//! The clients, each as a program: on a server of rmcp, or on the published server that rmcp's example starts,
//! installed from its registry.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

mod programs;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use programs::{example, run};
use serde_json::{Value, json};

/// A server of rmcp on HTTP.
struct Peer {
    process: Child,
    address: String,
}

impl Peer {
    fn new() -> Self {
        let mut command = Command::new(example("rmcp_server"));
        let mut process = command.arg("http").stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        Self {
            process,
            address: address.trim().to_owned(),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn client(name: &str) -> Command {
    let mut command = Command::new(example(&format!("clients_{name}")));
    command.stdin(Stdio::null());
    command
}

/// Runs a client and checks that it prints these texts in this order.
fn prints(command: &mut Command, texts: &[&str]) {
    let printed = run(command);
    let mut rest = &*printed;
    for text in texts {
        let found = rest.split_once(text);
        rest = found
            .unwrap_or_else(|| panic!("no {text:?} in {rest}\nall: {printed}"))
            .1;
    }
}

#[test]
fn the_model_of_a_client_answers_a_server() {
    prints(
        client("sampling_stdio").arg(example("rmcp_server")),
        &[
            "Connected to server",
            "ask_llm",
            "Received sampling request",
            "Hello world",
            "It just a mock response",
        ],
    );
}

#[test]
fn a_call_becomes_a_task_and_is_polled() {
    prints(
        client("task_stdio").arg(example("rmcp_server")),
        &[
            "hi from mcpbolt",
            "materialized as task",
            "status = Working",
            "status = Completed",
            "\"42\"",
        ],
    );
}

#[test]
fn progress_is_told_on_each_transport() {
    let peer = Peer::new();
    let server = format!("stdio:{}", example("rmcp_server").display());
    let steps = [
        "Connected to server",
        "stream_processor",
        "[1]: 1/5 - 11111",
        "[5]: 5/5 - 55555",
        "Processed 5 records",
        "received: 5",
    ];
    let mut command = client("progress_client");
    command.args([
        "--transport",
        "all",
        "--command",
        &server,
        "--http-url",
        &peer.address,
    ]);
    let summary = ["Stdio     : PASSED", "Http      : PASSED"];
    prints(
        &mut command,
        &[&steps[..], &steps[..], &summary[..]].concat(),
    );
}

#[test]
fn a_counter_is_incremented_on_http() {
    let peer = Peer::new();
    prints(
        client("streamable_http").arg(&peer.address),
        &["Connected to server", "increment", "\"1\""],
    );
    assert!(
        !client("streamable_http")
            .arg("http://127.0.0.1:9/mcp")
            .output()
            .unwrap()
            .status
            .success()
    );
}

#[test]
fn changes_are_heard_until_the_server_ends_the_subscription() {
    let peer = Peer::new();
    prints(
        client("subscriptions_streamhttp").arg(&peer.address),
        &[
            "accepted filter: Interests { tools: true, prompts: false",
            "notification: ToolsChanged",
            "subscription ended: Ok",
        ],
    );
}

/// A folder for what is installed, and the one installation at a time.
fn installed(name: &str, install: impl FnOnce(&Path)) -> PathBuf {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if !folder.join("complete").exists() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        install(&folder);
        fs::write(folder.join("complete"), "").unwrap();
    }
    folder
}

/// A folder with the program `uvx`, which runs `mcp-server-git` as installed from PyPI, and with a repository.
fn uvx() -> PathBuf {
    installed("mcp-server-git-2026.10.19", |folder| {
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
        run(Command::new(python).args(["-m", "venv"]).arg(folder));
        let pinned = concat!(env!("CARGO_MANIFEST_DIR"), "/../requirements.txt");
        let install = [
            "install",
            "--quiet",
            "--constraint",
            pinned,
            "mcp-server-git==2026.10.19",
        ];
        run(Command::new(folder.join("bin/pip")).args(install));
        let uvx = folder.join("bin/uvx");
        fs::write(&uvx, "#!/bin/sh\nexec \"$(dirname \"$0\")/$1\"\n").unwrap();
        run(Command::new("chmod").arg("+x").arg(uvx));
        run(Command::new("git")
            .args(["init", "--quiet", "--initial-branch=trunk"])
            .arg(folder.join("repository")));
    })
}

fn with_uvx(mut command: Command) -> Command {
    let folder = uvx();
    let path = std::env::var("PATH").unwrap();
    command
        .env("PATH", format!("{}:{path}", folder.join("bin").display()))
        .current_dir(folder.join("repository"));
    command
}

#[test]
fn the_git_server_tells_the_status_of_a_repository() {
    prints(
        &mut with_uvx(client("git_stdio")),
        &[
            "Connected to server",
            "mcp-git",
            "git_status",
            "Tool result",
            "On branch trunk",
        ],
    );
}

#[test]
fn ten_clients_have_a_server_each() {
    let printed = run(&mut with_uvx(client("collection")));
    assert_eq!(printed.matches("On branch trunk").count(), 10, "{printed}");
    assert_eq!(
        printed.matches("\"name\":\"mcp-git\"").count(),
        10,
        "{printed}"
    );
}

#[test]
fn the_server_with_everything_answers_each_request() {
    let folder = installed("server-everything-2026.8.31", |folder| {
        let npm = [
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "@modelcontextprotocol/server-everything@2026.8.31",
        ];
        fs::write(folder.join("package.json"), "{}").unwrap();
        run(Command::new("npm").args(npm).current_dir(folder));
    });
    prints(
        client("everything_stdio").current_dir(folder),
        &[
            "Connected to server",
            "Available tools",
            "Echo: hi from mcpbolt",
            "Long running operation completed",
            "Available resources",
            "Resource:",
            "Architecture",
            "Available prompts",
            "Prompt - simple",
            "Prompt - args",
            "Dallas",
            "Available resource templates",
        ],
    );
}

/// A model that answers by what the test says, and reports what it was asked.
fn model(answers: Vec<Value>) -> (String, std::thread::JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "http://{}/v1/chat/completions",
        listener.local_addr().unwrap()
    );
    let asked = std::thread::spawn(move || {
        let exchange = |answer: Value| {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let mut length = 0;
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let message = json!({"role": "assistant"});
            let mut choice = json!({"index": 0, "finish_reason": "stop", "message": message});
            choice["message"]
                .as_object_mut()
                .unwrap()
                .extend(answer.as_object().unwrap().clone());
            let answer = json!({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}).to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            stream
                .get_mut()
                .write_all((head + &answer).as_bytes())
                .unwrap();
            serde_json::from_slice(&body).unwrap()
        };
        answers.into_iter().map(exchange).collect()
    });
    (url, asked)
}

/// Runs the chat with a model, the servers of rmcp on both transports, and what a user types.
fn chat(answers: Vec<Value>, support_tool: bool, typed: &str) -> (String, Vec<Value>) {
    let peer = Peer::new();
    let (url, asked) = model(answers);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chat-{support_tool}.toml"));
    let config = format!(
        "openai_key = 'key'\nchat_url = '{url}'\nmodel_name = 'm'\nsupport_tool = {support_tool}\n\n\
         [[mcp.server]]\nname = 'far'\nprotocol = 'streamable'\nurl = '{}'\n\n\
         [[mcp.server]]\nname = 'near'\nprotocol = 'stdio'\ncommand = '{}'\n",
        peer.address,
        example("rmcp_server").display()
    );
    fs::write(&file, config).unwrap();
    let mut command = Command::new(example("clients_simple_chat"));
    command
        .arg("--config")
        .arg(file)
        .args(["chat", "--model", "other"]);
    let mut process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    process
        .stdin
        .take()
        .unwrap()
        .write_all(typed.as_bytes())
        .unwrap();
    let done = process.wait_with_output().unwrap();
    let printed = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{printed}");
    (printed, asked.join().unwrap())
}

#[test]
fn a_model_calls_a_tool() {
    let function = json!({"name": "sum", "arguments": "{\"a\":40,\"b\":2}"});
    let call = json!({"id": "1", "type": "function", "function": function});
    let answers = vec![
        json!({"content": "", "tool_calls": [call]}),
        json!({"content": "it is 42"}),
    ];
    let (printed, asked) = chat(answers, true, "\nadd them\nand?\nexit\n");
    for text in [
        "load MCP tool: far",
        "load MCP tool: near",
        "add tool: sum",
        "call tool result: 42",
        "AI > it is 42",
    ] {
        assert!(printed.contains(text), "{text}: {printed}");
    }
    assert_eq!(
        (
            &asked[0]["model"],
            asked[0]["tools"].as_array().unwrap().len()
        ),
        (&json!("other"), 6)
    );
    let said: Vec<_> = asked[1]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["content"].as_str().unwrap())
        .collect();
    assert_eq!(said[1..], ["add them", "call tool result: 42", "and?"]);
}

#[test]
fn a_model_without_tools_calls_one_in_words() {
    let words = "Let me see.\nTool: sum\nInputs:\n{\"a\": 1,\n\"b\": 2}";
    let answers = vec![
        json!({"content": words}),
        json!({"content": "Tool: none\nInputs: {}"}),
    ];
    let (printed, asked) = chat(answers, false, "add them\nonce more\n");
    assert!(printed.contains("call tool result: 3"), "{printed}");
    assert!(printed.contains("tool not found: none"), "{printed}");
    assert_eq!(asked[0]["tools"], Value::Null);
    let prompt = asked[0]["messages"][0]["content"].as_str().unwrap();
    assert!(
        prompt.contains("tool name: sum\ndescription: as in rmcp's examples"),
        "{prompt}"
    );
}

#[test]
fn the_chat_prints_a_configuration() {
    let printed = run(Command::new(example("clients_simple_chat")).arg("config"));
    assert!(printed.contains("[[mcp.server]]"), "{printed}");
}
