//! Runs the programs in `examples/` as their users would.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use mcpbolt::client::{Client, Interests, Started, block_on};
use mcpbolt::io::{ChildCommand, ConnectOptions};
use serde_json::json;

fn example(name: &str) -> PathBuf {
    let path = std::env::current_exe().unwrap();
    let path = path.parent().unwrap().with_file_name("examples").join(name);
    assert!(
        path.exists(),
        "build it first, by `cargo build -p mcpbolt --examples`: {}",
        path.display()
    );
    path
}

fn spawn(name: &str) -> Client {
    block_on(Client::spawn(ChildCommand::new(example(name)))).unwrap()
}

fn call(client: &Client, tool: &str, arguments: serde_json::Value) -> String {
    client.call_tool(tool, &arguments).wait().unwrap().text()
}

/// A program that serves at an address; it ends with the test.
struct Listening(Child, String);

impl Listening {
    fn start(name: &str, argument: &str) -> Self {
        let mut command = Command::new(example(name));
        let mut child = command
            .arg(argument)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        let address = line
            .trim()
            .strip_prefix("listening on ")
            .expect(&line)
            .to_owned();
        Self(child, address)
    }

    fn client(&self) -> Client {
        let builder = Client::builder("test", "1");
        block_on(builder.open(&self.1.parse().unwrap(), ConnectOptions::default())).unwrap()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_calculator_calculates_on_stdio_and_http() {
    let http = Listening::start("calculator", "http://127.0.0.1:0/mcp");
    for client in [spawn("calculator"), http.client()] {
        assert_eq!(call(&client, "add", json!({"a": 2, "b": 40})), "42");
        assert_eq!(
            call(&client, "divide", json!({"a": 2, "b": 0})),
            "b must not be zero"
        );
    }
}

#[test]
fn the_chat_client_answers_the_questions_of_bookings() {
    let mut chat = Command::new(example("chat_client"))
        .arg(example("bookings"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let typed = "book {\"restaurant\": \"Nadir\"}\n3\n\n";
    chat.stdin
        .take()
        .unwrap()
        .write_all(typed.as_bytes())
        .unwrap();
    let output = chat.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("For how many guests at Nadir?"), "{text}");
    assert!(text.contains("Booked for 3. Welcome!"), "{text}");
}

#[test]
fn three_servers_are_driven_by_one_client() {
    let http = Listening::start("calculator", "http://127.0.0.1:0/mcp");
    let output = Command::new(example("three_servers"))
        .args([
            example("bookings"),
            http.1.clone().into(),
            example("own_loop"),
        ])
        .args(["greet", r#"{"name": "Ada"}"#])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for line in [
        "bookings\": book",
        "calculator\": divide",
        "greeter\": greet",
        "Hello, Ada!",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn a_sale_is_told_to_those_who_listen_to_the_stock() {
    let (tell, told) = mpsc::channel();
    let client = Client::builder("test", "1")
        .on_notice(move |notice| drop(tell.send(format!("{notice:?}"))))
        .spawn(ChildCommand::new(example("stock")));
    let client = block_on(client).unwrap();
    let uri = "stock://Emma".to_owned();
    let granted = Interests {
        uris: vec![uri.clone()],
        ..Interests::default()
    };
    let asked = Interests {
        prompts: true,
        ..granted.clone()
    };
    let listening = block_on(client.listen(asked)).unwrap();
    assert_eq!(listening.acknowledged(), &granted);
    assert_eq!(call(&client, "sell", json!({"title": "Emma"})), "2 left");
    assert!(
        told.recv_timeout(Duration::from_secs(30))
            .unwrap()
            .contains(&uri)
    );
    let left = block_on(client.read_resource(&uri)).unwrap();
    assert_eq!(left[0].as_text(), Some("2"));
}

#[test]
fn a_film_is_rendered_as_a_task() {
    let client = Client::builder("test", "1")
        .tasks()
        .spawn(ChildCommand::new(example("render")));
    let client = block_on(client).unwrap();
    let call = client.call_tool("render", &json!({"frames": 3}));
    let Started::Task(task) = block_on(call.start()).unwrap() else {
        panic!("no task");
    };
    assert_eq!(block_on(task.result()).unwrap().text(), "3 frames");
}

#[test]
fn a_server_shares_an_application_of_axum() {
    let application = Listening::start("in_axum", "127.0.0.1:0");
    let client = application.client();
    let address = application
        .1
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/mcp")
        .unwrap();
    let visited = call(&client, "visit", json!({}));
    assert_eq!(visited, format!("visit 1 at {address}"));
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    let request = format!("GET /count HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let response = std::io::read_to_string(socket).unwrap();
    assert!(
        response.contains("x-served-by: axum") && response.ends_with("\r\n\r\n1"),
        "{response}"
    );
}
