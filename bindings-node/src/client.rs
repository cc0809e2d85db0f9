//! The client's side of a connection, as the engine's thread sees it.

use std::sync::Arc;

use mcpbolt::connection::{
    Answer, Batch, CallKey, Config, Disposition, Handle, Host, Incoming, Opening, Progress,
    ProgressFn,
};
use mcpbolt::error::ConnectionError;
use mcpbolt::io::traced;
use mcpbolt::mcp::{Era, ErrorKind, Method, Revision, Revisions, Side};
use mcpbolt::message::MessageRef;
use napi_derive::napi;

use crate::drain::quote;
use crate::error::{self, Result, error};
use crate::inbox::{Event, Farewell, Inbox};

/// What a client brings to a connection.
#[napi(object)]
pub struct ClientOptions {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How it opens: `probe`, `handshake` or `stateless`.
    pub opening: Option<String>,
    /// The one revision that it speaks; every one by default.
    pub revision: Option<String>,
    /// Show each frame to JavaScript.
    pub trace: bool,
}

impl ClientOptions {
    pub fn config(&self, inbox: &Arc<Inbox>) -> Result<Arc<Config>> {
        let mut config = Config::new(Side::Client, &self.name, &self.version);
        config.opening = match self.opening.as_deref() {
            Some("handshake") => Opening::Handshake,
            Some("stateless") => Opening::Stateless,
            _ => Opening::Probe,
        };
        if let Some(name) = &self.revision {
            let unknown = || error("ERR_MCP_MISUSE", format!("there is no revision {name}"));
            let revision = Revision::parse(name).ok_or_else(unknown)?;
            config.revisions = Revisions::only(revision);
            if self.opening.is_none() && revision.era() == Era::Handshake {
                config.opening = Opening::Handshake;
            }
        }
        config.trace = self.trace.then(|| inbox.trace());
        traced(Arc::new(config)).map_err(|why| error::io(&why))
    }
}

/// Passes on what a server sends besides answers.
pub struct ClientHost {
    pub inbox: Arc<Inbox>,
    pub handle: Handle,
    /// Dropped last, where the thread has nothing else to say.
    pub _farewell: Option<Farewell>,
}

impl Host for ClientHost {
    fn request(&mut self, _request: Incoming<'_>, answer: Answer<'_>) -> Disposition {
        let text = "this client offers nothing to servers";
        answer.error(ErrorKind::MethodNotFound, text, None)
    }

    fn dispatch(&mut self, _batch: Batch) {}

    fn cancelled(&mut self, _key: CallKey, _reason: Option<&str>) {}

    fn notification(&mut self, message: MessageRef<'_>) {
        let mut json = String::from("{\"method\":");
        quote(&mut json, &message.method().unwrap_or_default());
        if let Some(params) = message.params() {
            json.push_str(",\"params\":");
            json.push_str(params);
        }
        json.push('}');
        self.inbox.push(Event::Notification(json));
    }

    fn opened(&mut self, revision: Revision) {
        let peer = self.handle.peer().cloned().unwrap_or_default();
        let mut json = String::from("{\"revision\":");
        quote(&mut json, revision.name());
        // What asks for a sign of life.
        let ping = match Method::Ping.defined(revision, Side::Client) {
            true => Method::Ping,
            false => Method::Discover,
        };
        json.push_str(",\"ping\":");
        quote(&mut json, ping.name());
        for (key, value) in [
            ("server", &peer.implementation),
            ("capabilities", &peer.capabilities),
        ] {
            if !value.is_empty() {
                json.push_str(&format!(",\"{key}\":{value}"));
            }
        }
        if let Some(instructions) = &peer.instructions {
            json.push_str(",\"instructions\":");
            quote(&mut json, instructions);
        }
        json.push('}');
        self.inbox.push(Event::Opened(json));
    }

    fn closed(&mut self, reason: &ConnectionError) {
        self.inbox.push(Event::Closed(reason.clone()));
    }
}

/// Passes progress on request `number` on to JavaScript.
pub fn progress(inbox: Arc<Inbox>, number: u32) -> ProgressFn {
    Arc::new(move |progress: Progress<'_>| {
        let mut json = format!("{{\"progress\":{}", progress.progress);
        if let Some(total) = progress.total {
            json.push_str(&format!(",\"total\":{total}"));
        }
        if let Some(message) = progress.message {
            json.push_str(",\"message\":");
            quote(&mut json, message);
        }
        json.push('}');
        inbox.push(Event::Progress(number, json));
    })
}
