//! What every connection to one server is asked for.

use std::collections::BTreeSet;

use crate::client::{Client, Interests, Listening};
use crate::error::RequestError;
use crate::mcp::LogLevel;

/// What every connection is asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Wishes {
    pub uris: BTreeSet<String>,
    pub interests: Option<Interests>,
    pub level: Option<LogLevel>,
    pub tools: bool,
}

impl Wishes {
    /// Asks a new connection for all of them.
    ///
    /// # Errors
    /// When it is lost.
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

/// What another server does not grant any more is no reason to do without the rest; a connection
/// that is lost is.
fn done<T>(outcome: Result<T, RequestError>) -> Result<Option<T>, RequestError> {
    match outcome {
        Err(error @ (RequestError::Closed(_) | RequestError::TimedOut)) => Err(error),
        outcome => Ok(outcome.ok()),
    }
}
