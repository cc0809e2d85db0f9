//! Ends a load at a signal, with what it has measured up to then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

/// How soon a sleeping thread sees a signal.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The signal at which the load ends, once it has come.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Takes SIGINT and SIGTERM from now on. The second one ends the process at once.
    #[cfg(unix)]
    pub fn listen(&self) -> Result<()> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        use signal_hook::flag;
        let has_come = Arc::default();
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&has_come))?;
            flag::register(signal, Arc::clone(&has_come))?;
            flag::register_usize(signal, self.0.clone(), usize::try_from(signal)?)?;
        }
        Ok(())
    }

    /// On other systems Ctrl-C ends the process.
    #[cfg(not(unix))]
    pub fn listen(&self) -> Result<()> {
        Ok(())
    }

    pub fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The exit status, as shells have it for the signal.
    pub fn status(&self) -> Option<u8> {
        let signal = self.0.load(Ordering::Relaxed);
        (signal != 0).then(|| u8::try_from(128 + signal).unwrap_or(1))
    }

    /// Sleeps up to a time, or a signal.
    pub fn sleep_until(&self, at: Instant) {
        while !self.has_come() {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
    }
}
