//! Settings of a session: streams of notifications, subscriptions, log level, roots.

#[cfg(feature = "stdio")]
use std::task::{Context, Poll};

use super::client::Client;
use super::listen::{Interests, Listening};
use crate::error::RequestError;
use crate::mcp::{LogLevel, Method, Side};
use crate::model::Root;

impl Client {
    /// Subscribes to changes of a resource, which
    /// [`ClientBuilder::on_notice`](super::ClientBuilder::on_notice) reports. From 2026-07-28 on
    /// this opens a separate [stream](Self::listen).
    ///
    /// # Errors
    /// When the server does not declare subscriptions; else as [`list_tools`](Self::list_tools).
    pub async fn subscribe(&self, uri: &str) -> Result<(), RequestError> {
        if self.core.has_method(Method::Subscribe) {
            self.about_resource(Method::Subscribe, uri).await?;
            if let Some(streams) = &self.core.streams {
                streams.subscribed(uri);
            }
            return Ok(());
        }
        self.core.require("resources.subscribe")?;
        let interests = Interests {
            uris: vec![uri.to_owned()],
            ..Interests::default()
        };
        let listening = self.listen(interests).await?;
        if let Some(streams) = &self.core.streams {
            streams.keep(uri, listening);
        }
        Ok(())
    }

    /// Ends a subscription.
    ///
    /// # Errors
    /// As [`subscribe`](Self::subscribe).
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), RequestError> {
        if self.core.has_method(Method::Unsubscribe) {
            self.about_resource(Method::Unsubscribe, uri).await?;
        }
        if let Some(streams) = &self.core.streams {
            streams.end(uri);
        }
        Ok(())
    }

    /// Whether there are subscriptions, or streams of notifications that are listened to.
    pub fn has_subscriptions(&self) -> bool {
        let streams = self.core.streams.as_ref();
        streams.is_some_and(|streams| streams.are_any())
    }

    /// Whether this client has set a log level or other roots: what the server sends, or asks for, is as that caller wanted.
    pub fn has_settings(&self) -> bool {
        let streams = self.core.streams.as_ref();
        streams.is_some_and(|streams| streams.has_settings())
    }

    fn note_settings(&self) {
        if let Some(streams) = &self.core.streams {
            streams.set();
        }
    }

    async fn about_resource(&self, method: Method, uri: &str) -> Result<(), RequestError> {
        self.core.require("resources.subscribe")?;
        let params = serde_json::json!({ "uri": uri }).to_string();
        self.core.ask(method, Some(&params)).await.map(drop)
    }

    /// Sets the minimum severity of log messages to be sent (R-LOG-02). Revisions from 2026-07-28
    /// on have no such request: each call states the level in its `_meta`
    /// ([`meta::LOG_LEVEL`](crate::mcp::meta::LOG_LEVEL), by
    /// [`CallTool::meta`](super::CallTool::meta)).
    ///
    /// # Errors
    /// When the server or the revision does not have the request; else as
    /// [`list_tools`](Self::list_tools).
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), RequestError> {
        let method = Method::SetLevel;
        self.core.require_method(method, method.name())?;
        self.core.require("logging")?;
        let params = serde_json::json!({ "level": level.name() }).to_string();
        self.note_settings();
        self.core.ask(method, Some(&params)).await.map(drop)
    }

    /// Replaces the roots that servers see, and notifies the server in revisions that have the
    /// notification (R-ROO-02).
    ///
    /// # Errors
    /// When the client was built without roots, a root is not a `file://` URI or contains `..`, or
    /// the connection has ended.
    pub fn set_roots(&self, roots: impl IntoIterator<Item = Root>) -> Result<(), RequestError> {
        let roots: Vec<_> = roots.into_iter().collect();
        roots.iter().try_for_each(Root::check)?;
        if !self.core.responder.replace_roots(roots) {
            return Err(RequestError::Misuse("this client was built without roots"));
        }
        self.note_settings();
        let defined = |revision| Method::RootsChanged.defined(revision, Side::Client);
        match self.revision().is_some_and(defined) {
            true => self.handle().notify(Method::RootsChanged.name(), None),
            false => Ok(()),
        }
    }

    /// Opens a stream of change notifications. Resolves once the server has acknowledged the
    /// stream; changes from then on are reported. Interests that the server does not offer are left
    /// out (R-SUB-03).
    ///
    /// ```no_run
    /// # async fn example(client: mcpbolt::client::Client) -> Result<(), mcpbolt::error::RequestError> {
    /// use mcpbolt::client::Interests;
    /// let interests = Interests { tools: true, ..Interests::default() };
    /// let listening = client.listen(interests).await?;
    /// // … and what is told comes through `on_notice`, until it is dropped.
    /// # drop(listening); Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Before 2026-07-28, where servers notify about lists without being asked and about resources
    /// by [`subscribe`](Self::subscribe); for a client without a builder; when the server refuses.
    pub async fn listen(&self, interests: Interests) -> Result<Listening, RequestError> {
        let method = Method::Listen;
        self.core.require_method(method, method.name())?;
        let Some(streams) = &self.core.streams else {
            let why = "a client that listens must be made by Client::builder";
            return Err(RequestError::Misuse(why));
        };
        streams.open(self.handle(), interests).await
    }

    /// Resolves to a subscribed resource whose stream has ended.
    #[cfg(feature = "stdio")]
    pub(crate) fn poll_unsubscribed(&self, cx: &mut Context<'_>) -> Poll<String> {
        match &self.core.streams {
            Some(streams) => streams.poll_ended(cx),
            None => Poll::Pending,
        }
    }
}
