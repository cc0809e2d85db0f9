//! New settings while the gateway serves.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use mcpbolt::chain::Front;
use mcpbolt::connection::{Config, Handle};
use mcpbolt::handler::Spawner;
use mcpbolt::policy::Policy;
use mcpbolt::server::{Hosting, ServerHost};
use tracing::{error, info};

/// How often the file is looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// The front of the newest settings. Connections keep the one that they began with, so no call is lost.
pub struct Current {
    spawner: Arc<dyn Spawner>,
    config: Arc<Config>,
    policy: Option<Arc<Policy>>,
    front: RwLock<Arc<dyn Hosting>>,
    generation: AtomicU64,
}

impl Current {
    pub fn new(front: &Front, spawner: Arc<dyn Spawner>) -> Arc<Self> {
        let hosting = front.hosting(spawner.clone());
        Arc::new(Self {
            spawner,
            config: hosting.config().clone(),
            policy: hosting.policy(),
            front: RwLock::new(hosting),
            generation: AtomicU64::new(0),
        })
    }

    /// Has connections that come from now on served by `front`.
    pub fn replace(&self, front: &Front) {
        let hosting = front.hosting(self.spawner.clone());
        *self.front.write().unwrap_or_else(PoisonError::into_inner) = hosting;
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn front(&self) -> Arc<dyn Hosting> {
        self.front
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Hosting for Current {
    fn config(&self) -> &Arc<Config> {
        &self.config
    }

    fn host(&self, handle: Handle, timers: Option<&Handle>) -> ServerHost {
        self.front().host(handle, timers)
    }

    fn policy(&self) -> Option<Arc<Policy>> {
        self.policy.clone()
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}

/// Serves by what `load` makes of the files each time that one has changed, on a thread of its own, until nobody serves any
/// more. A file that cannot be used is told, and changes nothing.
pub fn watch(
    files: Vec<PathBuf>,
    current: Weak<Current>,
    load: impl Fn() -> Result<Front> + Send + 'static,
) {
    let mut known = changed(&files);
    thread::spawn(move || {
        loop {
            thread::sleep(PERIOD);
            let Some(current) = current.upgrade() else {
                return;
            };
            let now = changed(&files);
            // Editors remove a file before they write it anew.
            if now.is_none() || now == known {
                continue;
            }
            known = now;
            match load() {
                Ok(front) => {
                    current.replace(&front);
                    info!("reloaded");
                }
                Err(why) => error!("not reloaded, the gateway serves as before: {why:#}"),
            }
        }
    });
}

/// When the files were changed last, and their lengths; `None` while one is away.
fn changed(files: &[PathBuf]) -> Option<Vec<(SystemTime, u64)>> {
    let change = |file: &PathBuf| {
        let data = std::fs::metadata(file).ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    files.iter().map(change).collect()
}
