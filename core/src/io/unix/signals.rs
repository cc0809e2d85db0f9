//! Termination signals as a readable descriptor.
//!
//! The signals are handled only on request: they belong to the program. When the loop is over, the
//! default action, which ends the process, is restored.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::event::PollFlags;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

const TERMINATION: [i32; 3] = [SIGTERM, SIGINT, SIGHUP];

/// The termination signals that have arrived since this was created.
#[derive(Debug)]
pub(in crate::io) struct Signals {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
    unattended: Arc<AtomicBool>,
}

impl Signals {
    /// Handles SIGTERM, SIGINT and SIGHUP.
    pub(in crate::io) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let unattended = default_when_unattended()?;
        let (read, write) = UnixStream::pair()?;
        let delivery = SignalDelivery::with_pipe(read, write, SignalOnly, TERMINATION)?;
        let fd = delivery.get_read().as_raw_fd();
        registry.register(&mut SourceFd(&fd), token, Interest::READABLE)?;
        unattended.store(false, Ordering::SeqCst);
        Ok(Self {
            delivery,
            unattended,
        })
    }

    /// A descriptor that is readable while a signal waits for the loop.
    pub(in crate::io) fn waiting(&self) -> io::Result<(OwnedFd, PollFlags)> {
        let fd = self.delivery.get_read().try_clone()?;
        Ok((fd.into(), PollFlags::IN))
    }

    /// The signals that arrived since the last call. A signal that arrived twice may be reported once.
    pub(in crate::io) fn pending(&mut self) -> impl Iterator<Item = i32> + use<> {
        self.delivery.pending()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.unattended.store(true, Ordering::SeqCst);
    }
}

/// A handler cannot be removed once it is chained, so the default action is emulated while no loop
/// handles the signals.
fn default_when_unattended() -> io::Result<Arc<AtomicBool>> {
    static UNATTENDED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(flag) = UNATTENDED.get() {
        return Ok(flag.clone());
    }
    let flag = Arc::new(AtomicBool::new(false));
    for signal in TERMINATION {
        register_conditional_default(signal, flag.clone())?;
    }
    Ok(UNATTENDED.get_or_init(|| flag).clone())
}
