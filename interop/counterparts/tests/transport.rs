//! The transports: each program as it is; and each side that a program of rmcp can talk to, with rmcp as the
//! other side.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]
#![allow(
    clippy::duplicate_mod,
    reason = "two programs with the same calculator"
)]

mod programs;

#[allow(dead_code, reason = "its main")]
#[path = "../examples/transport/http_upgrade.rs"]
mod http_upgrade;
#[allow(dead_code, reason = "its main")]
#[path = "../examples/transport/tcp.rs"]
mod tcp;

use std::process::Command;

use hyper::header::{HeaderValue, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use mcpbolt::client::Client;
use programs::{example, run};
use rmcp::model::{
    CallToolRequestParams, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::json;
use tcp::calculator::calculator;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixStream};

#[test]
fn the_programs_list_the_tools_of_the_calculator() {
    let folder = env!("CARGO_TARGET_TMPDIR");
    for name in ["tcp", "websocket", "http_upgrade", "unix_socket"] {
        let program = example(&format!("transport_{name}"));
        let printed = run(Command::new(program).env("TMPDIR", folder));
        assert!(
            printed.contains("the left hand side number"),
            "{name}: {printed}"
        );
        if name == "unix_socket" {
            assert!(
                printed.contains("Calling sum tool: sum") && printed.contains("\"30\""),
                "{printed}"
            );
        }
    }
    let printed = run(&mut Command::new(example("transport_named_pipe")));
    assert!(
        printed.contains("not supported") || cfg!(windows),
        "{printed}"
    );
}

/// rmcp's client adds two numbers on this stream.
async fn drive<S: AsyncRead + AsyncWrite + Send + 'static>(stream: S) {
    let client = ().serve(stream).await.unwrap();
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 2);
    let numbers = json!({"a": 10, "b": 20}).as_object().cloned().unwrap();
    let params = CallToolRequestParams::new("sum").with_arguments(numbers);
    let result = client.call_tool(params).await.unwrap();
    assert_eq!(result.content[0].as_text().unwrap().text, "30");
    client.cancel().await.unwrap();
}

#[derive(Clone)]
struct Calculator;

impl ServerHandler for Calculator {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = Tool::new("rmcp_sum", "of rmcp", JsonObject::new());
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }
}

/// rmcp's server on this stream.
async fn serve<S: AsyncRead + AsyncWrite + Send + 'static>(stream: S) {
    let _ = Calculator.serve(stream).await.unwrap().waiting().await;
}

async fn check(client: &Client) {
    let tools = client.list_tools().await.unwrap();
    assert_eq!(tools[0].name, "rmcp_sum");
}

#[tokio::test]
async fn rmcp_is_client_and_server_on_tcp() {
    let serving = calculator()
        .unwrap()
        .serve("tcp:127.0.0.1:0")
        .start()
        .unwrap();
    let address = serving.address().to_string();
    drive(
        TcpStream::connect(address.trim_start_matches("tcp:"))
            .await
            .unwrap(),
    )
    .await;

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp:{}", listener.local_addr().unwrap());
    let served = tokio::spawn(async move { serve(listener.accept().await.unwrap().0).await });
    tcp::client(&address.parse().unwrap()).await.unwrap();
    served.await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn rmcp_is_client_on_a_unix_socket() {
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/rmcp.sock");
    let _serving = calculator()
        .unwrap()
        .serve(format!("unix:{path}"))
        .start()
        .unwrap();
    drive(UnixStream::connect(path).await.unwrap()).await;
}

#[cfg(unix)]
#[tokio::test]
async fn rmcp_is_server_on_a_byte_stream() {
    let (near, far) = UnixStream::pair().unwrap();
    tokio::spawn(serve(far));
    check(&Client::builder("test", "1").connect_on(near).await.unwrap()).await;
}

async fn upgraded(address: std::net::SocketAddr) -> TokioIo<Upgraded> {
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let request = Request::builder()
        .header(UPGRADE, "mcp")
        .body(String::new())
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    TokioIo::new(hyper::upgrade::on(response).await.unwrap())
}

#[tokio::test]
async fn rmcp_is_client_and_server_on_an_upgraded_connection() {
    let address = http_upgrade::start_server("127.0.0.1:0").await.unwrap();
    drive(upgraded(address).await).await;

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let upgrade = hyper::service::service_fn(|request| async {
            tokio::spawn(async {
                serve(TokioIo::new(hyper::upgrade::on(request).await.unwrap())).await
            });
            let mut response = Response::new(String::new());
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            response
                .headers_mut()
                .insert(UPGRADE, HeaderValue::from_static("mcp"));
            Ok::<_, std::convert::Infallible>(response)
        });
        let stream = TokioIo::new(listener.accept().await.unwrap().0);
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(stream, upgrade);
        connection.with_upgrades().await.unwrap();
    });
    check(&http_upgrade::http_client(address).await.unwrap()).await;
}
