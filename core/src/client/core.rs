//! A client below its typed methods: the connection, and what is remembered about the server.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::actions::ActionState;
use super::cache::ListCache;
use super::cursor::ListCursor;
use super::known_tools::KnownTools;
use super::listen::Streams;
use super::shapes;
use crate::connection::{Handle, RequestOptions};
use crate::correlate::CancelToken;
use crate::error::RequestError;
use crate::handler::HandlerError;
use crate::handler::guarded::Made;
use crate::json::reader;
#[cfg(feature = "http-client")]
use crate::mcp::header_arguments::HeaderArguments;
use crate::mcp::{Era, Method, Revision, Side};
use crate::message::Message;
use crate::model::Root;

/// The connection of a client, and what its clones share. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct ClientCore {
    pub handle: Handle,
    pub tools: Arc<KnownTools>,
    /// Schemas and circuit breaker for a server of the action dialect.
    pub actions: Arc<ActionState>,
    pub responder: Arc<dyn Responder>,
    /// Whether results are checked against the specification.
    pub checks: bool,
    /// The streams it listens to, if its host forwards acknowledgements.
    pub streams: Option<Arc<Streams>>,
    /// Cached list pages, if its host forwards change notifications.
    pub cache: Option<Arc<ListCache>>,
    /// The arguments that are also sent as headers, if the transport has headers.
    #[cfg(feature = "http-client")]
    pub header_arguments: Option<Arc<HeaderArguments>>,
    /// Ends the connection when the last clone is dropped.
    #[cfg(feature = "stdio")]
    pub wire: Option<Arc<dyn std::any::Any + Send + Sync>>,
}

/// Answers requests of the server: the program's handlers.
pub(super) trait Responder: fmt::Debug + Send + Sync {
    /// Whether the server may send this request (R-CAP-02).
    fn offers(&self, method: Method) -> bool;

    /// Whether the client declares the extension.
    fn has_extension(&self, id: &str) -> bool;

    /// Replaces the roots. Returns whether roots are offered at all.
    fn replace_roots(&self, roots: Vec<Root>) -> bool;

    /// Answers a request with a result, a JSON object.
    fn answer(
        self: Arc<Self>,
        request: (Method, String),
        client: ClientCore,
        revision: Revision,
        cancel: CancelToken,
    ) -> Made<Result<String, HandlerError>>;
}

impl ClientCore {
    pub fn new(handle: Handle, responder: Arc<dyn Responder>) -> Self {
        Self {
            handle,
            tools: Arc::default(),
            actions: Arc::default(),
            responder,
            checks: false,
            streams: None,
            cache: None,
            #[cfg(feature = "http-client")]
            header_arguments: None,
            #[cfg(feature = "stdio")]
            wire: None,
        }
    }

    pub fn revision(&self) -> Option<Revision> {
        self.handle.revision()
    }

    pub fn is_stateless(&self) -> bool {
        self.revision().map(Revision::era) == Some(Era::Stateless)
    }

    /// The position before the first page of a list.
    pub fn first_page(&self) -> ListCursor {
        ListCursor::first(self.handle.config().limits.max_message_bytes)
    }

    /// Whether the revision, once there is one, defines this method for clients.
    pub fn has_method(&self, method: Method) -> bool {
        let defined = |revision| method.defined(revision, Side::Client);
        self.revision().is_none_or(defined)
    }

    /// Checks that the revision defines this method for clients.
    pub fn require_method(&self, method: Method, name: &'static str) -> Result<(), RequestError> {
        match self.has_method(method) {
            true => Ok(()),
            false => Err(RequestError::Unsupported(name)),
        }
    }

    /// Checks that the server declared a capability, named by its path (R-CAP-03).
    pub fn require(&self, name: &'static str) -> Result<(), RequestError> {
        let path: Vec<_> = name.split('.').collect();
        self.require_at(&path, name)
    }

    /// Checks that the server declared the capability at `path`.
    pub fn require_at(&self, path: &[&str], name: &'static str) -> Result<(), RequestError> {
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

    /// Sends a request that the server answers without questions, and waits for the answer.
    ///
    /// # Errors
    /// The server's error, a timeout, the end of the connection, or an answer of another shape.
    pub async fn ask(&self, method: Method, params: Option<&str>) -> Result<Message, RequestError> {
        self.ask_with(method, params, RequestOptions::default())
            .await
    }

    /// [`ask`](Self::ask), with options.
    pub async fn ask_with(
        &self,
        method: Method,
        params: Option<&str>,
        options: RequestOptions,
    ) -> Result<Message, RequestError> {
        let answer = self.handle.request(method.name(), params, options)?.await?;
        require_complete(&answer)?;
        if self.checks {
            shapes::check(method, result(&answer))?;
        }
        Ok(answer)
    }

    /// The items of a page of a list, without those that this transport cannot use.
    #[cfg_attr(not(feature = "http-client"), expect(unused_variables))]
    pub fn usable<'a>(&self, list: Method, items: &'a str) -> Cow<'a, str> {
        #[cfg(feature = "http-client")]
        if let Some(known) = &self.header_arguments
            && list == Method::ListTools
            && self.is_stateless()
        {
            return known.learn(items);
        }
        items.into()
    }
}

/// The result in an answer.
pub(super) fn result(answer: &Message) -> &str {
    answer.as_ref().result().unwrap_or("{}")
}

/// Fails for a result that is not complete (R-RPC-19).
pub(super) fn require_complete(message: &Message) -> Result<(), RequestError> {
    match message.as_ref().result_type().as_deref() {
        None | Some("complete") => Ok(()),
        Some("input_required") => Err(RequestError::BadAnswer("a question where none may stand")),
        Some(_) => Err(RequestError::BadAnswer("an unknown resultType")),
    }
}

pub(super) fn parse<T: DeserializeOwned>(json: &str) -> Result<T, RequestError> {
    serde_json::from_str(json).map_err(|_| RequestError::BadAnswer("a result of another shape"))
}

/// A member of the result.
pub(super) fn member<T: DeserializeOwned>(answer: &Message, key: &str) -> Result<T, RequestError> {
    parse(reader::find(result(answer), key).unwrap_or("null"))
}
