//! How long a server serves as a worker: until its supervisor says that another has taken over, or that all end.

use std::future::pending;
#[cfg(unix)]
use std::io;

#[cfg(unix)]
use tokio::sync::watch;

#[cfg(unix)]
use crate::io::supervise::{Standing, WorkerProcess};

/// What the supervisor says to a server. A server that is no worker hears nothing.
#[derive(Clone, Default)]
pub struct Tenure {
    #[cfg(unix)]
    worker: Option<(WorkerProcess, watch::Receiver<Standing>)>,
}

impl Tenure {
    /// Listens to the supervisor of a worker, in the tokio runtime of the caller.
    #[cfg(unix)]
    pub fn of(worker: WorkerProcess) -> io::Result<Self> {
        let standing = worker.watch()?;
        let worker = Some((worker, standing));
        Ok(Self { worker })
    }

    /// This process as a worker.
    #[cfg(unix)]
    pub fn worker(&self) -> Option<&WorkerProcess> {
        self.worker.as_ref().map(|(worker, _)| worker)
    }

    /// Says that the server accepts connections.
    pub fn announce(&self) {
        #[cfg(unix)]
        if let Some((worker, _)) = &self.worker {
            worker.ready();
        }
    }

    /// Completes when the server is to accept no more.
    pub async fn dismissed(&mut self) {
        #[cfg(unix)]
        if let Some((_, standing)) = &mut self.worker {
            // The task that tells lives until it has told the end.
            let _ = standing.wait_for(|it| *it != Standing::Serving).await;
            return;
        }
        pending().await
    }

    /// Completes when the server is to end, after another may have taken over.
    pub async fn over(&mut self) {
        #[cfg(unix)]
        if let Some((_, standing)) = &mut self.worker {
            let _ = standing.wait_for(|it| *it == Standing::Over).await;
            return;
        }
        pending().await
    }

    /// Whether another worker has taken over.
    pub fn is_replaced(&self) -> bool {
        #[cfg(unix)]
        if let Some((_, standing)) = &self.worker {
            return *standing.borrow() == Standing::Replaced;
        }
        false
    }
}
