//! A counter as a service of hyper, whose connections the program accepts itself.

#[path = "../shared/counter.rs"]
mod counter;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use mcpbolt::io::http::{HttpOptions, HttpService};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = HttpOptions {
        path: "*".to_owned(),
        ..HttpOptions::default()
    };
    let service = HttpService::new(&counter::server()?, options)?;
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("[::1]:8080");
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    loop {
        let io = tokio::select! {
            _ = tokio::signal::ctrl_c() => break,
            accepted = listener.accept() => TokioIo::new(accepted?.0),
        };
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let builder = Builder::new(TokioExecutor::new());
            let _ = builder.serve_connection(io, service).await;
        });
    }
    service.stop();
    Ok(())
}
