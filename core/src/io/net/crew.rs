//! Servers on sockets whose handlers run on the threads that drive the sockets: a single-threaded tokio
//! runtime, driven by the worker that currently leads.
//!
//! Jobs for handlers that arrive in a turn of the runtime are run by the same worker after the turn,
//! outside of the runtime; then the worker leads again. So a quick handler costs no wake-up of another
//! thread. If the worker has not come back within a tick, another worker drives the runtime.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::connection::Wake;
use crate::handler::Spawner;
use crate::io::wait::Notifier;
use crate::io::wake::WakeUps;
use crate::io::workers::{Lead, Workers, WorkersConfig};

/// How often the runtime's timers are checked at the latest.
const BEAT: Duration = Duration::from_secs(10);

/// Workers, and the runtime that they drive.
pub struct Crew {
    workers: Arc<Workers>,
    /// Tells the leader that there are jobs.
    bell: Arc<Notifier>,
    runtime: Runtime,
}

impl Crew {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            workers: Arc::new(Workers::new(WorkersConfig::default())),
            bell: Notifier::new(),
            runtime: Builder::new_current_thread().enable_all().build()?,
        })
    }

    /// The spawner of the workers, for handlers.
    pub fn spawner(&self) -> Arc<dyn Spawner> {
        self.workers.clone()
    }

    /// Runs a future on the runtime before the workers drive it.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Drives the runtime until `main` has ended; then the receiver is disconnected.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn run(self, main: impl Future<Output = ()> + Send + 'static) -> io::Result<Receiver<()>> {
        let Self {
            workers,
            bell,
            runtime,
        } = self;
        let (told, over) = channel();
        let (ended, rings) = (Arc::new(AtomicBool::new(false)), bell.clone());
        let end = ended.clone();
        runtime.spawn(async move {
            main.await;
            end.store(true, Ordering::Release);
            rings.wake();
        });
        // Without any earlier timer, each timer that a connection sets would cost a system call.
        runtime.spawn(async {
            loop {
                tokio::time::sleep(BEAT).await;
            }
        });
        let shift = Mutex::new(Some((runtime, told, workers.clone())));
        let late = Mutex::default();
        workers.drive(Arc::new(Watch {
            shift,
            bell,
            late,
            ended,
        }))?;
        Ok(over)
    }
}

/// The runtime, the sender that signals its end, and the workers, which live as long.
type Shift = (Runtime, Sender<()>, Arc<Workers>);

/// The duty of the leading worker.
struct Watch {
    shift: Mutex<Option<Shift>>,
    bell: Arc<Notifier>,
    /// Wake-ups made on the runtime, where they do not cost a system call each.
    late: Mutex<WakeUps>,
    ended: Arc<AtomicBool>,
}

impl Watch {
    fn late(&self) -> MutexGuard<'_, WakeUps> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lead for Watch {
    fn has_jobs(&self) {
        self.bell.wake();
    }

    fn wake(&self, mut wakes: WakeUps) {
        self.late().append(&mut wakes);
        self.bell.wake();
    }

    fn lead(&self, mut wakes: WakeUps, is_wanted: &dyn Fn() -> bool) -> bool {
        let mut shift = self.shift.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((runtime, ..)) = shift.as_ref() else {
            return true;
        };
        let mut has_looked = false;
        let over = runtime.block_on(poll_fn(|cx| {
            self.bell.watch(cx);
            // On the runtime, waking a task needs no system call.
            wakes.append(&mut self.late());
            wakes.drain(..).for_each(|wake| wake.wake());
            if self.ended.load(Ordering::Acquire) {
                return Poll::Ready(true);
            }
            // The sockets are polled at least once, so that endless jobs do not starve them.
            if has_looked && is_wanted() {
                return Poll::Ready(false);
            }
            if !std::mem::replace(&mut has_looked, true) && is_wanted() {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        }));
        if over {
            let last = shift.take();
            drop(shift);
            drop(last);
        }
        over
    }
}
