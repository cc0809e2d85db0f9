//! The way from this worker to the others.

#[cfg(unix)]
use std::sync::Arc;

use super::endpoint::Endpoint;
#[cfg(unix)]
use super::hop::WorkerHop;
use crate::io::net::tenure::Tenure;

/// Where requests of sessions go that other workers have.
#[derive(Clone)]
pub enum Way {
    /// Nowhere: there are no other workers, or the request came from one.
    None,
    /// To their owners.
    #[cfg(unix)]
    Onward(Arc<WorkerHop>),
    /// The connections come from other workers.
    #[cfg(unix)]
    Arrived,
}

impl Way {
    pub fn of(tenure: &Tenure, endpoint: &Endpoint) -> Self {
        #[cfg(unix)]
        if let Some(worker) = tenure.worker() {
            return Self::Onward(Arc::new(WorkerHop::new(worker, endpoint)));
        }
        let _ = (tenure, endpoint);
        Self::None
    }

    pub fn is_from_worker(&self) -> bool {
        #[cfg(unix)]
        return matches!(self, Self::Arrived);
        #[cfg(not(unix))]
        false
    }
}
