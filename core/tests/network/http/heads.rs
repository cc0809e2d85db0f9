//! Handlers that take the head of the HTTP request.

use std::sync::Arc;

use mcpbolt::client::Client;
use mcpbolt::handler::Head;
use mcpbolt::handlers;
use mcpbolt::io::ConnectOptions;
use mcpbolt::mcp::{Revision, Revisions};
use mcpbolt::server::Server;
use serde_json::json;

/// Names the method, the type of the content and the peer of the request.
#[mcpbolt::tool]
fn head(head: Option<Arc<Head>>) -> Result<String, &'static str> {
    let head = head.ok_or("no request")?;
    let mut headers = head.headers.iter();
    let kind = headers.find(|(name, _)| **name == *"content-type");
    let kind = String::from_utf8_lossy(&kind.ok_or("no type")?.1);
    let peer = head.peer.ok_or("no peer")?;
    Ok(format!("{} {kind} {}", head.method, peer.ip()))
}

#[tokio::test]
async fn a_handler_takes_the_head_of_its_request() {
    let server = Server::builder("test", "1")
        .with(handlers![head])
        .build()
        .unwrap();
    let serving = server.serve("http://127.0.0.1:0/mcp").start().unwrap();
    let address = serving.address().to_string().parse().unwrap();
    for revision in [Revision::NEWEST, Revision::NEWEST_HANDSHAKE] {
        let client = Client::builder("test", "1").revisions(Revisions::only(revision));
        let client = client
            .open(&address, ConnectOptions::default())
            .await
            .unwrap();
        for _ in 0..2 {
            let told = client.call_tool("head", &json!({})).await.unwrap();
            assert_eq!(told.text(), "POST application/json 127.0.0.1", "{revision}");
        }
    }
    serving.stop();
}

#[tokio::test]
async fn a_call_without_http_has_no_head() {
    let server = Server::builder("test", "1")
        .with(handlers![head])
        .build()
        .unwrap();
    let client = Client::builder("test", "1").connect(&server).await.unwrap();
    let told = client.call_tool("head", &json!({})).await.unwrap();
    assert_eq!(told.text(), "no request");
}
