//! rmcp's client, with a user and a model that answer what a test says.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rmcp::model::*;
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, RequestContext, RunningService,
    ServiceError,
};
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, from_value, json, to_value};

pub type Running = RunningService<RoleClient, Peer>;

/// The revisions whose messages differ most: the newest with a handshake, and the newest.
pub const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The steps done, and what they are.
pub type Report = (f64, Option<String>);

/// What the client answers, and what it has seen.
#[derive(Clone, Default)]
pub struct Peer {
    /// The revision that it proposes; `connect` sets it.
    pub revision: ProtocolVersion,
    /// The result of `elicitation/create`.
    pub user: Value,
    /// The result of `sampling/createMessage`.
    pub model: Value,
    /// The params of what the server asked, in order.
    pub asked: Arc<Mutex<Vec<Value>>>,
    /// The progress that was reported.
    pub progress: Arc<Mutex<Vec<Report>>>,
}

impl Peer {
    fn answer<T: serde::de::DeserializeOwned>(
        &self,
        asked: impl serde::Serialize,
        answer: &Value,
    ) -> Result<T, ErrorData> {
        self.asked.lock().unwrap().push(to_value(asked).unwrap());
        from_value(answer.clone())
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

impl ClientHandler for Peer {
    fn get_info(&self) -> ClientConfig {
        let capabilities = json!({
            "sampling": {}, "elicitation": {"form": {}, "url": {}},
            "extensions": {TASKS_EXTENSION_ID: {}},
        });
        let info = Implementation::new("counterparts", "1");
        let config = ClientConfig::new(from_value(capabilities).unwrap(), info);
        config.with_protocol_version(self.revision.clone())
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.answer(params, &self.model)
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.answer(params, &self.user)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let report = (params.progress, params.message);
        self.progress.lock().unwrap().push(report);
    }
}

/// Connects the client in that revision.
pub async fn connect<T, E, A>(mut peer: Peer, transport: T, revision: &str) -> Running
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    peer.revision = from_value(revision.into()).unwrap();
    let preferred_versions = vec![peer.revision.clone()];
    let lifecycle = match peer.revision.has_initialize() {
        true => ClientLifecycleMode::Initialize,
        false => ClientLifecycleMode::Discover { preferred_versions },
    };
    let client = peer.serve_with_lifecycle(transport, lifecycle);
    let client = client.await.unwrap();
    let agreed = client.peer_info().unwrap().protocol_version.to_string();
    assert_eq!(agreed, revision);
    client
}

fn example(name: &str) -> PathBuf {
    let path = std::env::current_exe().unwrap();
    let path = path.parent().unwrap().with_file_name("examples");
    let path = path.join(format!("servers_{name}"));
    assert!(
        path.exists(),
        "build it first, by `cargo build -p interop-counterparts --examples`: {}",
        path.display()
    );
    path
}

/// The output of a program that ends by itself.
pub fn output(name: &str) -> String {
    let output = Command::new(example(name)).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A client that has started the program as its child.
pub async fn spawned(name: &str, revision: &str, peer: Peer) -> Running {
    let command = tokio::process::Command::new(example(name));
    let transport = TokioChildProcess::new(command).unwrap();
    connect(peer, transport, revision).await
}

/// A program that serves on HTTP; it ends with the test.
pub struct OnHttp(Child, pub String);

impl OnHttp {
    pub fn start(name: &str, address: &str) -> Self {
        let mut command = Command::new(example(name));
        command.arg(address).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let url = line.strip_prefix("listening on ").expect(&line).to_owned();
        // What the program writes later does not fill its pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self(child, url)
    }

    pub async fn client(&self, revision: &str, peer: Peer) -> Running {
        // Fails if another test was first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let transport = StreamableHttpClientTransport::from_uri(self.1.as_str());
        connect(peer, transport, revision).await
    }
}

impl Drop for OnHttp {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The result of a request, or its error as JSON.
pub async fn ask(client: &Running, method: &str, params: Value) -> Value {
    fn told<T: serde::Serialize>(answer: Result<T, ServiceError>) -> Value {
        match answer {
            Ok(result) => json!(result),
            Err(ServiceError::McpError(error)) => json!({"error": error}),
            Err(other) => panic!("{other}"),
        }
    }
    match method {
        "tools/list" => told(client.list_tools(None).await),
        "prompts/list" => told(client.list_prompts(None).await),
        "resources/list" => told(client.list_resources(None).await),
        "resources/templates/list" => told(client.list_resource_templates(None).await),
        "tools/call" => told(client.call_tool(from_value(params).unwrap()).await),
        "prompts/get" => told(client.get_prompt(from_value(params).unwrap()).await),
        "resources/read" => told(client.read_resource(from_value(params).unwrap()).await),
        "completion/complete" => told(client.complete(from_value(params).unwrap()).await),
        other => panic!("no such request: {other}"),
    }
}

/// The result of a tool.
pub async fn call(client: &Running, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    ask(client, "tools/call", params).await
}

/// The text of a tool's result.
pub async fn text(client: &Running, tool: &str, arguments: Value) -> String {
    let result = call(client, tool, arguments).await;
    assert_ne!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{result}")).to_owned()
}

/// The names in a list, sorted.
pub async fn names(client: &Running, method: &str, list: &str) -> Vec<String> {
    let listed = ask(client, method, Value::Null).await;
    let listed = listed[list].as_array().unwrap().iter();
    let mut names: Vec<_> = listed
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}
