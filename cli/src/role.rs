//! Where and as what this process serves: alone, as a worker, or as the supervisor of workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use anyhow::{Context, Result, ensure};
use mcpbolt::io::{Address, ServeOptions};
#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use tracing::info;

use crate::carrier::Carrier;
use crate::health::{self, Health};
#[cfg(unix)]
use crate::shown;
#[cfg(unix)]
use crate::supervisor::{Supervision, own_command};
use crate::systemd::{self, Handed};

/// What a process is to do.
pub enum Role {
    /// To serve with these options.
    Serve(Box<ServeOptions>, ServerState),
    /// Nothing: its workers have served until they were ended. The exit status.
    Done(u8),
}

/// How far the server of this process is, and who else is told.
#[derive(Clone, Default)]
pub struct ServerState {
    phase: Arc<AtomicU8>,
    /// A supervisor tells about this process.
    pub is_worker: bool,
}

impl ServerState {
    pub fn health(&self) -> Health {
        match self.phase.load(Relaxed) {
            0 => Health::Starting,
            1 => Health::Ready,
            _ => Health::Draining,
        }
    }

    /// The server takes requests.
    pub fn is_ready(&self) {
        self.phase.store(1, Relaxed);
        self.notify("READY=1");
    }

    /// The server takes no further requests.
    pub fn is_draining(&self) {
        self.phase.store(2, Relaxed);
        self.notify("STOPPING=1");
    }

    fn notify(&self, state: &str) {
        if !self.is_worker {
            systemd::notify(state);
        }
    }
}

/// Decides what this process is to do, and does it if it is to supervise.
pub fn take(carrier: &Carrier, address: &Address) -> Result<Role> {
    // From now on the signal ends no process, also before its counters can be logged.
    #[cfg(unix)]
    signal_hook::flag::register(SIGUSR1, Arc::default())?;
    carrier.store.check(address)?;
    let mut options = carrier.options();
    let mut state = ServerState::default();
    if matches!(address, Address::Stdio(_)) {
        ensure!(
            carrier.workers.is_none() && carrier.health.is_none(),
            "stdio: has one client and one process; --workers and --health need an address such as http://127.0.0.1:8000/mcp"
        );
        return Ok(Role::Serve(Box::new(options), state));
    }
    #[cfg(unix)]
    if let Some(worker) = mcpbolt::io::WorkerProcess::inherited()? {
        options.worker = Some(worker);
        options.http.shared_sessions = carrier.store.sessions()?;
        state.is_worker = true;
        return Ok(Role::Serve(Box::new(options), state));
    }
    let handed = Handed::new()?;
    let pages = health::listen("--health", carrier.health.as_ref(), &handed)?;
    if let Some(pages) = &pages {
        let at = pages.local_addr()?;
        info!(%at, "health");
    }
    let listener = handed.mcp().context("the socket of the service manager")?;
    if let Some(workers) = carrier.workers {
        #[cfg(unix)]
        {
            let supervision = Supervision {
                command: own_command()?,
                address: address.clone(),
                workers,
                grace: carrier.grace(),
                reuse_port: carrier.reuse_port,
                listener,
                signals: vec![SIGHUP, SIGINT, SIGTERM, SIGUSR1],
            };
            let ready = |address: &Address| shown::print(&format!("{address}\n"));
            supervision.start(pages)?.wait(ready)?;
            return Ok(Role::Done(0));
        }
        #[cfg(not(unix))]
        anyhow::bail!(
            "--workers {workers}: this system cannot hand sockets to other processes; start several processes at ports of their own, behind a proxy that keeps clients of sessions at one of them"
        );
    }
    options.listener = listener;
    options.http.shared_sessions = carrier.store.sessions()?;
    if let Some(pages) = pages {
        let state = state.clone();
        health::serve(pages, move || state.health())?;
    }
    Ok(Role::Serve(Box::new(options), state))
}
