//! One client, and how long its requests may take.

use std::time::Duration;

use mcpbolt::client::Client;
use mcpbolt::connection::{ProgressFn, RequestOptions};
use mcpbolt::message::Message;

use super::failure::Failure;

/// The connection of a request.
#[derive(Clone, Copy)]
pub struct Link<'a> {
    pub client: &'a Client,
    pub timeout: Duration,
}

impl Link<'_> {
    pub fn options(&self) -> RequestOptions {
        RequestOptions {
            timeout: Some(self.timeout),
            max_timeout: Some(self.timeout),
            ..RequestOptions::default()
        }
    }

    /// Sends a request that the server answers without questions.
    pub async fn ask(&self, method: &str, params: Option<&str>) -> Result<Message, Failure> {
        let request = self.client.handle().request(method, params, self.options());
        Ok(request?.await?)
    }

    /// Calls a tool that reports progress.
    pub async fn follow(&self, params: &str, progress: ProgressFn) -> Result<Message, Failure> {
        let options = RequestOptions {
            progress: Some(progress),
            ..self.options()
        };
        let request = self
            .client
            .handle()
            .request("tools/call", Some(params), options);
        Ok(request?.await?)
    }
}
