//! Several processes at one address: the process that starts them and keeps them running, by signals and a service manager.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use mcpbolt::io::{
    Address, Listener, Supervising, SupervisionState, Supervisor, SupervisorOptions,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use tracing::info;

use crate::health::{self, Health};
use crate::page::PageListener;
use crate::systemd;

/// How much longer than its grace period a worker may take to end: it serves the last requests of its connections, ends
/// sessions with other servers, and waits for jobs that block.
const MARGIN: Duration = Duration::from_secs(40);

/// A tree of processes that serve one address.
pub struct Supervision {
    /// The command of a worker.
    pub command: Vec<OsString>,
    pub address: Address,
    pub workers: usize,
    /// How long calls in flight may take when a worker ends.
    pub grace: Duration,
    /// Whether each worker has a socket of its own.
    pub reuse_port: bool,
    /// The socket of the service manager.
    pub listener: Option<Listener>,
}

impl Supervision {
    /// Starts the workers and keeps them running until the process is asked to end. Answers at `pages` how far they are, and
    /// calls `ready` with the address once all serve. Blocks.
    ///
    /// # Errors
    /// When the address cannot be listened on, or a worker ends before all serve.
    pub fn run(
        self,
        pages: Option<PageListener>,
        ready: impl FnOnce(&Address) -> Result<()>,
    ) -> Result<()> {
        let address = &self.address;
        let listeners = match self.listener {
            Some(listener) => vec![listener],
            None if self.reuse_port => Listener::bind_each(address, self.workers)?,
            None => vec![Listener::bind(address).with_context(|| address.to_string())?],
        };
        let own = listeners.first().context("there is no worker")?;
        let address = own.address(address)?;
        let words = self.command;
        let start = move || {
            let mut words = words.iter();
            let mut command = Command::new(words.next().map_or("".as_ref(), OsString::as_os_str));
            command.args(words);
            command
        };
        let options = SupervisorOptions {
            workers: self.workers,
            end_timeout: self.grace.saturating_add(MARGIN),
            ..SupervisorOptions::default()
        };
        // Before the first worker, so that no signal ends this process alone.
        let signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM, SIGUSR1])?;
        let supervising = Arc::new(Supervisor::new(start, listeners, options).start()?);
        if let Some(pages) = pages {
            let supervising = Arc::downgrade(&supervising);
            health::serve(pages, move || {
                let state = supervising.upgrade().map(|it| it.state());
                state.map_or(Health::Draining, |state| of(&state))
            })?;
        }
        watch(signals, &supervising);
        if supervising.wait_until_up() {
            ready(&address)?;
            systemd::notify("READY=1");
        }
        Ok(supervising.wait()?)
    }
}

/// The command of this process, as it was called: an interpreter finds its packages by the path of its program.
pub fn own_command() -> Result<Vec<OsString>> {
    let mut command = vec![program()?.into_os_string()];
    command.extend(env::args_os().skip(1));
    Ok(command)
}

fn of(state: &SupervisionState) -> Health {
    match state {
        _ if state.is_ready() => Health::Ready,
        SupervisionState {
            is_stopping: true, ..
        } => Health::Draining,
        SupervisionState { is_up: false, .. } => Health::Starting,
        _ => Health::Interrupted,
    }
}

/// Restarts the workers at SIGHUP. Ends them at the first signal to end, and kills them at the second. SIGUSR1 is passed on
/// to them.
fn watch(mut signals: signal_hook::iterator::Signals, supervising: &Arc<Supervising>) {
    let supervising = Arc::downgrade(supervising);
    std::thread::spawn(move || {
        let mut is_stopping = false;
        for signal in signals.forever() {
            let Some(supervising) = supervising.upgrade() else {
                return;
            };
            match signal {
                SIGUSR1 => supervising.signal(SIGUSR1),
                SIGHUP => {
                    info!("the workers are replaced, one by one");
                    supervising.restart();
                }
                _ if std::mem::replace(&mut is_stopping, true) => supervising.kill(),
                _ => {
                    info!(signal, "asked to end");
                    systemd::notify("STOPPING=1");
                    supervising.stop();
                }
            }
        }
    });
}

fn program() -> Result<PathBuf> {
    let called = env::args_os().next().unwrap_or_default();
    let called = Path::new(&called);
    let found = match called.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => Some(called.to_owned()),
        _ => env::var_os("PATH").and_then(|path| {
            let folders = env::split_paths(&path);
            folders
                .map(|folder| folder.join(called))
                .find(|it| it.is_file())
        }),
    };
    match found.filter(|found| found.is_file()) {
        Some(found) => Ok(found),
        None => env::current_exe().context("finding this program"),
    }
}
