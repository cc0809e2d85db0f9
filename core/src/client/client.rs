//! Typed calls to a server.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::call::CallTool;
use super::core::{ClientCore, member, parse, result};
use super::pending::PendingRequest;
use super::results::GetPromptResult;
use super::typed::TypedCall;
use crate::connection::{Handle, RequestOptions};
use crate::error::RequestError;
use crate::mcp::{Method, Revision};
use crate::message::Message;
use crate::model::{CompletionTarget, Completions, ResourceContents};

/// A connection to a server, with typed MCP methods. Cheap to clone.
///
/// With the `stdio` feature, `Client::spawn` starts a server as a child process, and
/// [`builder`](Self::builder) makes a client that servers can ask things.
#[derive(Clone, Debug)]
pub struct Client {
    pub(super) core: ClientCore,
}

impl Client {
    /// Attaches `wire`, which is dropped with the last clone.
    #[cfg(feature = "stdio")]
    pub(crate) fn held_by(mut self, wire: std::sync::Arc<dyn std::any::Any + Send + Sync>) -> Self {
        self.core.wire = Some(wire);
        self
    }

    /// The arguments of a tool that are also sent as headers; `None` before the tool was listed.
    #[cfg(feature = "http-client")]
    pub(crate) fn header_arguments(
        &self,
        tool: &str,
    ) -> Option<std::sync::Arc<[crate::mcp::header::HeaderParam]>> {
        self.core.header_arguments.as_ref()?.of(tool)
    }

    /// Notes which arguments of the tools on a page are also sent as headers, on a transport that has headers. `items` is a
    /// JSON array.
    #[cfg(feature = "server")]
    pub(crate) fn note_tools(&self, items: &str) {
        drop(self.core.usable(Method::ListTools, items));
    }

    /// The connection.
    pub fn handle(&self) -> &Handle {
        &self.core.handle
    }

    /// The negotiated protocol revision, once there is one.
    pub fn revision(&self) -> Option<Revision> {
        self.core.handle.revision()
    }

    /// The server's `Implementation`: name, version and more. Null when it sent none.
    pub fn server_info(&self) -> Value {
        let peer = self
            .core
            .handle
            .peer()
            .map_or("", |peer| &peer.implementation);
        serde_json::from_str(peer).unwrap_or_default()
    }

    /// The server's capabilities.
    pub fn capabilities(&self) -> Value {
        let peer = self
            .core
            .handle
            .peer()
            .map_or("{}", |peer| &peer.capabilities);
        serde_json::from_str(peer).unwrap_or_default()
    }

    /// The instructions with which the server describes itself to the model.
    pub fn instructions(&self) -> Option<&str> {
        self.core.handle.peer()?.instructions.as_deref()
    }

    /// Sends a request with any method. `params` is a JSON object.
    ///
    /// # Errors
    /// When it cannot be sent: the connection has ended, too many requests wait, or the params
    /// are no JSON object.
    pub fn request(
        &self,
        method: &str,
        params: Option<&str>,
        options: RequestOptions,
    ) -> Result<PendingRequest, RequestError> {
        PendingRequest::send(&self.core, method, params, options)
    }

    /// Sends a request that the server may answer with questions, and waits for the complete answer.
    async fn ask(&self, method: Method, params: &Value) -> Result<Message, RequestError> {
        let options = RequestOptions::default();
        self.request(method.name(), Some(&params.to_string()), options)?
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
    pub fn call_tool(&self, name: &str, arguments: &impl Serialize) -> CallTool {
        CallTool::new(&self.core, name, arguments)
    }

    /// Calls a tool and reads its result as a `T`. `arguments` serializes to a JSON object.
    ///
    /// The value is the structured content of the result; or, if that is an object with the one member `result`
    /// and no `T`, this member, in which some servers wrap values that are no objects. Without structured
    /// content, it is the text of the result: JSON if the text begins with `{` or `[`; otherwise what the text
    /// stands for (`7` is a number for a `u32`, a text for a `String`), or else JSON. A result without any text is
    /// `()`, or `None`.
    ///
    /// If this client has [listed](Self::list_tools) the tool, the structured content must fit the tool's output
    /// schema; otherwise only `T` decides. To set a timeout or to watch progress, use
    /// [`CallTool::read_as`].
    ///
    /// ```no_run
    /// # async fn example(client: mcpbolt::client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Weather {
    ///     celsius: f64,
    /// }
    ///
    /// let weather: Weather = client.call("weather", &json!({"city": "Rome"})).await?;
    /// println!("{} °C", weather.celsius);
    /// let copies = client.call::<u32>("copies", &json!({"title": "Faust"})).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`CallError`](super::CallError), when it is awaited: the call has no result, the tool failed, or the
    /// result is not a `T`.
    pub fn call<T: DeserializeOwned>(
        &self,
        tool: &str,
        arguments: &impl Serialize,
    ) -> TypedCall<T> {
        self.call_tool(tool, arguments).read_as()
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<ResourceContents>, RequestError> {
        self.core.require("resources")?;
        let params = json!({ "uri": uri });
        member(&self.ask(Method::ReadResource, &params).await?, "contents")
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
        self.core.require("prompts")?;
        let params = json!({ "name": name, "arguments": strings(arguments) });
        parse(result(&self.ask(Method::GetPrompt, &params).await?))
    }

    /// Asks for the values that an argument of a prompt or resource template may take, given how it
    /// begins. `context` holds the other arguments that are already filled in; it is not sent in
    /// revisions before 2025-06-18, which do not have it.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn complete(
        &self,
        target: &CompletionTarget,
        (argument, value): (&str, &str),
        context: &[(&str, &str)],
    ) -> Result<Completions, RequestError> {
        let rules = self.revision().map(Revision::rules);
        // Revisions without the capability have no way to declare completion.
        if rules.is_some_and(|rules| rules.completions) {
            self.core.require("completions")?;
        }
        let mut params = json!({
            "ref": target,
            "argument": { "name": argument, "value": value },
        });
        if rules.is_some_and(|rules| rules.completion_context) && !context.is_empty() {
            params["context"] = json!({ "arguments": strings(context) });
        }
        if self.handle().config().profile.overlay().names_resources
            && let Some(uri) = params["ref"].get_mut("uri").map(Value::take)
        {
            params["ref"] = json!({"type": "ref/resource", "name": uri});
        }
        member(&self.ask(Method::Complete, &params).await?, "completion")
    }

    /// Pings the server. Revisions from 2026-07-28 on have no ping (R-PNG-03); there this sends
    /// `server/discover`.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn ping(&self) -> Result<(), RequestError> {
        let method = match self.revision() {
            Some(_) if self.core.has_method(Method::Ping) => Method::Ping,
            _ => Method::Discover,
        };
        self.core.ask(method, None).await.map(drop)
    }

    /// Closes the connection.
    pub fn close(&self) {
        self.handle().close();
    }
}

/// Makes a JSON object of strings.
fn strings(members: &[(&str, &str)]) -> Map<String, Value> {
    let member = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).into());
    members.iter().map(member).collect()
}
