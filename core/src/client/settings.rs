//! Settings of a session: subscriptions, log level, roots.

use super::Client;
use crate::error::RequestError;
use crate::mcp::{LogLevel, Method, Root, Side};

impl Client {
    /// Subscribes to changes of a resource, which
    /// [`ClientBuilder::on_notice`](super::ClientBuilder::on_notice) reports. From 2026-07-28 on
    /// this opens a separate [stream](Self::listen).
    ///
    /// # Errors
    /// When the server does not declare subscriptions; else as [`list_tools`](Self::list_tools).
    pub async fn subscribe(&self, uri: &str) -> Result<(), RequestError> {
        if self.knows(Method::Subscribe, "").is_ok() {
            return self.about_resource(Method::Subscribe, uri).await;
        }
        self.declares(&["resources", "subscribe"], "resources.subscribe")?;
        self.listen_to(uri).await
    }

    /// Ends a subscription.
    ///
    /// # Errors
    /// As [`subscribe`](Self::subscribe).
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), RequestError> {
        if self.knows(Method::Unsubscribe, "").is_ok() {
            return self.about_resource(Method::Unsubscribe, uri).await;
        }
        self.forget(uri);
        Ok(())
    }

    async fn about_resource(&self, method: Method, uri: &str) -> Result<(), RequestError> {
        self.declares(&["resources", "subscribe"], "resources.subscribe")?;
        let params = serde_json::json!({ "uri": uri }).to_string();
        self.ask(method, Some(&params)).await.map(drop)
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
        self.knows(Method::SetLevel, "logging/setLevel")?;
        self.offers("logging")?;
        let params = serde_json::json!({ "level": level.name() }).to_string();
        self.ask(Method::SetLevel, Some(&params)).await.map(drop)
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
        if !self.handlers.replace_roots(roots) {
            return Err(RequestError::Misuse("this client was built without roots"));
        }
        let defined = |revision| Method::RootsChanged.defined(revision, Side::Client);
        match self.revision().is_some_and(defined) {
            true => self.handle.notify(Method::RootsChanged.name(), None),
            false => Ok(()),
        }
    }
}
