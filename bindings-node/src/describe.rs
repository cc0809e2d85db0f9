//! Descriptions of peers and their notifications, as JSON for JavaScript.

use mcpbolt::connection::{Handle, Progress};
use mcpbolt::mcp::{Method, Revision, Side, TaskForm};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::json::{self, raw};

/// A client's description of itself.
#[derive(Serialize)]
pub struct Introduction<'a> {
    revision: &'a str,
    /// The number of its connection, unless the connection carries a single request.
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<&'a RawValue>,
}

impl<'a> Introduction<'a> {
    pub fn new(
        revision: Revision,
        connection: Option<u64>,
        peer: &'a str,
        capabilities: &'a str,
    ) -> Self {
        Self {
            revision: revision.name(),
            connection,
            peer: raw(peer),
            capabilities: raw(capabilities),
        }
    }
}

/// The facts that a client learned when its connection opened: `Opened` in `face/connection.ts`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Opened<'a> {
    #[serde(flatten)]
    server: Introduction<'a>,
    /// The method that serves as a ping.
    ping: &'a str,
    listens: bool,
    sets_level: bool,
    tasks: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
}

/// The server of an open connection, and what its revision has.
pub fn opened(handle: &Handle) -> String {
    let peer = handle.peer().cloned().unwrap_or_default();
    let revision = handle.revision().unwrap_or(Revision::NEWEST);
    let defines = |method: Method| method.defined(revision, Side::Client);
    let ping = match defines(Method::Ping) {
        true => Method::Ping,
        false => Method::Discover,
    };
    let tasks = revision.rules().tasks.map(|form| match form {
        TaskForm::Core => "core",
        TaskForm::Extension => "extension",
    });
    json::text(&Opened {
        server: Introduction::new(revision, None, &peer.implementation, &peer.capabilities),
        ping: ping.name(),
        listens: defines(Method::Listen),
        sets_level: defines(Method::SetLevel),
        tasks,
        instructions: peer.instructions.as_deref(),
    })
}

/// A notification.
pub fn notification(method: &str, params: Option<&str>) -> String {
    let mut json = String::from("{\"method\":");
    json::quote(&mut json, method);
    if let Some(params) = params {
        json.push_str(",\"params\":");
        json.push_str(params);
    }
    json.push('}');
    json
}

/// Progress of a request.
pub fn progress(progress: Progress<'_>) -> String {
    #[derive(Serialize)]
    struct Said<'a> {
        progress: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
    }
    let Progress {
        progress,
        total,
        message,
    } = progress;
    json::text(&Said {
        progress,
        total,
        message,
    })
}
