//! tokio for clients on sockets, whose own programs may have another runtime or none.

use std::io;
use std::sync::OnceLock;
use std::thread::available_parallelism;

use tokio::runtime::{Builder, Runtime};

/// Most threads that carry what clients send and receive.
const MAX_THREADS: usize = 4;

/// The one runtime that the clients of a program share, on threads of its own; begins when it is
/// asked for the first time.
///
/// # Errors
/// When its threads cannot be started.
pub fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let threads = available_parallelism().map_or(1, usize::from);
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads.min(MAX_THREADS))
        .thread_name("mcpbolt-net")
        .enable_all()
        .build()?;
    // Who loses the race takes the winner's, and ends its own, which has nothing to do yet.
    match RUNTIME.set(runtime) {
        Ok(()) => {}
        Err(second) => second.shutdown_background(),
    }
    RUNTIME
        .get()
        .ok_or_else(|| io::Error::other("there is no runtime"))
}
