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
const PERIOD: Duration = Duration::from_millis(500);

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

/// The configuration and the files that it names.
#[derive(Default)]
pub struct Files(Vec<File>);

struct File {
    path: PathBuf,
    /// How it was when it was read.
    known: State,
    /// How it was when somebody looked last.
    seen: State,
}

/// When a file was changed, and its length; `None` while it is away.
type State = Option<(SystemTime, u64)>;

impl Files {
    /// With another file, which is to be read after this: a change that comes meanwhile is noticed.
    pub fn and(mut self, path: PathBuf) -> Self {
        let known = state(&path);
        let seen = known;
        self.0.push(File { path, known, seen });
        self
    }

    /// Looks again. Returns whether a file has changed since it was read, and nobody has written to it since the look before: half of
    /// a file may be a good file, too.
    ///
    /// # Errors
    /// The file that is away. A configuration that has changed is read nevertheless, as it may name other files.
    fn look(&mut self) -> Result<bool, &Path> {
        let mut is_at_rest = true;
        for file in &mut self.0 {
            let now = state(&file.path);
            is_at_rest &= now == file.seen;
            file.seen = now;
        }
        let has_changed = |file: &File| file.known != file.seen;
        let is_configured_anew =
            (self.0.first()).is_some_and(|file| file.seen.is_some() && has_changed(file));
        if !is_configured_anew && let Some(away) = self.0.iter().position(|it| it.seen.is_none()) {
            return Err(&self.0[away].path);
        }
        if !is_at_rest || !self.0.iter().any(has_changed) {
            return Ok(false);
        }
        for file in &mut self.0 {
            file.known = file.seen;
        }
        Ok(true)
    }
}

fn state(file: &Path) -> State {
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
                    if looks_in_vain == 4 {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that somebody writes in several pieces is read when it is whole.
    #[test]
    fn a_file_is_read_when_nobody_writes_to_it() {
        let folder = std::env::temp_dir().join(format!("mcpbolt-reload-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("gateway.toml");
        std::fs::write(&path, "one").unwrap();
        let mut files = Files::default().and(path.clone());
        assert_eq!(files.look(), Ok(false));
        for piece in ["one, two", "one, two, three"] {
            std::fs::write(&path, piece).unwrap();
            assert_eq!(files.look(), Ok(false), "{piece}");
        }
        assert_eq!(files.look(), Ok(true));
        assert_eq!(files.look(), Ok(false));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(files.look(), Err(&*path));
        std::fs::write(&path, "four").unwrap();
        assert_eq!(files.look(), Ok(false));
        assert_eq!(files.look(), Ok(true));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
