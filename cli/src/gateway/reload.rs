//! New settings while the gateway serves.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use mcpbolt::chain::Front;
use mcpbolt::connection::{Config, Handle};
use mcpbolt::handler::Spawner;
use mcpbolt::policy::Policy;
use mcpbolt::server::{Hosting, ServerHost};
use tracing::{error, info, warn};

/// How often the file is looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// How long a call that waits for its client's answer goes on by settings that are not the newest any more.
const PATIENCE: Duration = Duration::from_secs(300);

/// The front of the newest settings. Connections keep the one that they began with, and calls that wait for their clients go on where
/// they began, so no call is lost. Credentials are verified by the newest.
pub struct Current {
    spawner: Arc<dyn Spawner>,
    config: Arc<Config>,
    front: RwLock<Arc<dyn Hosting>>,
    newest: Mutex<Front>,
    generation: AtomicU64,
}

impl Current {
    pub fn new(front: Front, spawner: Arc<dyn Spawner>) -> Arc<Self> {
        let hosting = front.hosting(spawner.clone());
        Arc::new(Self {
            spawner,
            config: hosting.config().clone(),
            front: RwLock::new(hosting),
            newest: Mutex::new(front),
            generation: AtomicU64::new(0),
        })
    }

    /// Has connections that come from now on served by `front`.
    pub fn replace(&self, front: Front) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        *newest = front.succeeding(&newest, PATIENCE);
        let hosting = newest.hosting(self.spawner.clone());
        let before = {
            let mut current = self.front.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, hosting)
        };
        self.generation.fetch_add(1, Ordering::Release);
        // Closes connections, which is to hold up nobody.
        drop(before);
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
        self.front().policy()
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn ended(&self) {
        self.front().ended();
    }
}

/// The configuration and the files that it names, and how each was when somebody looked last: when it was changed, and its length; `None`
/// while it is away.
#[derive(Default)]
pub struct Files(Vec<(PathBuf, Option<(SystemTime, u64)>)>);

impl Files {
    /// With another file, which is to be read after this: a change that comes meanwhile is noticed.
    pub fn and(mut self, file: PathBuf) -> Self {
        let state = state(&file);
        self.0.push((file, state));
        self
    }

    /// Looks again. Returns whether a file has changed.
    ///
    /// # Errors
    /// The file that is away. A configuration that has changed is read nevertheless, as it may name other files.
    fn look(&mut self) -> Result<bool, &Path> {
        let now: Vec<_> = self.0.iter().map(|(file, _)| state(file)).collect();
        let is_configured_anew = match (self.0.first(), now.first()) {
            (Some((_, known)), Some(now)) => now.is_some() && known != now,
            _ => false,
        };
        let away = now.iter().position(Option::is_none);
        if let Some(away) = away.filter(|_| !is_configured_anew) {
            return Err(&self.0[away].0);
        }
        let mut has_changed = false;
        for ((_, known), now) in self.0.iter_mut().zip(now) {
            has_changed |= *known != now;
            *known = now;
        }
        Ok(has_changed)
    }
}

fn state(file: &Path) -> Option<(SystemTime, u64)> {
    let data = std::fs::metadata(file).ok()?;
    Some((data.modified().ok()?, data.len()))
}

/// Serves by what `load` makes of the files each time that one has changed, on a thread of its own, until nobody serves any
/// more. `load` says which files are to be watched from then on. A file that cannot be used is told, and changes nothing.
pub fn watch(
    mut files: Files,
    current: Weak<Current>,
    mut load: impl FnMut(&mut Files) -> Result<Front> + Send + 'static,
) {
    thread::spawn(move || {
        let mut looks_in_vain = 0_u64;
        loop {
            thread::sleep(PERIOD);
            let Some(current) = current.upgrade() else {
                return;
            };
            match files.look() {
                Ok(has_changed) => {
                    looks_in_vain = 0;
                    if !has_changed {
                        continue;
                    }
                }
                Err(away) => {
                    looks_in_vain += 1;
                    // Editors remove a file before they write it anew.
                    if looks_in_vain == 2 {
                        let file = away.display();
                        warn!(%file, "is away: until it is there or the configuration changes, the gateway serves as before");
                    }
                    continue;
                }
            }
            match load(&mut files) {
                Ok(front) => {
                    current.replace(front);
                    info!("reloaded");
                }
                Err(why) => error!("not reloaded, the gateway serves as before: {why:#}"),
            }
        }
    });
}
