//! Connects a client to a child process, or to a server of this process.

use std::time::Instant;

use mcpbolt::connection::{Connection, Framing};
use mcpbolt::io::{ChildCommand, Hosted, Stderr, join, traced};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::bridge::Bridge;
use crate::catalog::Catalog;
use crate::client::Link;
use crate::client_events::ClientEvent;
use crate::client_setup::Setup;
use crate::hub::{Ending, Hub, Interpreter};
use crate::serving::Serving;
use crate::worker;

/// Connects to a server that is started as a child process.
#[pyfunction]
#[pyo3(signature = (setup, command, cwd, env, inherit))]
pub fn connect_child(
    setup: Setup,
    command: Vec<String>,
    cwd: Option<String>,
    env: Vec<(String, String)>,
    inherit: Vec<String>,
) -> PyResult<Link> {
    let begun = setup.begin()?;
    let mut words = command.into_iter();
    let program = words
        .next()
        .ok_or_else(|| PyValueError::new_err("the command is empty"))?;
    let mut child = ChildCommand::new(program).args(words);
    if let Some(directory) = cwd {
        child = child.cwd(directory);
    }
    child = inherit.into_iter().fold(child, ChildCommand::inherit_env);
    child = env
        .into_iter()
        .fold(child, |child, (name, value)| child.env(name, value));
    if begun.callbacks.on_stderr.is_some() {
        let inbox = begun.inbox.clone();
        let pass_on = move |line: &str| inbox.push(ClientEvent::Stderr(line.into()));
        child = child.stderr(Stderr::Lines(Box::new(pass_on)));
    }
    let child = child.spawn()?;
    let connection = Connection::new(begun.config.clone(), Instant::now());
    connection.set_wake(child.wake().clone());
    let (link, host) = begun.link(connection.handle());
    std::thread::Builder::new()
        .name("mcpbolt".into())
        .spawn(move || {
            // The connection's close reason says how the child ended.
            let _ = child.run(&mut Hosted::new(connection, Framing::Line, host));
        })?;
    Ok(link)
}

/// Connects to a server of this process; returns the server's side too.
#[pyfunction]
pub fn connect_pair(
    py: Python<'_>,
    setup: Setup,
    catalog: &Catalog,
    interpreter: Interpreter,
) -> PyResult<(Link, Serving)> {
    let begun = setup.begin()?;
    let now = Instant::now();
    let near = Connection::new(begun.config.clone(), now);
    let far = Connection::new(traced(catalog.shared.config.clone())?, now);
    let hub = Hub::new(py, catalog.shared.clone(), interpreter, worker::spawn)?;
    let (link, host) = begun.link(near.handle());
    let handle = far.handle();
    let serving = Serving::new(hub.clone(), "pair".into(), {
        let handle = handle.clone();
        move || handle.close()
    });
    let mut far_host = Bridge::host(&hub, handle);
    far_host.executor().ends(Ending(hub));
    join((near, host), (far, far_host))?;
    Ok((link, serving))
}
