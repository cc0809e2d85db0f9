//! Termination signals, for a process that runs only a server.
//!
//! Python's own signal handlers stay installed. They write each signal to a descriptor at once
//! (`signal.set_wakeup_fd`), even while some thread holds the GIL.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The descriptor that signals are written to. Dropping it ends the watching thread.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Termination {
    noted: UnixStream,
    heard: Mutex<Option<UnixStream>>,
}

#[pymethods]
impl Termination {
    #[new]
    fn new() -> io::Result<Self> {
        let (noted, heard) = UnixStream::pair()?;
        // A signal handler writes to it, which must not block.
        noted.set_nonblocking(true)?;
        Ok(Self {
            noted,
            heard: Mutex::new(Some(heard)),
        })
    }

    /// The descriptor to write signals to, one byte each.
    fn fileno(&self) -> i32 {
        self.noted.as_raw_fd()
    }

    /// Writes a signal to the descriptor.
    fn note(&self, number: u8) {
        // If the write would block, enough signals are waiting to be acted upon.
        let _ = (&self.noted).write(&[number]);
    }
}

impl Termination {
    /// Calls `act` on a separate thread for SIGHUP, SIGINT and SIGTERM written from now on. Only the first
    /// call has an effect: there is one server.
    pub fn watch(&self, act: impl Fn() + Send + 'static) -> io::Result<()> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut heard) = { heard }.take() else {
            return Ok(());
        };
        let listen = move || {
            let mut numbers = [0; 64];
            while let Ok(len @ 1..) = heard.read(&mut numbers) {
                let mut numbers = numbers[..len].iter().map(|number| i32::from(*number));
                if numbers.any(|number| [SIGHUP, SIGINT, SIGTERM].contains(&number)) {
                    act();
                }
            }
        };
        let thread = std::thread::Builder::new().name("mcpbolt-signals".into());
        thread.spawn(listen).map(drop)
    }
}
