//! Subscriptions, opened and ended.

use std::pin::pin;

use anyhow::{Result, ensure};
use futures::future::{Either, select};
use mcpbolt::client::{Client, Interests};
use mcpbolt::error::RequestError;
use mcpbolt::mcp::{Method, Side};
use serde_json::json;

use super::failure::Failure;
use super::link::Link;

/// Subscriptions to changes of the lists and, if there is a URI, of that resource. In the revisions with a handshake a
/// subscription is to a resource, so there must be one.
#[derive(Debug)]
pub struct Subscriptions {
    pub uri: Option<String>,
}

impl Subscriptions {
    /// Fails if the revision takes a URI, and there is none.
    pub fn prepare(&self, link: &Link<'_>) -> Result<()> {
        ensure!(
            self.uri.is_some() || has_streams(link.client),
            "before 2026-07-28 a subscription is to a resource: add --uri"
        );
        Ok(())
    }

    pub async fn one(&self, link: &Link<'_>) -> Result<(), Failure> {
        match &self.uri {
            Some(uri) if !has_streams(link.client) => {
                let params = json!({ "uri": uri }).to_string();
                link.ask(Method::Subscribe.name(), Some(&params)).await?;
                link.ask(Method::Unsubscribe.name(), Some(&params)).await?;
                Ok(())
            }
            _ => self.open(link).await,
        }
    }

    /// Opens a stream, which has no time-out of its own, and ends it.
    async fn open(&self, link: &Link<'_>) -> Result<(), Failure> {
        let interests = Interests {
            tools: true,
            prompts: true,
            resources: true,
            uris: self.uri.iter().cloned().collect(),
        };
        let opened = pin!(link.client.listen(interests));
        match select(opened, link.client.handle().sleep(link.timeout)).await {
            Either::Left((opened, _)) => {
                // Dropping it ends the stream.
                drop(opened?);
                Ok(())
            }
            Either::Right(_) => {
                link.gave_up();
                Err(RequestError::TimedOut.into())
            }
        }
    }
}

/// Whether subscriptions are streams, as from 2026-07-28 on.
fn has_streams(client: &Client) -> bool {
    let defined = |revision| Method::Listen.defined(revision, Side::Client);
    client.revision().is_some_and(defined)
}
