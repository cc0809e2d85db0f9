//! Subscriptions and settings that are restored on every connection to a server.

use std::collections::BTreeSet;

use crate::client::{Client, Interests, Listening};
use crate::error::RequestError;
use crate::mcp::LogLevel;

/// Subscriptions and settings that are restored on every connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Wishes {
    pub uris: BTreeSet<String>,
    pub interests: Option<Interests>,
    pub level: Option<LogLevel>,
    pub tools: bool,
}

impl Wishes {
    /// Restores them on a new connection.
    ///
    /// # Errors
    /// When the connection is lost, or a request times out.
    pub async fn ask_for(self, client: &Client) -> Result<Option<Listening>, RequestError> {
        if let Some(level) = self.level {
            done(client.set_log_level(level).await)?;
        }
        if self.tools {
            done(client.list_tools().await)?;
        }
        for uri in &self.uris {
            done(client.subscribe(uri).await)?;
        }
        match self.interests {
            Some(interests) => done(client.listen(interests).await),
            None => Ok(None),
        }
    }
}

/// A request that the server now refuses does not prevent the others; a lost connection does.
fn done<T>(outcome: Result<T, RequestError>) -> Result<Option<T>, RequestError> {
    match outcome {
        Err(error @ (RequestError::Closed(_) | RequestError::TimedOut)) => Err(error),
        outcome => Ok(outcome.ok()),
    }
}
