//! Typed calls to a server, from any thread and any runtime.
//!
//! A [`Client`] is a [`Handle`] with typed MCP methods. If the server did not declare the
//! capability for a request, the request fails locally with an error that names it (R-CAP-03).

mod actions;
mod asking;
mod builder;
mod cache;
mod call;
mod context;
mod cursor;
mod experimental;
mod extend;
mod handlers;
mod hints;
mod host;
mod icon;
mod known;
mod listen;
mod lists;
#[cfg(feature = "http-client")]
mod mirrored;
mod notice;
mod pages;
mod results;
mod rounds;
mod settings;
mod shapes;
#[cfg(feature = "skills")]
mod skills;
mod tasks;

use std::sync::Arc;

use serde_json::Value;

use self::actions::Actions;
pub use self::actions::{
    ActionAnswer, ActionCall, ActionError, ActionFailure, BreakerPolicy, RetryPolicy,
};
pub use self::asking::Asking;
pub use self::builder::{ClientBuilder, Prepared};
use self::cache::Cache;
pub use self::call::{CallTool, Calling, block_on};
pub use self::context::Context;
pub use self::experimental::{BatchError, BatchRequest, BatchResponse};
use self::handlers::Handlers;
pub use self::hints::{Hints, Trust};
pub use self::host::ClientHost;
pub use self::icon::{Icon, IconSource, ImageKind, MAX_ICON_BYTES, image_kind, may_redirect};
use self::known::Known;
use self::listen::Streams;
pub use self::listen::{Interests, Listening};
#[cfg(feature = "http-client")]
use self::mirrored::Mirrored;
pub use self::notice::Notice;
pub use self::pages::Pages;
pub use self::results::{
    CallToolResult, CompletionTarget, Completions, Content, GetPromptResult, PromptArgument,
    PromptInfo, PromptMessage, ResourceContents, ResourceInfo, ResourceTemplateInfo, ToolInfo,
};
#[cfg(feature = "skills")]
pub use self::skills::{SkillFile, SkillFiles, SkillInfo};
pub use self::tasks::{Started, Task, TaskInfo};
use crate::connection::{Config, Handle, RequestOptions};
use crate::error::RequestError;
use crate::json::reader;
use crate::mcp::{Method, Revision, Side};
use crate::message::Message;

/// A connection to a server, with typed MCP methods. Cheap to clone.
///
/// With the `stdio` feature, `Client::spawn` starts a server as a child process, and
/// [`builder`](Self::builder) makes a client that servers can ask things.
#[derive(Clone, Debug)]
pub struct Client {
    handle: Handle,
    known: Arc<Known>,
    /// Schemas and circuit breaker for a server of the action dialect.
    actions: Arc<Actions>,
    handlers: Arc<Handlers>,
    /// Whether results are checked against the specification.
    checks: bool,
    /// The streams it listens to, if its host forwards acknowledgements.
    streams: Option<Arc<Streams>>,
    /// Cached list pages, if its host forwards change notifications.
    cache: Option<Arc<Cache>>,
    /// The arguments that are also sent as headers, if the transport has headers.
    #[cfg(feature = "http-client")]
    mirrored: Option<Arc<Mirrored>>,
    /// Ends the connection when the last clone is dropped.
    #[cfg(feature = "stdio")]
    wire: Option<Arc<dyn std::any::Any + Send + Sync>>,
}

impl Client {
    /// Creates a client on an open connection. Wait for [`Handle::opened`] first, or use
    /// [`open`](Self::open).
    pub fn new(handle: Handle) -> Self {
        Self::with(handle, Arc::default())
    }

    /// Starts a builder for a client with this name and version, and with handlers for server
    /// requests.
    ///
    /// ```
    /// # #[cfg(all(feature = "server", feature = "stdio"))] {
    /// use mcpbolt::client::{Client, block_on};
    /// use mcpbolt::mcp::Sampled;
    /// # use mcpbolt::server::Server;
    /// # let server = Server::builder("test", "1").build()?;
    ///
    /// let client = Client::builder("chat", "1.0.0")
    ///     .on_sampling(|sampling, _| async move {
    ///         let asked = sampling.messages.len();
    ///         Ok(Sampled::text("a-model", format!("an answer to {asked} messages")))
    ///     })
    ///     .connect(&server); // or `.spawn(ChildCommand::new("path/to/server"))`
    /// let client = block_on(client)?;
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: &str, version: &str) -> ClientBuilder {
        ClientBuilder::new(name, version)
    }

    fn with(handle: Handle, handlers: Arc<Handlers>) -> Self {
        Self {
            handle,
            known: Arc::default(),
            actions: Arc::default(),
            handlers,
            checks: false,
            streams: None,
            cache: None,
            #[cfg(feature = "http-client")]
            mirrored: None,
            #[cfg(feature = "stdio")]
            wire: None,
        }
    }

    /// Attaches `wire`, which is dropped with the last clone.
    #[cfg(feature = "stdio")]
    pub(crate) fn held_by(mut self, wire: Arc<dyn std::any::Any + Send + Sync>) -> Self {
        self.wire = Some(wire);
        self
    }

    fn streams(&self) -> Option<&Arc<Streams>> {
        self.streams.as_ref()
    }

    fn handlers(&self) -> &Arc<Handlers> {
        &self.handlers
    }

    /// The default configuration of a client: name, version, every revision, no capabilities.
    pub fn config(name: &str, version: &str) -> Config {
        Config::new(Side::Client, name, version)
    }

    /// Waits until the connection is open and creates a client on it.
    ///
    /// # Errors
    /// Why the connection could not be opened.
    pub async fn open(handle: Handle) -> Result<Self, RequestError> {
        handle.opened().await?;
        Ok(Self::new(handle))
    }

    /// The connection.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The negotiated protocol revision, once there is one.
    pub fn revision(&self) -> Option<Revision> {
        self.handle.revision()
    }

    /// The server's `Implementation`: name, version and more. Null when it sent none.
    pub fn server_info(&self) -> Value {
        let peer = self.handle.peer().map_or("", |peer| &peer.implementation);
        serde_json::from_str(peer).unwrap_or_default()
    }

    /// The server's capabilities.
    pub fn capabilities(&self) -> Value {
        let peer = self.handle.peer().map_or("{}", |peer| &peer.capabilities);
        serde_json::from_str(peer).unwrap_or_default()
    }

    /// The instructions with which the server describes itself to the model.
    pub fn instructions(&self) -> Option<&str> {
        self.handle.peer()?.instructions.as_deref()
    }

    fn offers(&self, capability: &'static str) -> Result<(), RequestError> {
        self.declares(&[capability], capability)
    }

    /// Checks that the server declared the capability at `path` (R-CAP-03).
    fn declares(&self, path: &[&str], name: &'static str) -> Result<(), RequestError> {
        // A server that was never asked (OpeningMode::Stateless) may offer anything.
        let declared = self.handle.peer().is_none_or(|peer| {
            let value = reader::find_path(&peer.capabilities, path);
            peer.capabilities.is_empty() || value.is_some_and(|value| value != "false")
        });
        match declared {
            true => Ok(()),
            false => Err(RequestError::Unsupported(name)),
        }
    }

    /// Checks that the revision defines this method for clients.
    fn knows(&self, method: Method, name: &'static str) -> Result<(), RequestError> {
        let defined = |revision| method.defined(revision, Side::Client);
        match self.revision().is_none_or(defined) {
            true => Ok(()),
            false => Err(RequestError::Unsupported(name)),
        }
    }

    /// Sends a request and waits for the complete answer.
    async fn ask(&self, method: Method, params: Option<&str>) -> Result<Message, RequestError> {
        self.request(method.name(), params, RequestOptions::default())?
            .await
    }

    /// Calls a tool. `arguments` is a JSON object.
    ///
    /// ```no_run
    /// # async fn example(client: mcpbolt::client::Client) -> Result<(), mcpbolt::error::RequestError> {
    /// use std::time::Duration;
    /// let arguments = serde_json::json!({"text": "hello"});
    /// let result = client.call_tool("echo", &arguments).timeout(Duration::from_secs(5)).await?;
    /// println!("{}", result.text());
    /// # Ok(())
    /// # }
    /// ```
    pub fn call_tool(&self, name: &str, arguments: &impl serde::Serialize) -> CallTool {
        let schema = self.known.output_schema(name);
        CallTool::new(self, self.offers("tools"), schema, name, arguments)
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<ResourceContents>, RequestError> {
        self.offers("resources")?;
        let params = serde_json::json!({ "uri": uri }).to_string();
        let answer = self.ask(Method::ReadResource, Some(&params)).await?;
        member(&answer, "contents")
    }

    /// Renders a prompt. The values of `arguments` are strings (R-PRM-02).
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &[(&str, &str)],
    ) -> Result<GetPromptResult, RequestError> {
        self.offers("prompts")?;
        let params =
            serde_json::json!({ "name": name, "arguments": strings(arguments) }).to_string();
        let answer = self.ask(Method::GetPrompt, Some(&params)).await?;
        parse(answer.as_ref().result().unwrap_or("{}"))
    }

    /// Asks for the values that an argument of a prompt or resource template may take, given how it
    /// begins. `context` holds the other arguments that are already filled in; it is not sent in
    /// revisions before 2025-06-18, which do not have it.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn complete(
        &self,
        target: &CompletionTarget<'_>,
        (argument, value): (&str, &str),
        context: &[(&str, &str)],
    ) -> Result<Completions, RequestError> {
        // Revisions without the capability have no way to declare completion.
        if self
            .revision()
            .is_some_and(|revision| revision.rules().completions)
        {
            self.offers("completions")?;
        }
        let mut params = serde_json::json!({
            "ref": target,
            "argument": { "name": argument, "value": value },
        });
        let known = self
            .revision()
            .is_some_and(|revision| revision.rules().completion_context);
        if known && !context.is_empty() {
            params["context"] = serde_json::json!({ "arguments": strings(context) });
        }
        if self.handle.config().profile.overlay().names_resources
            && let Some(uri) = params["ref"].get_mut("uri").map(Value::take)
        {
            params["ref"] = serde_json::json!({"type": "ref/resource", "name": uri});
        }
        let params = params.to_string();
        let answer = self.ask(Method::Complete, Some(&params)).await?;
        let result = answer.as_ref().result().unwrap_or("{}");
        parse(reader::find(result, "completion").unwrap_or("{}"))
    }

    /// Pings the server. Revisions from 2026-07-28 on have no ping (R-PNG-03); there this sends
    /// `server/discover`.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn ping(&self) -> Result<(), RequestError> {
        let defined = |revision| Method::Ping.defined(revision, Side::Client);
        let method = if self.revision().is_some_and(defined) {
            Method::Ping
        } else {
            Method::Discover
        };
        self.ask(method, None).await.map(drop)
    }

    /// Closes the connection.
    pub fn close(&self) {
        self.handle.close();
    }
}

/// Fails for a result that is not complete (R-RPC-19).
fn complete(message: &Message) -> Result<(), RequestError> {
    match message.as_ref().result_type().as_deref() {
        None | Some("complete") => Ok(()),
        Some("input_required") => Err(RequestError::BadAnswer("a question where none may stand")),
        Some(_) => Err(RequestError::BadAnswer("an unknown resultType")),
    }
}

/// Makes a JSON object of strings.
fn strings(members: &[(&str, &str)]) -> serde_json::Map<String, Value> {
    let member = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).into());
    members.iter().map(member).collect()
}

fn parse<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, RequestError> {
    serde_json::from_str(json).map_err(|_| RequestError::BadAnswer("a result of another shape"))
}

fn member<T: serde::de::DeserializeOwned>(message: &Message, key: &str) -> Result<T, RequestError> {
    parse(
        message
            .as_ref()
            .result()
            .and_then(|result| reader::find(result, key))
            .unwrap_or("null"),
    )
}
