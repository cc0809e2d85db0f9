//! Each handler on each carrier, on runtimes of one thread and of several, and without one; and the examples.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use std::future::IntoFuture;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mcpbolt::client::{Client, block_on};
use mcpbolt::error::RequestError;
use mcpbolt::io::{ChildCommand, ConnectOptions};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

const ROLE: &str = "MCPBOLT_TEST_LIBRARIES";

/// A web server that answers every request with a text.
fn web() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nfound",
            );
        }
    });
    url
}

async fn check(client: &Client) {
    let url = web();
    let text = json!({"text": "said"});
    let calls: [(&str, &Value, &str); 9] = [
        ("by_reqwest", &json!({"url": url}), "found"),
        ("by_hyper", &json!({"url": url}), "found"),
        ("by_sqlx", &json!({"number": 21}), "42"),
        ("by_files", &text, "said"),
        ("by_process", &text, "said"),
        ("by_time", &json!({}), "in time"),
        ("by_blocking", &json!({}), "blocked"),
        ("by_tasks", &json!({}), "55"),
        ("by_sockets", &text, "said"),
    ];
    for (tool, arguments, expected) in calls {
        let result = client.call_tool(tool, arguments).await.unwrap();
        assert_eq!(result.text(), expected, "{tool}");
    }
    let late = client
        .call_tool("by_select", &json!({}))
        .timeout(Duration::from_millis(20));
    assert!(matches!(late.await, Err(RequestError::TimedOut)));
}

fn runtimes() -> [Runtime; 2] {
    [Builder::new_current_thread(), Builder::new_multi_thread()]
        .map(|mut builder| builder.enable_all().build().unwrap())
}

async fn open(address: &str) -> Client {
    let begun = Instant::now();
    loop {
        let builder = Client::builder("test", "1");
        match builder
            .open(&address.parse().unwrap(), ConnectOptions::default())
            .await
        {
            Ok(client) => return client,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(30), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn on_http_in_the_runtime_of_the_program() {
    for runtime in runtimes() {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let address = format!("http://127.0.0.1:{port}/mcp");
        runtime.block_on(async {
            tokio::spawn(
                interop_libraries::server()
                    .unwrap()
                    .serve(&address)
                    .into_future(),
            );
            check(&open(&address).await).await;
        });
    }
}

#[test]
fn on_http_without_a_runtime() {
    let server = interop_libraries::server().unwrap();
    let serving = server.serve("http://127.0.0.1:0/mcp").start().unwrap();
    let [runtime, _] = runtimes();
    runtime.block_on(async { check(&open(&serving.address().to_string()).await).await });
}

#[test]
fn on_stdio_with_and_without_a_runtime() {
    for role in ["one", "many", "none"] {
        let command = ChildCommand::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "process",
                "--nocapture",
                "--quiet",
                "--test-threads=1",
            ])
            .env(ROLE, role);
        let client = block_on(Client::spawn(command)).unwrap();
        block_on(check(&client));
    }
}

/// Not a test: the other process. Without its variable it has nothing to do.
#[test]
fn process() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let serve = interop_libraries::server().unwrap().serve_stdio();
    let [one, many] = runtimes();
    let report = match role.as_str() {
        "one" => one.block_on(serve.into_future()),
        "many" => many.block_on(serve.into_future()),
        _ => serve.wait(),
    };
    report.unwrap();
    std::process::exit(0);
}

fn example(name: &str) -> Client {
    let path: PathBuf = std::env::current_exe().unwrap();
    let path = path.parent().unwrap().with_file_name("examples").join(name);
    block_on(Client::spawn(ChildCommand::new(path))).unwrap()
}

#[test]
fn the_examples_query_a_database_and_fetch_a_page() {
    let titles = example("books")
        .call_tool("titles", &json!({"author": "Austen"}))
        .wait()
        .unwrap();
    assert_eq!(
        titles.structured_content.unwrap(),
        json!(["Emma", "Persuasion"])
    );
    let page = example("fetch")
        .call_tool("fetch", &json!({"url": web()}))
        .wait()
        .unwrap();
    assert_eq!(page.text(), "found");
}
