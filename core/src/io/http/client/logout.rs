//! Ends a login.

use mcpbolt_oauth::client::{LoginError, LoginStage};
use url::Url;

use super::authorization::{Authorization, LoggedOut};
use super::connections::PROTOCOLS;
use super::options::HttpClientOptions;

impl Authorization {
    /// Removes the credentials for the MCP server at `url` from the store, and has their authorization
    /// server end the tokens (RFC 7009), where it does that. The registration of the client stays.
    /// `options` say how the authorization server is reached. Clients that are connected keep what they
    /// have.
    ///
    /// # Errors
    /// When the store fails; when the client signs its requests, and the options have no signing key: the
    /// credentials stay; when the authorization server refuses or cannot be reached: the credentials are
    /// gone from the store.
    pub async fn log_out(
        &self,
        url: &str,
        options: &HttpClientOptions,
    ) -> Result<LoggedOut, LoginError> {
        let wrong = |why: &str| LoginError::new(LoginStage::Options, why);
        let url = Url::parse(url).map_err(|_| wrong("the server's URL is no URL"))?;
        let http = options.connections(None, &PROTOCOLS);
        let http = http.map_err(|error| wrong(&error.to_string()))?;
        self.forget(url, http).await
    }
}
