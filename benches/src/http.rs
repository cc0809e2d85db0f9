//! An echo call through the service of HTTP: the checks of the headers, the engine, an inline tool and the response.
//! No sockets, and no parser of HTTP.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response};
use mcpbolt::io::http::{HttpBody, HttpOptions, HttpService};
use mcpbolt::mcp::{Era, Revision};
use mcpbolt::policy::Policy;
use mcpbolt::server::{Server, Tool, schemars, serde};
use tokio::runtime::{Builder, Runtime};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

/// A client that repeats one call.
pub struct HttpCaller {
    service: HttpService,
    /// Has the timers of the service.
    runtime: Runtime,
    call: Request<Full<Bytes>>,
}

impl HttpCaller {
    /// Opens a service, and a session if the revision has sessions.
    ///
    /// # Panics
    /// If the service cannot be created or does not answer.
    pub fn open(revision: Revision) -> Self {
        Self::with(revision, None, None)
    }

    /// As [`open`](Self::open), with a policy, and with the credentials that each call brings.
    ///
    /// # Panics
    /// If the service cannot be created or does not answer.
    pub fn with(revision: Revision, policy: Option<Policy>, credentials: Option<String>) -> Self {
        let runtime = Builder::new_current_thread().enable_time().build();
        let server = Server::builder("echo", "1");
        let server = match policy {
            Some(policy) => server.policy(policy),
            None => server,
        };
        let server = server
            .inline_tool(Tool::new("echo"), |echo: Echo| echo.text)
            .build()
            .expect("a server");
        let version = revision.name();
        let client = r#""clientInfo":{"name":"b","version":"1"}"#;
        let initialize =
            format!(r#"{{"protocolVersion":"{version}","capabilities":{{}},{client}}}"#);
        let mut caller = Self {
            service: HttpService::new(&server, HttpOptions::default()).expect("a service"),
            runtime: runtime.expect("a runtime"),
            call: Request::default(),
        };
        let mut headers: Vec<_> = credentials
            .map(|it| ("authorization", it))
            .into_iter()
            .collect();
        caller.call = post(&headers, request("initialize", &initialize));
        headers.push(("mcp-protocol-version", version.to_owned()));
        let meta = match revision.era() {
            Era::Handshake => {
                let response = caller.answer();
                let session = response.headers()["mcp-session-id"].to_str();
                headers.push(("mcp-session-id", session.expect("a name").to_owned()));
                caller.call = post(&headers, notification("notifications/initialized"));
                caller.answer();
                String::new()
            }
            Era::Stateless => {
                headers.push(("mcp-method", "tools/call".to_owned()));
                headers.push(("mcp-name", "echo".to_owned()));
                let of = "io.modelcontextprotocol";
                let client = client.replace("clientInfo", &format!("{of}/clientInfo"));
                let version = format!(r#""{of}/protocolVersion":"{version}""#);
                format!(r#","_meta":{{{version},{client},"{of}/clientCapabilities":{{}}}}"#)
            }
        };
        let params = format!(r#"{{"name":"echo","arguments":{{"text":"hello, world"}}{meta}}}"#);
        caller.call = post(&headers, request("tools/call", &params));
        caller
    }

    fn answer(&self) -> Response<HttpBody> {
        let _context = self.runtime.enter();
        at_once(self.service.respond(self.call.clone()))
    }

    /// Makes one call.
    ///
    /// # Panics
    /// If the tool does not answer.
    pub fn call(&self) {
        let answer = at_once(self.answer().into_body().collect()).expect("a body");
        let answer = answer.to_bytes();
        assert!(memchr::memmem::find(&answer, b"hello, world").is_some());
    }
}

/// The result of a future that waits for nothing.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("an inline tool is answered at once"),
    }
}

fn post(headers: &[(&str, String)], body: Bytes) -> Request<Full<Bytes>> {
    let post = Request::post("/mcp")
        .header("host", "127.0.0.1:8000")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("content-length", body.len());
    let with = |post: hyper::http::request::Builder, (name, value): &(&str, String)| {
        post.header(*name, value)
    };
    let post = headers.iter().fold(post, with);
    post.body(Full::new(body)).expect("a request")
}

fn request(method: &str, params: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#).into()
}

fn notification(method: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#).into()
}
