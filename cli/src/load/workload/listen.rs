//! Subscriptions, opened and ended.

use mcpbolt::client::Interests;
use mcpbolt::mcp::{Method, Side};

use super::failure::Failure;
use super::link::Link;

/// Subscriptions to changes of the lists and, if there is a URI, of that resource. In the revisions with a handshake a
/// subscription is to a resource, so there must be one.
#[derive(Debug)]
pub struct Subscriptions {
    pub uri: Option<String>,
}

impl Subscriptions {
    pub async fn one(&self, link: &Link<'_>) -> Result<(), Failure> {
        let client = link.client;
        let has_streams = |revision| Method::Listen.defined(revision, Side::Client);
        if client.revision().is_some_and(has_streams) {
            let interests = Interests {
                tools: true,
                prompts: true,
                resources: true,
                uris: self.uri.iter().cloned().collect(),
            };
            // Dropping it ends the stream.
            drop(client.listen(interests).await?);
            return Ok(());
        }
        let uri = self.uri.as_deref();
        let uri = uri.ok_or(Failure::unanswered(
            "this revision subscribes to a resource: add --uri",
        ))?;
        client.subscribe(uri).await?;
        client.unsubscribe(uri).await?;
        Ok(())
    }
}
