//! A server and a client on an HTTP connection that was upgraded to the protocol `mcp`.

#[path = "calculator.rs"]
mod calculator;

use std::net::SocketAddr;

use calculator::calculator;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, UPGRADE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use mcpbolt::client::Client;
use tokio::net::{TcpListener, TcpStream};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env().add_directive(tracing::Level::INFO.into()))
        .init();
    let address = start_server("127.0.0.1:0").await?;
    let client = http_client(address).await?;
    tracing::info!("{:#?}", client.list_tools().await?);
    Ok(())
}

async fn http_server(request: Request<Incoming>) -> anyhow::Result<Response<String>> {
    let server = calculator()?;
    tokio::spawn(async move {
        let upgraded = hyper::upgrade::on(request).await?;
        server.serve_on(TokioIo::new(upgraded)).await?;
        anyhow::Ok(())
    });
    let mut response = Response::new(String::new());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response
        .headers_mut()
        .insert(UPGRADE, HeaderValue::from_static("mcp"));
    Ok(response)
}

pub(crate) async fn http_client(address: SocketAddr) -> anyhow::Result<Client> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    tokio::spawn(connection.with_upgrades());
    let mut request = Request::new(String::new());
    request
        .headers_mut()
        .insert(UPGRADE, HeaderValue::from_static("mcp"));
    let upgraded = hyper::upgrade::on(sender.send_request(request).await?).await?;
    let client = Client::builder("http-upgrade", "1.0.0");
    Ok(client.connect_on(TokioIo::new(upgraded)).await?)
}

pub(crate) async fn start_server(address: &str) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            tracing::info!("accepted connection from: {peer}");
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(
                    TokioIo::new(stream),
                    hyper::service::service_fn(http_server),
                )
                .with_upgrades();
            tokio::spawn(connection);
        }
    });
    Ok(address)
}
