//! An MCP server beside the other routes of an axum application, with shared state and the application's
//! own layers. `cargo run -p mcpbolt --features http --example in_axum -- 127.0.0.1:8000`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State as AxumState;
use axum::http::HeaderName;
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{any_service, get};
use mcpbolt::io::http::{HttpOptions, HttpService};
use mcpbolt::prelude::*;

#[derive(Default)]
struct Visits {
    count: AtomicU64,
}

/// Counts a visit.
#[tool]
async fn visit(visits: State<Arc<Visits>>) -> String {
    // Handlers are tasks of the application's runtime.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let count = visits.count.fetch_add(1, Ordering::Relaxed) + 1;
    format!("visit {count}")
}

async fn count(AxumState(visits): AxumState<Arc<Visits>>) -> String {
    visits.count.load(Ordering::Relaxed).to_string()
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
