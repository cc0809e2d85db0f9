//! Where handlers run: as tasks of the program's tokio runtime, or on threads that have one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::channel::mpsc;
use futures::{Sink, SinkExt, Stream, StreamExt};
use mcpbolt::client::{Client, block_on};
use mcpbolt::error::RequestError;
use mcpbolt::io::{ChildCommand, ConnectOptions, Stderr};
use mcpbolt::server::{Arguments, Context as CallContext, Server, Tool};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::runtime::{Builder, Handle, Runtime};

const ROLE: &str = "MCPBOLT_TEST_RUNTIME";
const PATIENCE: Duration = Duration::from_secs(30);

#[mcpbolt::tool(blocking)]
fn attributed() -> &'static str {
    Handle::current().block_on(async { "attributed" })
}

/// Tools that need tokio.
fn server(dropped: &Arc<AtomicUsize>) -> Server {
    let dropped = dropped.clone();
    Server::builder("runtimes", "1")
        .tool(Tool::new("time"), |_: Arguments, _| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            "slept"
        })
        .tool(Tool::new("spawn"), |_: Arguments, _| async {
            tokio::spawn(async { "spawned" }).await.unwrap()
        })
        .tool(Tool::new("block"), |_: Arguments, _| async {
            tokio::task::spawn_blocking(|| "blocked").await.unwrap()
        })
        .tool(Tool::new("file"), |_: Arguments, _| async {
            let text =
                tokio::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
            text.await.unwrap().lines().next().unwrap().to_owned()
        })
        .tool(Tool::new("process"), |_: Arguments, _| async {
            let output = tokio::process::Command::new("echo").arg("run").output();
            String::from_utf8(output.await.unwrap().stdout).unwrap()
        })
        .tool(Tool::new("socket"), |_: Arguments, _| async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (near, far) =
                tokio::join!(tokio::net::TcpStream::connect(address), listener.accept());
            near.unwrap().write_all(b"over a socket\n").await.unwrap();
            let mut line = String::new();
            BufReader::new(far.unwrap().0)
                .read_line(&mut line)
                .await
                .unwrap();
            line
        })
        .tool(
            Tool::new("select"),
            move |_: Arguments, context: CallContext| {
                let counted = Counted(dropped.clone());
                async move {
                    let _counted = counted;
                    tokio::select! {
                        () = tokio::time::sleep(PATIENCE * 10) => "late",
                        () = context.sleep(PATIENCE * 10) => "late",
                    }
                }
            },
        )
        .with(mcpbolt::handlers![attributed])
        .blocking_tool(Tool::new("blocking"), |_: Arguments, _| {
            thread::sleep(Duration::from_millis(1));
            Handle::current().block_on(async { "blocking" })
        })
        .tool(Tool::new("panic"), |_: Arguments, _| async {
            if true {
                panic!("this text is for the operator");
            }
        })
        .tool(Tool::new("threads"), |_: Arguments, _| async {
            let name = || thread::current().name().unwrap_or_default().to_owned();
            let begun_on = name();
            tokio::task::yield_now().await;
            format!("{begun_on}, {}", name())
        })
        .build()
        .unwrap()
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Calls every tool. Returns the names of the threads on which a handler begins and goes on.
async fn check(client: &Client) -> String {
    let answers = [
        ("time", "slept"),
        ("spawn", "spawned"),
        ("block", "blocked"),
        ("file", "[package]"),
        ("process", "run\n"),
        ("socket", "over a socket\n"),
        ("blocking", "blocking"),
        ("attributed", "attributed"),
    ];
    for (tool, expected) in answers {
        let result = client.call_tool(tool, &json!({})).await.unwrap();
        assert_eq!(result.text(), expected, "{tool}");
    }
    let panicked = client.call_tool("panic", &json!({})).await.unwrap();
    assert!(
        panicked.is_error && !panicked.text().contains("operator"),
        "{panicked:?}"
    );
    client
        .call_tool("threads", &json!({}))
        .await
        .unwrap()
        .text()
}

/// Lets a call end before its handler: the handler's future is dropped.
async fn check_cancelled(client: &Client, dropped: &AtomicUsize) {
    let call = client
        .call_tool("select", &json!({}))
        .timeout(Duration::from_millis(20));
    assert!(matches!(call.await, Err(RequestError::TimedOut)));
    let begun = Instant::now();
    while dropped.load(Ordering::Relaxed) == 0 {
        assert!(begun.elapsed() < PATIENCE, "the handler still runs");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn runtimes() -> [Runtime; 2] {
    let mut many = Builder::new_multi_thread();
    many.worker_threads(2).thread_name("program");
    [Builder::new_current_thread(), many].map(|mut builder| builder.enable_all().build().unwrap())
}

async fn open(address: &str) -> Client {
    let begun = Instant::now();
    loop {
        let builder = Client::builder("test", "1");
        match builder
            .open(&address.parse().unwrap(), ConnectOptions::default())
            .await
        {
            Ok(client) => return client,
            // It does not listen yet.
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Sockets and handlers are tasks of the runtime in which a server is awaited; a signal ends it.
#[test]
fn a_server_that_is_awaited_runs_on_the_runtime_of_its_program() {
    let folder = std::env::temp_dir().join(format!("mcpbolt-runtimes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (index, runtime) in runtimes().into_iter().enumerate() {
        let dropped = Arc::default();
        let address = format!("unix:{}/{index}", folder.display());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serve = server(&dropped).serve(&address).shutdown(async {
            let _ = stopped.await;
        });
        runtime.block_on(async {
            let served = tokio::spawn(serve.into_future());
            let client = open(&address).await;
            let threads = check(&client).await;
            let own = thread::current();
            let expected = [own.name().unwrap(), "program"][index];
            assert_eq!(threads, format!("{expected}, {expected}"));
            check_cancelled(&client, &dropped).await;
            stop.send(()).unwrap();
            served.await.unwrap().unwrap();
        });
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// The blocking form has threads of its own, and handlers still find a runtime.
#[test]
fn handlers_find_a_runtime_where_the_program_has_none() {
    let dropped = Arc::default();
    let serving = server(&dropped)
        .serve("http://127.0.0.1:0/mcp")
        .start()
        .unwrap();
    let address = serving.address().to_string();
    let [runtime, _] = runtimes();
    runtime.block_on(async {
        let client = open(&address).await;
        assert_eq!(check(&client).await, "mcpbolt-worker, mcpbolt-worker");
        check_cancelled(&client, &dropped).await;
    });
    serving.stop();
    serving.wait();
}

/// The same on stdio, awaited and blocking.
#[test]
fn on_stdio_handlers_find_a_runtime() {
    let roles = [
        ("many", "mcpbolt-worker, program"),
        ("one", "runtimes::process, runtimes::process"),
        ("none", "mcpbolt-worker, mcpbolt-worker"),
        ("address", "mcpbolt-worker, mcpbolt-worker"),
    ];
    for (role, threads) in roles {
        let command = ChildCommand::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "runtimes::process",
                "--nocapture",
                "--quiet",
                "--test-threads=1",
            ])
            .env(ROLE, role)
            .stderr(Stderr::Discard);
        let client = block_on(Client::spawn(command)).unwrap();
        assert_eq!(block_on(check(&client)), threads, "{role}");
    }
}

/// Not a test: the other process. Without its variable it has nothing to do.
#[test]
fn process() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let server = server(&Arc::default());
    let [one, many] = runtimes();
    match role.as_str() {
        "many" => {
            drop(many.block_on(async { tokio::spawn(server.serve_stdio().into_future()).await }))
        }
        "one" => drop(one.block_on(server.serve_stdio().into_future())),
        "address" => server.serve("stdio:").wait().unwrap(),
        "none" => drop(server.serve_stdio().wait()),
        other => panic!("no such role: {other}"),
    }
    std::process::exit(0);
}

/// One end of a carrier of messages.
struct Messages {
    into: mpsc::Sender<Bytes>,
    from: mpsc::Receiver<Bytes>,
}

impl Stream for Messages {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.from.poll_next_unpin(cx).map(|message| message.map(Ok))
    }
}

impl Sink<Bytes> for Messages {
    type Error = mpsc::SendError;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.into.poll_ready_unpin(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Bytes) -> Result<(), Self::Error> {
        self.into.start_send_unpin(message)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.into.poll_flush_unpin(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.into.poll_close_unpin(cx)
    }
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
}

/// A carrier of the program's own carries one message in each item, also with newlines and across many
/// items, and its end is the end of the client.
#[tokio::test]
async fn a_carrier_of_messages_is_served() {
    let (into, mut answers) = mpsc::channel(1);
    let (mut messages, from) = mpsc::channel(1);
    let served = server(&Arc::default()).serve_transport(Messages { into, from });
    let served = tokio::spawn(served.into_future());
    let pretty = serde_json::to_vec_pretty(&initialize()).unwrap();
    messages.send(pretty.into()).await.unwrap();
    let answer: Value = serde_json::from_slice(&answers.next().await.unwrap()).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "runtimes");
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    messages.send(initialized.to_string().into()).await.unwrap();
    for id in 2..200 {
        let call =
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "time"}});
        messages.send(call.to_string().into()).await.unwrap();
        let answer: Value = serde_json::from_slice(&answers.next().await.unwrap()).unwrap();
        assert_eq!(
            (&answer["id"], &answer["result"]["content"][0]["text"]),
            (&json!(id), &json!("slept"))
        );
    }
    drop(messages);
    tokio::time::timeout(PATIENCE, served)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(answers.next().await.is_none());
}

/// A byte stream of the program's own.
#[tokio::test]
async fn a_byte_stream_is_served_until_a_signal() {
    let (near, far) = tokio::io::duplex(64);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = server(&Arc::default()).serve_on(near).shutdown(async {
        let _ = stopped.await;
    });
    let served = tokio::spawn(served.into_future());
    let mut far = BufReader::new(far);
    far.write_all(format!("{}\n", initialize()).as_bytes())
        .await
        .unwrap();
    let mut line = String::new();
    far.read_line(&mut line).await.unwrap();
    assert!(line.contains("2025-11-25"), "{line}");
    stop.send(()).unwrap();
    tokio::time::timeout(PATIENCE, served)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

/// A byte stream of the program's own carries a client, too; the end of the stream ends its connection.
#[tokio::test]
async fn a_byte_stream_carries_a_client() {
    let (near, far) = tokio::io::duplex(64);
    let served = tokio::spawn(server(&Arc::default()).serve_on(far).into_future());
    let client = Client::builder("test", "1").connect_on(near);
    check(&client.await.unwrap()).await;
    tokio::time::timeout(PATIENCE, served)
        .await
        .unwrap()
        .unwrap()
        .unwrap();

    let (near, far) = tokio::io::duplex(64);
    drop(far);
    let error = Client::builder("test", "1").connect_on(near).await;
    assert!(error.is_err(), "the server has ended");
}

/// The same for a carrier of messages.
#[tokio::test]
async fn a_carrier_of_messages_carries_a_client() {
    let (to_server, from_client) = mpsc::channel(1);
    let (to_client, from_server) = mpsc::channel(1);
    let far = Messages {
        into: to_client,
        from: from_client,
    };
    let near = Messages {
        into: to_server,
        from: from_server,
    };
    let served = server(&Arc::default()).serve_transport(far);
    let served = tokio::spawn(served.into_future());
    let client = Client::builder("test", "1").connect_transport(near);
    check(&client.await.unwrap()).await;
    tokio::time::timeout(PATIENCE, served)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

/// Without a runtime there is an error instead of a panic.
#[test]
fn a_client_on_a_byte_stream_needs_a_runtime() {
    let (near, _far) = tokio::io::duplex(64);
    let error = block_on(Client::builder("test", "1").connect_on(near));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("no tokio runtime"), "{error}");
}
