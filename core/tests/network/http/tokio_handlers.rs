//! Handlers that use tokio: its timers, and tasks of their own.

use std::sync::Arc;
use std::time::Duration;

use mcpbolt::client::Client;
use mcpbolt::io::http::{HttpOptions, HttpServer, HttpService};
use mcpbolt::io::{ConnectOptions, ServeOptions};
use mcpbolt::server::{Arguments, Server, Tool};
use serde_json::json;
use tokio::net::TcpListener;

fn server() -> Server {
    let sleeps = |_: Arguments, _| async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        tokio::spawn(async { "slept" }).await.unwrap()
    };
    Server::builder("test", "1")
        .tool(Tool::new("sleep"), sleeps)
        .build()
        .unwrap()
}

async fn check(address: &str) {
    let address = address.parse().unwrap();
    let client = Client::builder("test", "1").open(&address, ConnectOptions::default());
    let client = client.await.unwrap();
    for _ in 0..3 {
        let result = client.call_tool("sleep", &json!({})).await.unwrap();
        assert_eq!(result.text(), "slept");
    }
}

/// Serves in this runtime, as a program with an HTTP server of its own does.
async fn check_mounted(service: HttpService) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serves = tokio::spawn(HttpServer::on(listener, service).run(std::future::pending()));
    check(&address).await;
    serves.abort();
}

#[tokio::test]
async fn a_mounted_server_runs_handlers_in_the_context_of_its_program() {
    check_mounted(HttpService::new(&server(), HttpOptions::default()).unwrap()).await;
}

#[tokio::test]
async fn handlers_are_tasks_of_the_runtime_if_its_handle_spawns_them() {
    let spawner = Arc::new(tokio::runtime::Handle::current());
    let hosting = server().hosting(spawner);
    check_mounted(HttpService::hosting(hosting, HttpOptions::default()).unwrap()).await;
}

#[tokio::test]
async fn a_server_with_threads_of_its_own_gives_its_handlers_a_runtime() {
    for threads in [None, Some(2)] {
        let options = ServeOptions {
            threads,
            ..ServeOptions::default()
        };
        let serving = server()
            .serve("http://127.0.0.1:0/mcp")
            .options(options)
            .start()
            .unwrap();
        check(&serving.address().to_string()).await;
        serving.stop();
    }
}
