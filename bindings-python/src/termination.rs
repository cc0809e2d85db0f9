//! Signals that ask the process to end, where it is there for a server alone.
//!
//! Python's own handlers stay in charge of them: whatever else, they note a signal in a
//! descriptor as it comes (`signal.set_wakeup_fd`), also while somebody holds the interpreter.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Where they are noted. Dropped, it is heard no longer.
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
        // Who notes them is a handler of signals: it must not wait.
        noted.set_nonblocking(true)?;
        Ok(Self {
            noted,
            heard: Mutex::new(Some(heard)),
        })
    }

    /// The descriptor to note them in, a byte each.
    fn fileno(&self) -> i32 {
        self.noted.as_raw_fd()
    }

    /// Notes one.
    fn note(&self, number: u8) {
        // It is full when many are heard that nobody has acted upon yet.
        let _ = (&self.noted).write(&[number]);
    }
}

impl Termination {
    /// From now on each that is noted does that, on a thread of its own; of one server.
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
