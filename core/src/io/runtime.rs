//! The tokio runtime that drives clients on sockets, whose programs may have another runtime or none.

use std::future::Future;
use std::io;
use std::process;
use std::sync::OnceLock;
use std::thread::available_parallelism;

use tokio::runtime::{Builder, Runtime};

use super::ended::Driven;
#[cfg(feature = "http-client")]
use crate::handler::Spawner;

/// Maximum number of threads of the runtime.
const MAX_THREADS: usize = 4;

/// The runtime of a process, and the one of the process forked from it: a fork inherits the memory of
/// its parent's runtime, but not its threads.
struct Own {
    process: u32,
    runtime: Runtime,
    fork: OnceLock<Box<Own>>,
}

/// The runtime that all clients of a program share, on threads of its own. Starts at the first call.
///
/// # Errors
/// When its threads cannot be started.
pub fn runtime() -> io::Result<&'static Runtime> {
    static OWN: OnceLock<Box<Own>> = OnceLock::new();
    let (mut place, process) = (&OWN, process::id());
    loop {
        match place.get() {
            Some(own) if own.process == process => return Ok(&own.runtime),
            Some(parents) => place = &parents.fork,
            None => begin(place, process)?,
        }
    }
}

fn begin(place: &OnceLock<Box<Own>>, process: u32) -> io::Result<()> {
    let threads = available_parallelism().map_or(1, usize::from);
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads.min(MAX_THREADS))
        .thread_name("mcpbolt-net")
        .enable_all()
        .build()?;
    let own = Own {
        process,
        runtime,
        fork: OnceLock::new(),
    };
    // If another thread was faster, its runtime is used, and this one, still idle, is shut down.
    if let Err(second) = place.set(Box::new(own)) {
        second.runtime.shutdown_background();
    }
    Ok(())
}

/// Drives a client's connection to its end.
///
/// # Errors
/// When the runtime's threads cannot be started.
pub(super) fn drive_client(
    connection: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    runtime()?.spawn(awaited(connection));
    Ok(())
}

/// Drives a client's connection to its end, on the loop of `spawner` if it has one.
///
/// # Errors
/// As [`drive_client`].
#[cfg(feature = "http-client")]
pub(super) fn drive_beside(
    spawner: &dyn Spawner,
    connection: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    match spawner.event_loop() {
        Some(event_loop) => {
            // Boxed by itself, since a future that moves another into itself has room for it twice.
            event_loop.spawn(Box::pin(awaited(Box::pin(connection))));
            Ok(())
        }
        None => drive_client(connection),
    }
}

/// Work that [`wait_for_clients`] waits for, from now on.
pub(super) fn awaited<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let driven = Driven::begin();
    async move {
        let done = work.await;
        drop(driven);
        done
    }
}
