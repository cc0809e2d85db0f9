//! A client that starts its server as a child process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use mcpbolt::connection::{Connection, Framing};
use mcpbolt::io::{Child, ChildCommand, Exit, Hosted, Stderr, Waits};
use mcpbolt::settings::Milliseconds;
use napi::bindgen_prelude::{ClassInstance, Function};
use napi_derive::napi;
use serde::Deserialize;
use serde_json::json;

use crate::client::{Described, connect};
use crate::error::{Result, error};
use crate::inbox::{EndReport, Event, Inbox};
use crate::json::read;
use crate::kinds::Inbound;
use crate::link::{Link, Side};
use crate::telemetry::Telemetry;
use crate::threads::spawn;

/// How to start a server program.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildSettings {
    pub command: String,
    args: Vec<String>,
    cwd: Option<PathBuf>,
    /// Environment variables in addition to the inherited ones.
    env: BTreeMap<String, String>,
    /// Whether it inherits no variables.
    #[serde(default)]
    is_bare: bool,
    stderr: Output,
    /// How long it may take to exit after its stdin is closed, and again after SIGTERM.
    close_timeout: Option<Milliseconds>,
}

/// The use of a child's stderr.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Output {
    Inherit,
    Ignore,
    Lines,
}

impl ChildSettings {
    /// The command. Lines of its stderr go to an inbox, if there is one.
    pub fn command(&self, inbox: Option<&Arc<Inbox>>) -> ChildCommand {
        let mut command = ChildCommand::new(&self.command).args(&self.args);
        if let Some(directory) = &self.cwd {
            command = command.cwd(directory);
        }
        if self.is_bare {
            command = command.clear_env();
        }
        for (name, value) in &self.env {
            command = command.env(name, value);
        }
        if let Some(Milliseconds(wait)) = self.close_timeout {
            command = command.waits(Waits {
                after_close: wait,
                after_terminate: wait,
            });
        }
        command.stderr(match (&self.stderr, inbox.cloned()) {
            (Output::Lines, Some(inbox)) => Stderr::Lines(Box::new(move |line| {
                inbox.push(Event::text(Inbound::Line, line.to_owned()));
            })),
            (Output::Ignore, _) => Stderr::Discard,
            _ => Stderr::Inherit,
        })
    }
}

/// Starts the program that the settings describe, as JSON.
pub fn start(settings: &str, inbox: &Arc<Inbox>) -> Result<Child> {
    let settings: ChildSettings = read(settings)?;
    settings.command(Some(inbox)).spawn().map_err(|why| {
        let why = format!("{} cannot be started: {why}", settings.command);
        error("ERR_MCP_SPAWN", why)
    })
}

/// Starts a server program and connects to it, on a thread of the engine.
#[napi(catch_unwind)]
pub fn spawn_child(
    settings: String,
    trace: bool,
    telemetry: Option<ClassInstance<'_, Telemetry>>,
    child: String,
    wake: Function<'_, (), ()>,
) -> Result<Link> {
    let inbox = Arc::new(Inbox::new(&wake)?);
    let (config, prepared, asker) =
        Described::new(&settings, trace, telemetry.as_deref(), &inbox, |_| None)?.prepare()?;
    let child = start(&child, &inbox)?;
    let connection = Connection::new(config, Instant::now());
    connection.set_wake(child.wake().clone());
    let stop = child.stop();
    let host = connect(prepared, connection.handle());
    let link = Link::new(inbox.clone(), Side::Client(asker), move || stop.stop());
    spawn("mcpbolt-client", move || {
        let mut report = EndReport::new(&inbox);
        let mut machine = Hosted::new(connection, Framing::Line, host);
        let exit = child.run(&mut machine);
        if let Ok(exit) = exit {
            report.set(exit_json(&exit));
        }
    })?;
    Ok(link)
}

/// The exit status of a child, as JSON.
pub fn exit_json(exit: &Exit) -> String {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&exit.status);
    #[cfg(not(unix))]
    let signal = None::<i32>;
    json!({ "code": exit.status.code(), "signal": signal }).to_string()
}
