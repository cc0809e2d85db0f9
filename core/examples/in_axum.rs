//! An MCP server beside the other routes of an axum application, with shared state and the application's
//! own layers. `cargo run -p mcpbolt --features http --example in_axum -- 127.0.0.1:8000`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State as AxumState;
use axum::http::{HeaderName, Request};
use axum::middleware::{map_request, map_response};
use axum::response::Response;
use axum::routing::{any_service, get};
use mcpbolt::io::http::{HttpOptions, HttpService};
use mcpbolt::prelude::*;

#[derive(Default)]
struct Visits {
    count: AtomicU64,
}

/// The host that a request was sent to.
#[derive(Clone)]
struct Host(String);

/// Counts a visit.
#[tool]
async fn visit(visits: State<Arc<Visits>>, Extension(host): Extension<Host>) -> String {
    // Handlers are tasks of the application's runtime.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let count = visits.count.fetch_add(1, Ordering::Relaxed) + 1;
    format!("visit {count} at {}", host.0)
}

async fn count(AxumState(visits): AxumState<Arc<Visits>>) -> String {
    visits.count.load(Ordering::Relaxed).to_string()
}

/// Puts a value beside each request, which handlers take as an `Extension`.
async fn with_host<B>(mut request: Request<B>) -> Request<B> {
    let host = request.headers().get(axum::http::header::HOST);
    let host = host
        .and_then(|host| host.to_str().ok())
        .unwrap_or("nowhere");
    let host = Host(host.to_owned());
    request.extensions_mut().insert(host);
    request
}

async fn signed(mut response: Response) -> Response {
    let name = HeaderName::from_static("x-served-by");
    response
        .headers_mut()
        .insert(name, axum::http::HeaderValue::from_static("axum"));
    response
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8000".to_owned());
    let visits = Arc::new(Visits::default());
    let server = Server::builder("visits", "1.0.0")
        .state(visits.clone())
        .with(handlers![visit])
        .build()?;
    let mcp = HttpService::new(&server, HttpOptions::default())?;
    let app = Router::new()
        .route("/count", get(count))
        .route("/mcp", any_service(mcp.clone()))
        .layer(map_request(with_host))
        .layer(map_response(signed))
        .with_state(visits);
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    let stopped = async move {
        let _ = tokio::signal::ctrl_c().await;
        mcp.stop();
    };
    Ok(axum::serve(listener, app)
        .with_graceful_shutdown(stopped)
        .await?)
}
