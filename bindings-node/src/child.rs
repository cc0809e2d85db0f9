//! A client that starts its server as a child process.

use std::sync::Arc;
use std::time::Instant;

use mcpbolt::connection::{Connection, Framing};
use mcpbolt::io::{Child, ChildCommand, Exit, Hosted, Stderr, Waits};
use napi::bindgen_prelude::Function;
use napi_derive::napi;

use crate::client::{ClientOptions, connect};
use crate::error::{Result, error};
use crate::inbox::{Event, Farewell, Inbox};
use crate::link::{Link, Side, duration, spawn};

/// How to start a server program.
#[napi(object)]
pub struct ChildOptions {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// Environment variables in addition to the inherited ones: names and values in turn.
    pub env: Vec<String>,
    /// Whether it inherits no variables.
    pub is_bare: Option<bool>,
    /// The use of its stderr: `inherit`, `ignore` or `lines`.
    pub stderr: Option<String>,
    /// How long it may take to exit after its stdin is closed, and again after SIGTERM, in ms.
    pub close_ms: Option<f64>,
}

impl ChildOptions {
    fn command(self, inbox: &Arc<Inbox>) -> Result<ChildCommand> {
        let mut command = ChildCommand::new(self.command).args(self.args);
        if let Some(directory) = self.cwd {
            command = command.cwd(directory);
        }
        if self.is_bare == Some(true) {
            command = command.clear_env();
        }
        for pair in self.env.chunks_exact(2) {
            if let [name, value] = pair {
                command = command.env(name, value);
            }
        }
        if let Some(ms) = self.close_ms {
            let wait = duration(ms)?;
            command = command.waits(Waits {
                after_close: wait,
                after_terminate: wait,
            });
        }
        let inbox = inbox.clone();
        Ok(command.stderr(match self.stderr.as_deref() {
            Some("ignore") => Stderr::Discard,
            Some("lines") => Stderr::Lines(Box::new(move |line| {
                inbox.push(Event::Line(line.to_owned()));
            })),
            _ => Stderr::Inherit,
        }))
    }

    /// Starts the program.
    pub fn spawn(self, inbox: &Arc<Inbox>) -> Result<Child> {
        let program = self.command.clone();
        self.command(inbox)?.spawn().map_err(|why| {
            let why = format!("{program} cannot be started: {why}");
            error("ERR_MCP_SPAWN", why)
        })
    }
}

/// Starts a server program and connects to it, on a thread of the engine.
#[napi(catch_unwind)]
pub fn spawn_child(
    options: ClientOptions,
    child: ChildOptions,
    wake: Function<'_, (), ()>,
) -> Result<Link> {
    let inbox = Arc::new(Inbox::new(&wake)?);
    let (config, prepared, asker) = options.describe(&inbox, |_| None)?.prepare()?;
    let child = child.spawn(&inbox)?;
    let connection = Connection::new(config, Instant::now());
    connection.set_wake(child.wake().clone());
    let stop = child.stop();
    let host = connect(prepared, connection.handle());
    let link = Link::new(inbox.clone(), Side::Client(asker), move || stop.stop());
    spawn("mcpbolt-client", move || {
        let mut farewell = Farewell::new(&inbox);
        let mut machine = Hosted::new(connection, Framing::Line, host);
        let exit = child.run(&mut machine);
        if let Ok(exit) = exit {
            farewell.say(exit_json(&exit));
        }
    })?;
    Ok(link)
}

/// The exit status of a child, as JSON.
pub fn exit_json(exit: &Exit) -> String {
    let part = |value: Option<i32>| value.map_or_else(|| "null".to_owned(), |n| n.to_string());
    let (code, signal) = (part(exit.status.code()), part(signal(exit)));
    format!("{{\"code\":{code},\"signal\":{signal}}}")
}

#[cfg(unix)]
fn signal(exit: &Exit) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&exit.status)
}

#[cfg(not(unix))]
fn signal(_exit: &Exit) -> Option<i32> {
    None
}
