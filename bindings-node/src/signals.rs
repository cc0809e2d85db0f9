//! Receives termination signals, even while a handler blocks JavaScript's thread.
//!
//! Node's own handlers, which JavaScript installs before, are called as well.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::error::{self, Result};
use crate::threads::spawn;

/// Receives signals until it is dropped.
pub struct Hearing(Handle);

impl Hearing {
    /// Calls `heard` with the number of each signal, on a thread of its own.
    pub fn new(mut heard: impl FnMut(i32) + Send + 'static) -> Result<Self> {
        let signals = Signals::new([SIGTERM, SIGINT, SIGHUP]);
        let mut signals = signals.map_err(error::io)?;
        let handle = signals.handle();
        spawn("mcpbolt-signals", move || {
            signals.forever().for_each(&mut heard)
        })?;
        Ok(Self(handle))
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        self.0.close();
    }
}
