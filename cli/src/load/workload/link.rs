//! One client, and how long its requests may take.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use mcpbolt::client::Client;
use mcpbolt::connection::{ProgressFn, RequestOptions};
use mcpbolt::error::RequestError;
use mcpbolt::message::Message;

use super::failure::Failure;

/// The connection of a request.
#[derive(Clone, Copy)]
pub struct Link<'a> {
    pub client: &'a Client,
    pub timeout: Duration,
    /// Requests that were given up, and whose answers may come later.
    pub given_up: &'a AtomicU64,
}

impl Link<'_> {
    pub fn options(&self) -> RequestOptions {
        RequestOptions {
            timeout: Some(self.timeout),
            max_timeout: Some(self.timeout),
            ..RequestOptions::default()
        }
    }

    /// Counts a request that was given up, whose answer may still come.
    pub fn gave_up(&self) {
        self.given_up.fetch_add(1, Relaxed);
    }

    /// Sends a request that the server answers without questions.
    pub async fn ask(&self, method: &str, params: Option<&str>) -> Result<Message, Failure> {
        let request = self.client.handle().request(method, params, self.options());
        self.taken(request?.await)
    }

    /// Sends a request that the server may answer with questions to this client.
    pub async fn converse(&self, method: &str, params: Option<&str>) -> Result<Message, Failure> {
        let request = self.client.request(method, params, self.options());
        self.taken(request?.await)
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
        self.taken(request?.await)
    }

    /// The answer of a request, which is given up if it has timed out.
    pub fn taken(&self, answer: Result<Message, RequestError>) -> Result<Message, Failure> {
        if matches!(answer, Err(RequestError::TimedOut)) {
            self.gave_up();
        }
        Ok(answer?)
    }
}
