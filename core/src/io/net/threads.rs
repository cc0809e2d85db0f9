//! The threads of a server on sockets.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use tokio::runtime::{Builder, Runtime};

use super::crew::Crew;
use crate::handler::Spawner;
use crate::io::workers::{Workers, WorkersConfig};

/// The threads that drive a server's sockets.
pub enum Threads {
    /// The threads that run handlers, one at a time: best where calls are quick.
    Crew(Crew),
    /// A fixed number of threads: for more traffic than one thread can carry.
    Many(Runtime),
}

impl Threads {
    /// Starts `count` threads, or a crew if `None`.
    ///
    /// # Errors
    /// When they cannot be started.
    pub fn new(count: Option<usize>) -> io::Result<Self> {
        let Some(count) = count else {
            return Ok(Self::Crew(Crew::new()?));
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(count.max(1))
            .thread_name("mcpbolt-net")
            .enable_all()
            .build()?;
        Ok(Self::Many(runtime))
    }

    /// The spawner on which handlers run best.
    pub fn spawner(&self) -> Arc<dyn Spawner> {
        match self {
            Self::Crew(crew) => crew.spawner(),
            Self::Many(_) => Arc::new(Workers::new(WorkersConfig::default())),
        }
    }

    /// Runs a future before the threads are driven.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        match self {
            Self::Crew(crew) => crew.block_on(future),
            Self::Many(runtime) => runtime.block_on(future),
        }
    }

    /// Drives `main` to its end; then the receiver is disconnected.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn run(self, main: impl Future<Output = ()> + Send + 'static) -> io::Result<Receiver<()>> {
        match self {
            Self::Crew(crew) => crew.run(main),
            Self::Many(runtime) => begin("mcpbolt-serve", move || runtime.block_on(main)),
        }
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
