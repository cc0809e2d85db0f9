//! The threads of a server on sockets: those that drive the sockets, and those that run handlers.
//!
//! By default both are the same. A tokio runtime of one thread is the event loop that the workers lead in
//! turns: jobs for handlers that arrive in a turn of the runtime are run by the same worker after the turn,
//! outside of the runtime, so a quick handler costs no wake-up of another thread. For more traffic than
//! one thread can carry, the runtime has threads of its own.

use std::future::{Future, poll_fn};
use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::connection::{RequestSource, Wake};
use crate::handler::{Job, Jobs, Spawner};
use crate::io::wait::Notifier;
use crate::io::workers::{Mailbox, Workers, WorkersConfig};
use crate::sync::lock;

/// How often the runtime's timers are checked at the latest.
const BEAT: Duration = Duration::from_secs(10);

/// How long connections to other servers, and then jobs that block, may take to end after the server.
const FAREWELL: Duration = Duration::from_secs(10);

/// The runtime that drives a server's sockets, and the workers that run its handlers.
pub struct Threads {
    runtime: Runtime,
    workers: Arc<Workers>,
    /// Whether the workers drive the runtime.
    are_led: bool,
    /// The number of connections to other servers that the runtime drives.
    onward: watch::Sender<usize>,
}

/// A runtime whose end does not wait for ever for jobs that block.
struct Bounded(Option<Runtime>);

impl Bounded {
    /// `None` if it has ended.
    fn block_on<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        Some(self.0.as_ref()?.block_on(future))
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(FAREWELL);
        }
    }
}

/// Runs handlers on the workers, and connections to other servers on the runtime.
struct Beside {
    workers: Arc<Workers>,
    onward: OnRuntime,
}

impl Spawner for Beside {
    fn spawn(&self, job: Job) {
        self.workers.spawn(job);
    }

    fn spawn_blocking(&self, job: Job) {
        self.workers.spawn_blocking(job);
    }

    fn spawn_batch(&self, jobs: Jobs) {
        self.workers.spawn_batch(jobs);
    }

    fn spawn_batch_of(&self, source: &RequestSource, jobs: Jobs) {
        self.workers.spawn_batch_of(source, jobs);
    }

    fn together(&self, run: &mut dyn FnMut()) {
        self.workers.together(run);
    }

    fn event_loop(&self) -> Option<&dyn Spawner> {
        Some(&self.onward)
    }
}

/// Runs connections to other servers as tasks of the runtime, and counts them.
struct OnRuntime {
    runtime: Handle,
    count: watch::Sender<usize>,
}

impl Spawner for OnRuntime {
    fn spawn(&self, job: Job) {
        let counted = Onward::begin(self.count.clone());
        self.runtime.spawn(async move {
            job.await;
            drop(counted);
        });
    }
}

/// Counts a connection to another server while it is driven.
struct Onward(watch::Sender<usize>);

impl Onward {
    fn begin(count: watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Onward {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Threads {
    /// Starts `count` threads for sockets; with `None`, the workers drive them.
    ///
    /// # Errors
    /// When they cannot be started.
    pub fn new(count: Option<usize>) -> io::Result<Self> {
        let mut builder = match count {
            None => Builder::new_current_thread(),
            Some(_) => Builder::new_multi_thread(),
        };
        if let Some(count) = count {
            builder
                .worker_threads(count.max(1))
                .thread_name("mcpbolt-net");
        }
        let runtime = builder.enable_all().build()?;
        let context = runtime.enter();
        let workers = Arc::new(Workers::new(WorkersConfig::default()));
        drop(context);
        Ok(Self {
            runtime,
            workers,
            are_led: count.is_none(),
            onward: watch::Sender::new(0),
        })
    }

    /// The spawner for handlers.
    pub fn spawner(&self) -> Arc<dyn Spawner> {
        Arc::new(Beside {
            workers: self.workers.clone(),
            onward: OnRuntime {
                runtime: self.runtime.handle().clone(),
                count: self.onward.clone(),
            },
        })
    }

    /// Runs a future before the threads are driven.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Drives `main` to its end; then the receiver is disconnected.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn run(self, main: impl Future<Output = ()> + Send + 'static) -> io::Result<Receiver<()>> {
        let Self {
            runtime,
            workers,
            are_led,
            onward,
        } = self;
        // What it has passed on is lost, but the sessions with other servers are ended (R-SES-06).
        let main = async move {
            main.await;
            let none_left = async {
                onward
                    .subscribe()
                    .wait_for(|count| *count == 0)
                    .await
                    .map(drop)
            };
            let _ = timeout(FAREWELL, none_left).await;
        };
        if !are_led {
            return begin("mcpbolt-serve", move || {
                Bounded(Some(runtime)).block_on(main);
                drop(workers);
            });
        }
        let notifier = Notifier::new();
        let mailbox = Arc::new(Mailbox {
            notifier: notifier.clone(),
            wakes: std::sync::Mutex::default(),
        });
        let has_ended = Arc::new(AtomicBool::new(false));
        let (notifies, ends) = (notifier.clone(), has_ended.clone());
        runtime.spawn(async move {
            main.await;
            ends.store(true, Ordering::Release);
            notifies.wake();
        });
        // Without any earlier timer, each timer that a connection sets would cost a system call.
        runtime.spawn(async {
            loop {
                tokio::time::sleep(BEAT).await;
            }
        });
        let (letters, pool) = (mailbox.clone(), workers.clone());
        let runtime = Bounded(Some(runtime));
        pool.drive(Some(mailbox), move |mut wakes, is_wanted| {
            // The pool lives as long as the loop.
            let _ = &workers;
            let mut has_looked = false;
            let turns = poll_fn(|cx| {
                notifier.watch(cx);
                // On the runtime, waking a task needs no system call.
                wakes.append(&mut lock(&letters.wakes));
                wakes.drain(..).for_each(|wake| wake.wake());
                if has_ended.load(Ordering::Acquire) {
                    return Poll::Ready(Some(()));
                }
                if has_looked && is_wanted() {
                    return Poll::Ready(None);
                }
                if !std::mem::replace(&mut has_looked, true) && is_wanted() {
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            });
            runtime.block_on(turns).flatten()
        })
    }
}

/// Runs a closure on a thread of that name; when it ends, the receiver is disconnected.
///
/// # Errors
/// When the thread cannot be started.
pub fn begin(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<Receiver<()>> {
    let (told, over) = channel();
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            run();
            // Nothing is ever sent; dropping the sender is the signal.
            drop::<std::sync::mpsc::Sender<()>>(told);
        })?;
    Ok(over)
}

/// Runs a closure on another thread. It creates a runtime, blocks on it and may drop it: all three
/// panic on a thread of another runtime, from which a program may call this.
pub fn aside<T: Send>(run: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let aside = thread::Builder::new().spawn_scoped(scope, run)?;
        aside.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
