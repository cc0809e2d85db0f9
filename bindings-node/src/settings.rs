//! A client's requests besides calls: subscriptions, completion and roots.

use mcpbolt::client::{CompletionTarget, Interests};
use mcpbolt::error::RequestError;
use napi_derive::napi;
use serde::Deserialize;

use crate::client::roots;
use crate::error::{self, Result, error};
use crate::inbox::Event;
use crate::link::Link;

#[derive(Deserialize)]
struct ToComplete {
    prompt: Option<String>,
    template: Option<String>,
    argument: (String, String),
    context: Vec<(String, String)>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToHear {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Vec<String>,
}

impl From<ToHear> for Interests {
    fn from(wanted: ToHear) -> Self {
        Self {
            tools: wanted.tools,
            prompts: wanted.prompts,
            resources: wanted.resources,
            uris: wanted.uris,
        }
    }
}

fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T> {
    serde_json::from_str(json).map_err(|why| error("ERR_MCP_MISUSE", why))
}

#[napi]
impl Link {
    /// Subscribes to a resource, or unsubscribes. Returns the number under which the answer will come, like
    /// the functions below.
    #[napi(catch_unwind)]
    pub fn subscribe(&mut self, uri: String, wanted: bool) -> Result<u32> {
        let client = self.client()?.clone();
        Ok(self.wait(|_| {
            Box::pin(async move {
                match wanted {
                    true => client.subscribe(&uri).await?,
                    false => client.unsubscribe(&uri).await?,
                }
                Ok("{}".to_owned())
            })
        }))
    }

    /// Listens for changes. Reports when the server has agreed; the answer comes at the end.
    #[napi(catch_unwind)]
    pub fn listen(&mut self, json: String) -> Result<u32> {
        let client = self.client()?.clone();
        let interests: ToHear = read(&json)?;
        let inbox = self.inbox.clone();
        Ok(self.wait(|number| {
            Box::pin(async move {
                let listening = client.listen(interests.into()).await?;
                inbox.push(Event::Listening(number, listening.id()));
                listening.await?;
                Ok("{}".to_owned())
            })
        }))
    }

    /// Completes an argument.
    #[napi(catch_unwind)]
    pub fn complete(&mut self, json: String) -> Result<u32> {
        let client = self.client()?.clone();
        let asked: ToComplete = read(&json)?;
        Ok(self.wait(|_| {
            Box::pin(async move {
                let target = match (&asked.prompt, &asked.template) {
                    (Some(name), _) => CompletionTarget::Prompt { name },
                    (None, Some(uri)) => CompletionTarget::Resource { uri },
                    (None, None) => return Err(RequestError::Misuse("nothing is to be completed")),
                };
                let (name, value) = &asked.argument;
                let context: Vec<_> = asked
                    .context
                    .iter()
                    .map(|(name, value)| (&**name, &**value))
                    .collect();
                let found = client.complete(&target, (name, value), &context).await?;
                serde_json::to_string(&found)
                    .map_err(|_| RequestError::BadAnswer("values that are no text"))
            })
        }))
    }

    /// Replaces the roots, and notifies the server.
    #[napi(catch_unwind)]
    pub fn set_roots(&self, json: String) -> Result<()> {
        let roots = roots(&json)?;
        let outcome = self.client()?.set_roots(roots);
        outcome.map_err(|why| error::request(&why))
    }
}
