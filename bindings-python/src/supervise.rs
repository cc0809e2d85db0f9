//! Several processes that serve one address: this one as their supervisor, or as one of them.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use mcpbolt::io::{Address, ServeOptions, WorkerProcess};
use mcpbolt_cli::SuperviseOptions;
use pyo3::prelude::*;
use signal_hook::consts::SIGUSR1;
use signal_hook::flag::register;

use crate::settings::{seconds, wrong};

/// Starts `command` for each worker, and keeps them running until the process gets a signal. `terms`: how many workers, the grace in
/// seconds, and the signals. Calls `ready` with the address. Answers at
/// `health` how far they are.
#[pyfunction]
pub fn supervise(
    py: Python<'_>,
    command: Vec<OsString>,
    address: &str,
    terms: (usize, f64, Vec<i32>),
    health: Option<&str>,
    ready: Py<PyAny>,
) -> PyResult<()> {
    let place = |text: &str| text.parse::<Address>().map_err(wrong);
    let (workers, grace, mut signals) = terms;
    signals.push(SIGUSR1);
    let (address, health) = (place(address)?, health.map(place).transpose()?);
    let ready = |at: &Address| {
        Python::attach(|py| {
            if let Err(error) = ready.call1(py, (at.to_string(),)) {
                error.write_unraisable(py, None);
            }
        });
        Ok(())
    };
    let options = SuperviseOptions {
        workers,
        grace: seconds(grace)?,
        health,
        signals,
    };
    py.detach(|| mcpbolt_cli::supervise(command, address, options)?.wait(ready))?;
    Ok(())
}

/// Whether a supervisor has started this process. If so, SIGUSR1 ends it no more: the supervisor passes that on, and programs
/// need not know of it. A handler of the program stays.
#[pyfunction]
pub fn is_worker() -> io::Result<bool> {
    let is_worker = WorkerProcess::inherited()?.is_some();
    if is_worker {
        register(SIGUSR1, Arc::default())?;
    }
    Ok(is_worker)
}

/// Has a server be the one of this process as a worker, if it is.
pub fn take_place(options: &mut ServeOptions, is_worker: bool) -> io::Result<()> {
    if is_worker {
        options.worker = WorkerProcess::inherited()?;
    }
    Ok(())
}
