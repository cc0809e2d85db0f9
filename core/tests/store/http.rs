//! Requests to the servers of the tests.

use hyper::{Method, Request, Response};
use mcpbolt::io::http::{HttpBody, HttpService};
use serde_json::Value;

/// Sends a message as a client does, with further headers.
pub async fn send(
    at: &HttpService,
    method: Method,
    more: &[(&str, &str)],
    message: &Value,
) -> Response<HttpBody> {
    let mut request = Request::builder().method(method).uri("/mcp");
    for (name, value) in [
        ("Host", "localhost"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ] {
        request = request.header(name, value);
    }
    for (name, value) in more {
        request = request.header(*name, *value);
    }
    at.respond(request.body(message.to_string()).unwrap()).await
}
