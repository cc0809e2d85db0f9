//! Servers on sockets, whose handlers run on the threads that drive the sockets: a tokio runtime of
//! one thread at a time, driven by whichever worker leads.
//!
//! What a turn of the runtime brings in for handlers is run by the same worker when the turn is
//! over, outside of the runtime; then it leads again. So a quick handler costs no wake-up of
//! another thread. When one has not come back within a tick, another worker drives the runtime.

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
use crate::io::wait::Bell;
use crate::io::wake::WakeUps;
use crate::io::workers::{Lead, Workers, WorkersConfig};

/// How often the runtime's timers are looked at, whatever else there is.
const BEAT: Duration = Duration::from_secs(10);

/// Workers and the runtime that they are going to drive.
pub struct Crew {
    workers: Arc<Workers>,
    /// Tells who leads that there are jobs.
    bell: Arc<Bell>,
    runtime: Runtime,
}

impl Crew {
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            workers: Arc::new(Workers::new(WorkersConfig::default())),
            bell: Bell::new(),
            runtime: Builder::new_current_thread().enable_all().build()?,
        })
    }

    /// Where the handlers are to run that it brings in.
    pub fn spawner(&self) -> Arc<dyn Spawner> {
        self.workers.clone()
    }

    /// Does something on the runtime before anybody drives it.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Drives the runtime until `main` has ended; who receives learns it.
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
        // While no timer is due before that of a connection, each that is set costs a system call.
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

/// The runtime, who is told of its end, and the workers, which live as long.
type Shift = (Runtime, Sender<()>, Arc<Workers>);

/// What the workers lead.
struct Watch {
    shift: Mutex<Option<Shift>>,
    bell: Arc<Bell>,
    /// Wake-ups that are made where they cost no system call each.
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
            // On the runtime a task is woken without a system call.
            wakes.append(&mut self.late());
            wakes.drain(..).for_each(|wake| wake.wake());
            if self.ended.load(Ordering::Acquire) {
                return Poll::Ready(true);
            }
            // Jobs that never run out must not keep the sockets unseen.
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
