//! The threads of a server on sockets: those that drive the sockets, and those that run handlers.
//!
//! By default both are the same. A tokio runtime of one thread is the event loop that the workers lead in
//! turns: jobs for handlers that arrive in a turn of the runtime are run by the same worker after the turn,
//! outside of the runtime, so a quick handler costs no wake-up of another thread. For more traffic than
//! one thread can carry, the runtime has threads of its own.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::connection::Wake;
use crate::handler::Spawner;
use crate::io::wait::Notifier;
use crate::io::workers::{Mailbox, Workers, WorkersConfig};
use crate::sync::lock;

/// How often the runtime's timers are checked at the latest.
const BEAT: Duration = Duration::from_secs(10);

/// The runtime that drives a server's sockets, and the workers that run its handlers.
pub struct Threads {
    runtime: Runtime,
    workers: Arc<Workers>,
    /// Whether the workers drive the runtime.
    are_led: bool,
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
        })
    }

    /// The spawner for handlers.
    pub fn spawner(&self) -> Arc<dyn Spawner> {
        self.workers.clone()
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
            runtime, workers, ..
        } = self;
        if !self.are_led {
            return begin("mcpbolt-serve", move || {
                runtime.block_on(main);
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
        pool.drive(Some(mailbox), move |mut wakes, is_wanted| {
            // The pool lives as long as the loop.
            let _ = &workers;
            let mut has_looked = false;
            runtime.block_on(poll_fn(|cx| {
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
            }))
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
