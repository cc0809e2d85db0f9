//! Several processes at one address: the process that starts them and keeps them running, by signals and a service manager.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use mcpbolt::io::{
    Address, Listener, Supervising, SupervisionState, Supervisor, SupervisorOptions,
};
use signal_hook::consts::{SIGHUP, SIGUSR1};
use signal_hook::iterator::Signals;
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
    /// The signals that are heard: SIGHUP replaces the workers, SIGUSR1 is passed on to them, any other ends them.
    pub signals: Vec<i32>,
}

impl Supervision {
    /// Starts the workers, which are kept running until they are stopped or the process is asked to end. Answers at `pages` how far they
    /// are.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn start(self, pages: Option<PageListener>) -> Result<Supervised> {
        let address = &self.address;
        let listeners = match self.listener {
            Some(_) if self.reuse_port => bail!(
                "--reuse-port: the service manager has handed over one socket for all workers; leave the option out"
            ),
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
            // Node has the system close its own in other programs, but not copies of them.
            let copies = (copy(io::stdout()), copy(io::stderr()));
            if let (Ok(output), Ok(errors)) = copies {
                command.stdout(output).stderr(errors);
            }
            command
        };
        let options = SupervisorOptions {
            workers: self.workers,
            end_timeout: self.grace.saturating_add(MARGIN),
            ..SupervisorOptions::default()
        };
        // Before the first worker, so that no signal ends this process alone.
        let signals = match self.signals.is_empty() {
            true => None,
            false => Some(Signals::new(&self.signals)?),
        };
        let supervising = Arc::new(Supervisor::new(start, listeners, options).start()?);
        if let Some(pages) = pages {
            let supervising = Arc::downgrade(&supervising);
            health::serve(pages, move || {
                let state = supervising.upgrade().map(|it| it.state());
                state.map_or(Health::Draining, |state| of(&state))
            })?;
        }
        let signal = Arc::default();
        if let Some(signals) = signals {
            watch(signals, &supervising, Arc::clone(&signal));
        }
        Ok(Supervised {
            supervising,
            address,
            signal,
        })
    }
}

/// Workers that serve one address. Dropping it ends them, and waits for their end.
#[derive(Debug)]
pub struct Supervised {
    supervising: Arc<Supervising>,
    address: Address,
    signal: Arc<AtomicI32>,
}

impl Supervised {
    /// Blocks until all workers have ended. Calls `ready` with the address, whose port is the one that the system chose if that was 0, once
    /// all serve.
    ///
    /// # Errors
    /// When a worker ends before all serve, or `ready` fails.
    pub fn wait(&self, ready: impl FnOnce(&Address) -> io::Result<()>) -> io::Result<()> {
        if self.supervising.wait_until_up() {
            ready(&self.address)?;
            systemd::notify("READY=1");
        }
        self.supervising.wait()
    }

    /// Ends the workers gracefully.
    pub fn stop(&self) {
        self.supervising.stop();
    }

    /// The first signal that asked the workers to end.
    pub fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Relaxed)).filter(|signal| *signal != 0)
    }
}

/// The command of this process, as it was called: an interpreter finds its packages by the path of its program.
pub fn own_command() -> Result<Vec<OsString>> {
    let mut command = vec![program()?.into_os_string()];
    command.extend(env::args_os().skip(1));
    Ok(command)
}

fn copy(fd: impl AsFd) -> io::Result<OwnedFd> {
    fd.as_fd().try_clone_to_owned()
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

/// Restarts the workers at SIGHUP. Ends them at the first signal to end, which it notes, and kills them at the second. SIGUSR1 is passed
/// on to them.
fn watch(mut signals: Signals, supervising: &Arc<Supervising>, asked: Arc<AtomicI32>) {
    let supervising = Arc::downgrade(supervising);
    std::thread::spawn(move || {
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
                _ if asked.load(Relaxed) != 0 => supervising.kill(),
                _ => {
                    info!(signal, "asked to end");
                    asked.store(signal, Relaxed);
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
