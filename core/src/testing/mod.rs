//! Tests of a server: a client in the same process, which remembers what the server sent.
//!
//! ```
//! # #[cfg(feature = "macros")] {
//! use mcpbolt::client::block_on;
//! use mcpbolt::prelude::*;
//! use mcpbolt::testing::TestClient;
//! use serde_json::json;
//!
//! /// Divides two numbers.
//! #[tool]
//! fn divide(a: i64, b: i64, context: Context) -> Result<i64, &'static str> {
//!     context.progress(1.0, Some(2.0), Some("checking"));
//!     a.checked_div(b).ok_or("b is zero")
//! }
//!
//! let server = Server::builder("calculator", "1.0.0").with(handlers![divide]).build()?;
//! block_on(async {
//!     let test = TestClient::new(&server).await?;
//!     test.call("divide", json!({"a": 6, "b": 2})).await.expect_text("3");
//!     let four: i64 = test.call("divide", json!({"a": 8, "b": 2})).await.expect_value();
//!     assert_eq!(four, 4);
//!     assert_eq!(test.progress()[0].message.as_deref(), Some("checking"));
//!     test.call("divide", json!({"a": 6, "b": 0})).await.expect_error("b is zero");
//!     test.call("divide", json!({"a": 6})).await.expect_error("invalid arguments");
//!     Ok::<(), std::io::Error>(())
//! })?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A failed assertion panics and shows what came instead:
//!
//! ```text
//! the call of divide with {"a":6,"b":0}: expected the text "3", but got the tool error "b is zero"
//! ```

mod called;

pub use self::called::Called;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::client::{Client, ClientBuilder, Interests, Listening};
use crate::mcp::{Era, LogLevel, Method, meta};
use crate::server::Server;

/// How long [`TestClient::notification`] waits.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client of a server in this process. It asks for progress, all log messages and changes of the lists.
#[derive(Debug)]
pub struct TestClient {
    client: Client,
    heard: Arc<Mutex<Heard>>,
    /// Open as long as the client, in revisions where a client asks for changes.
    _listening: Option<Listening>,
}

/// The messages of the server that no assertion has taken yet.
#[derive(Debug, Default)]
struct Heard {
    progress: Vec<ProgressReport>,
    notifications: Vec<Notification>,
    waiting: Option<Waker>,
}

/// A progress notification.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressReport {
    /// The amount done so far.
    pub progress: f64,
    /// The amount to be done in total, if known.
    pub total: Option<f64>,
    /// A message for people.
    pub message: Option<String>,
}

/// A notification other than progress.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// The method, such as `notifications/message` for a log message.
    pub method: String,
    /// The params; null if there are none.
    pub params: Value,
}

impl TestClient {
    /// Connects to a server.
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`].
    pub async fn new(server: &Server) -> io::Result<Self> {
        Self::with(Client::builder("test", "1.0.0"), server).await
    }

    /// Connects a client with handlers, revisions or limits of its own. Its
    /// [`on_raw_notice`](ClientBuilder::on_raw_notice) is replaced.
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`].
    pub async fn with(builder: ClientBuilder, server: &Server) -> io::Result<Self> {
        let heard = Arc::new(Mutex::new(Heard::default()));
        let sink = heard.clone();
        let hear = move |method: &str, params: Option<&str>| {
            let params = params.and_then(|params| serde_json::from_str(params).ok());
            let mut heard = lock(&sink);
            heard.notifications.push(Notification {
                method: method.to_owned(),
                params: params.unwrap_or_default(),
            });
            if let Some(waiting) = heard.waiting.take() {
                waiting.wake();
            }
        };
        let client = builder.on_raw_notice(hear).connect(server).await?;
        // Not all servers and revisions have these two.
        let _ = client.set_log_level(LogLevel::Debug).await;
        let interests = Interests {
            tools: true,
            prompts: true,
            resources: true,
            uris: Vec::new(),
        };
        let listening = client.listen(interests).await.ok();
        lock(&heard).notifications.clear();
        Ok(Self {
            client,
            heard,
            _listening: listening,
        })
    }

    /// The client, for all other requests.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: impl Serialize) -> Called {
        let arguments = json!(arguments);
        let heard = self.heard.clone();
        let mut call = self.client.call_tool(tool, &arguments);
        call = call.on_progress(move |report| {
            lock(&heard).progress.push(ProgressReport {
                progress: report.progress,
                total: report.total,
                message: report.message.map(str::to_owned),
            });
        });
        if self
            .client
            .revision()
            .is_some_and(|revision| revision.era() == Era::Stateless)
        {
            call = call.meta(&json!({ meta::LOG_LEVEL: LogLevel::Debug.name() }));
        }
        let result = call.await;
        Called::new(tool, arguments, result)
    }

    /// Takes the progress reports since the last time.
    pub fn progress(&self) -> Vec<ProgressReport> {
        std::mem::take(&mut lock(&self.heard).progress)
    }

    /// Takes the notifications since the last time, log messages included.
    pub fn notifications(&self) -> Vec<Notification> {
        std::mem::take(&mut lock(&self.heard).notifications)
    }

    /// Takes the log messages since the last time, as their `data`.
    pub fn logs(&self) -> Vec<Value> {
        let heard = &mut lock(&self.heard).notifications;
        let logs = heard.extract_if(.., |one| one.method == Method::LogMessage.name());
        logs.map(|mut log| log.params["data"].take()).collect()
    }

    /// Takes the first notification with this method and returns its params, waiting up to 10 seconds.
    ///
    /// # Panics
    /// When no such notification comes.
    pub async fn notification(&self, method: &str) -> Value {
        let mut patience = pin!(self.client.handle().sleep(PATIENCE));
        poll_fn(|cx| {
            let mut heard = lock(&self.heard);
            let found = heard
                .notifications
                .iter()
                .position(|one| one.method == method);
            if let Some(at) = found {
                return Poll::Ready(heard.notifications.remove(at).params);
            }
            heard.waiting = Some(cx.waker().clone());
            let came = &heard.notifications;
            assert!(
                patience.as_mut().poll(cx).is_pending(),
                "expected {method}, but got {came:?}"
            );
            Poll::Pending
        })
        .await
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}
