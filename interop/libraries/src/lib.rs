//! Handlers that use what Rust programs use. Each works wherever a handler runs.
#![allow(missing_docs, reason = "tools, which the tests call")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use mcpbolt::prelude::*;
use sqlx::{Connection, SqliteConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

type Answer<T = String> = Result<T, HandlerError>;

#[tool]
async fn by_reqwest(url: String) -> Answer {
    Ok(reqwest::get(url).await?.text().await?)
}

#[tool]
async fn by_hyper(url: String) -> Answer {
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let body = client.get(url.parse()?).await?.into_body();
    Ok(String::from_utf8(body.collect().await?.to_bytes().into())?)
}

#[tool]
async fn by_sqlx(number: i64) -> Answer<i64> {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await?;
    let query = sqlx::query_scalar("select ? * 2").bind(number);
    Ok(query.fetch_one(&mut connection).await?)
}

#[tool]
async fn by_files(text: String) -> Answer {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("mcpbolt-libraries-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    tokio::fs::write(&path, text).await?;
    let read = tokio::fs::read_to_string(&path).await?;
    tokio::fs::remove_file(path).await?;
    Ok(read)
}

#[tool]
async fn by_process(text: String) -> Answer {
    let output = tokio::process::Command::new("echo")
        .arg("-n")
        .arg(text)
        .output()
        .await?;
    Ok(String::from_utf8(output.stdout)?)
}

#[tool]
async fn by_time() -> &'static str {
    let late = tokio::time::sleep(Duration::from_secs(600));
    match tokio::time::timeout(Duration::from_millis(2), late).await {
        Err(_) => "in time",
        Ok(()) => "late",
    }
}

#[tool]
async fn by_blocking() -> Answer {
    let blocking = || std::thread::sleep(Duration::from_millis(2));
    tokio::task::spawn_blocking(blocking).await?;
    Ok("blocked".to_owned())
}

#[tool]
async fn by_tasks() -> Answer<u32> {
    let mut set: JoinSet<u32> = (1..=10).map(|number| async move { number }).collect();
    let mut sum = 0;
    while let Some(number) = set.join_next().await {
        sum += number?;
    }
    Ok(sum)
}

#[tool]
async fn by_sockets(text: String) -> Answer {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (near, far) = tokio::join!(tokio::net::TcpStream::connect(address), listener.accept());
    near?.write_all(text.as_bytes()).await?;
    let mut heard = String::new();
    far?.0.read_to_string(&mut heard).await?;
    Ok(heard)
}

/// Ends with its call.
#[tool]
async fn by_select(context: Context) -> &'static str {
    tokio::select! {
        () = context.cancel_token().cancelled() => "cancelled",
        () = tokio::time::sleep(Duration::from_secs(600)) => "late",
    }
}

/// Chooses the cryptography of reqwest, which is built without any here. With reqwest's default features, programs
/// need not do so.
pub fn use_ring() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The server of all.
///
/// # Errors
/// When two tools have one name.
pub fn server() -> Result<Server, mcpbolt::server::RegistryError> {
    use_ring();
    let tools = handlers![
        by_reqwest,
        by_hyper,
        by_sqlx,
        by_files,
        by_process,
        by_time,
        by_blocking,
        by_tasks,
        by_sockets,
        by_select,
    ];
    Server::builder("libraries", "1.0.0").with(tools).build()
}
