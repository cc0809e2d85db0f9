//! Wakes the thread that drains: an event loop that watches a descriptor, or, where event loops watch none, a
//! thread that waits for it.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
#[cfg(target_os = "linux")]
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

/// Set to any value, the environment variable has Linux use what other systems use, for tests.
const PORTABLE: &str = "MCPBOLT_PORTABLE_WAKEUPS";

/// One wakeup for any number of events: raised when the first comes, lowered before they are
/// taken.
#[derive(Debug)]
pub struct Signal {
    means: Means,
    raised: AtomicBool,
}

#[derive(Debug)]
enum Means {
    #[cfg(target_os = "linux")]
    Descriptor(OwnedFd),
    Thread(Mutex<Raises>, Condvar),
}

#[derive(Debug, Default)]
struct Raises {
    /// How often the signal was raised.
    count: u64,
    /// Whether nobody waits any more.
    is_over: bool,
}

impl Means {
    #[cfg(target_os = "linux")]
    fn new() -> io::Result<Self> {
        if std::env::var_os(PORTABLE).is_some() {
            return Ok(Self::Thread(Mutex::default(), Condvar::new()));
        }
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self::Descriptor(eventfd(0, flags)?))
    }

    #[cfg(not(target_os = "linux"))]
    fn new() -> io::Result<Self> {
        Ok(Self::Thread(Mutex::default(), Condvar::new()))
    }
}

fn lock(raises: &Mutex<Raises>) -> MutexGuard<'_, Raises> {
    raises.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Signal {
    /// Makes a lowered signal.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            means: Means::new()?,
            raised: AtomicBool::new(false),
        })
    }

    /// Raises the signal. Makes a system call only if it was lowered.
    pub fn raise(&self) {
        if self.raised.swap(true, Ordering::AcqRel) {
            return;
        }
        match &self.means {
            // The counter of an eventfd does not overflow in increments of one.
            #[cfg(target_os = "linux")]
            Means::Descriptor(fd) => drop(rustix::io::write(fd, &1u64.to_ne_bytes())),
            Means::Thread(raises, changed) => {
                lock(raises).count += 1;
                changed.notify_all();
            }
        }
    }

    /// Whether the signal is raised. If so, events added before this call are going to be taken.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// Lowers the signal, before events are taken. A descriptor is emptied first: events of a raise in
    /// between are still taken, and a later raise writes again.
    pub fn lower(&self) {
        #[cfg(target_os = "linux")]
        if let Means::Descriptor(fd) = &self.means {
            let _ = rustix::io::read(fd, &mut [0; 8]);
        }
        self.raised.swap(false, Ordering::AcqRel);
    }

    /// Blocks until the signal is raised.
    pub fn wait(&self) {
        match &self.means {
            #[cfg(target_os = "linux")]
            Means::Descriptor(fd) => drop(poll(&mut [PollFd::new(fd, PollFlags::IN)], None)),
            Means::Thread(raises, changed) => {
                let mut raises = lock(raises);
                while !self.is_raised() {
                    raises = changed.wait(raises).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

/// The wakeup of an object that is to be drained. It may outlive the object, so that an event loop can stop watching
/// its descriptor before it is closed.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Wake(pub Arc<Signal>);

#[pymethods]
impl Wake {
    /// The descriptor that is readable when there is something to drain; `None` if a thread has to wait for
    /// [`after`](Self::after).
    fn fileno(&self) -> Option<i32> {
        match &self.0.means {
            #[cfg(target_os = "linux")]
            Means::Descriptor(fd) => Some(fd.as_raw_fd()),
            Means::Thread(..) => None,
        }
    }

    /// Blocks until the wakeup was raised more often than `count`; returns how often, or `None` after
    /// [`end`](Self::end).
    fn after(&self, py: Python<'_>, count: u64) -> Option<u64> {
        let Means::Thread(raises, changed) = &self.0.means else {
            return None;
        };
        py.detach(|| {
            let mut raises = lock(raises);
            while raises.count == count && !raises.is_over {
                raises = changed.wait(raises).unwrap_or_else(PoisonError::into_inner);
            }
            (!raises.is_over).then_some(raises.count)
        })
    }

    /// Ends the waiting for good.
    fn end(&self) {
        if let Means::Thread(raises, changed) = &self.0.means {
            lock(raises).is_over = true;
            changed.notify_all();
        }
    }
}
