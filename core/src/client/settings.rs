//! What a client and a server settle for the time to come: subscriptions, log level, roots.

use super::Client;
use crate::error::RequestError;
use crate::mcp::{LogLevel, Method, Root, Side};

impl Client {
    /// Asks to be told, through [`ClientBuilder::on_notice`](super::ClientBuilder::on_notice), whenever a resource changes. From
    /// 2026-07-28 on this [listens](Self::listen) to it on a stream of its own.
    ///
    /// # Errors
    /// When the server does not let clients subscribe; else as [`list_tools`](Self::list_tools).
    pub async fn subscribe(&self, uri: &str) -> Result<(), RequestError> {
        if self.knows(Method::Subscribe, "").is_ok() {
            return self.about_resource(Method::Subscribe, uri).await;
        }
        self.declares(&["resources", "subscribe"], "resources.subscribe")?;
        self.listen_to(uri).await
    }

    /// Asks to be told no more.
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

    /// Sets how severe a log message must be to be sent (R-LOG-02). Revisions from 2026-07-28
    /// have no such request: each call says it in its `_meta`
    /// ([`meta::LOG_LEVEL`](crate::mcp::meta::LOG_LEVEL), by [`CallTool::meta`](super::CallTool::meta)).
    ///
    /// # Errors
    /// When the server or the revision does not have it; else as
    /// [`list_tools`](Self::list_tools).
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), RequestError> {
        self.knows(Method::SetLevel, "logging/setLevel")?;
        self.offers("logging")?;
        let params = serde_json::json!({ "level": level.name() }).to_string();
        self.ask(Method::SetLevel, Some(&params)).await.map(drop)
    }

    /// Replaces the roots that servers see, and tells this one where the revision has a word for
    /// it (R-ROO-02).
    ///
    /// # Errors
    /// When the client was built without roots, one is not at a `file://` URI, or the connection
    /// has ended.
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
