//! Methods of extensions (2026-07-28).

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::client::Client;
use super::core::{parse, result};
use crate::connection::RequestOptions;
use crate::error::RequestError;
use crate::mcp::extension;

impl Client {
    /// The settings that the server declared for an extension, a JSON object, if this client
    /// declared the extension, too. Only then may either side use it (R-EXT-03).
    pub fn extension(&self, id: &str) -> Option<&str> {
        let peer = self.handle().peer()?;
        let own = self.core.responder.has_extension(id);
        extension::declared(&peer.capabilities, id).filter(|_| own)
    }

    /// Sends a request with a method of an extension (R-EXT-04). `params` must serialize to a JSON
    /// object; the result is deserialized from one.
    ///
    /// ```no_run
    /// # async fn example(client: mcpbolt::client::Client) -> Result<(), mcpbolt::error::RequestError> {
    /// let params = serde_json::json!({"document": 7});
    /// let why: serde_json::Value =
    ///     client.ask_extension("com.example/ranking", "ranking/explain", &params).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RequestError::Unsupported`], before anything is sent, when a side did not declare the
    /// extension; else as [`list_tools`](Self::list_tools).
    pub async fn ask_extension<T: DeserializeOwned>(
        &self,
        id: &str,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, RequestError> {
        if self.extension(id).is_none() {
            return Err(RequestError::Unsupported("the extension"));
        }
        let params = serde_json::to_string(params);
        let params = params.map_err(|_| RequestError::Misuse("params must be a JSON object"))?;
        let pending = self.request(method, Some(&params), RequestOptions::default())?;
        parse(result(&pending.await?))
    }
}
