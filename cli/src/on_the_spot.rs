//! Futures without threads of their own: each poll runs on the thread that causes it.
//!
//! An answer is handled on the thread that has read it, so nothing is handed to another thread and no thread is woken.
//! Polls must be short.

use std::future::Future;

use async_task::Runnable;
use mcpbolt::handler::{Job, Spawner};

/// Runs a future here until it waits, and then on the thread that wakes it.
pub fn begin(future: impl Future<Output = ()> + Send + 'static) {
    let run = |task: Runnable| {
        task.run();
    };
    let (task, handle) = async_task::spawn(future, run);
    handle.detach();
    task.run();
}

/// Runs handlers on the thread that has read the request.
pub struct OnTheSpot;

impl Spawner for OnTheSpot {
    fn spawn(&self, job: Job) {
        begin(job);
    }
}
