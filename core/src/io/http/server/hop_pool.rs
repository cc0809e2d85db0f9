//! Connections to other workers, kept for further requests.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hmac_sha256::Hash;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use super::hop_body::HopBody;
use crate::io::supervise::{private_socket, ready_file};
use crate::sync::lock;

/// The most connections to one worker that are kept while no request uses them.
const MAX_IDLE: usize = 64;

/// The connections of one worker to the others.
pub struct HopPool {
    /// The folder of the private sockets.
    folder: PathBuf,
    idle: Mutex<HashMap<u64, Vec<SendRequest<HopBody>>>>,
}

impl HopPool {
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            idle: Mutex::default(),
        }
    }

    /// Whether a worker may have sessions: its socket is there until it serves no more.
    pub fn has(&self, worker: u64) -> bool {
        private_socket(&self.folder, worker).exists()
    }

    /// Whether the folder is there.
    pub fn is_there(&self) -> bool {
        self.folder.exists()
    }

    /// Whether a worker begins no requests of sessions any more, though it has its socket.
    pub fn is_retired(&self, worker: u64) -> bool {
        !ready_file(&self.folder, worker).exists()
    }

    /// The worker that goes on with a session whose worker has ended: of those that serve, the one with the highest hash for the
    /// session (rendezvous hashing). All workers name the same one, and few sessions move when a worker comes or goes.
    pub fn successor(&self, session: &str) -> Option<u64> {
        let files = std::fs::read_dir(&self.folder).ok()?;
        let sockets = files.filter_map(|file| file.ok()?.file_name().to_str()?.parse().ok());
        let workers = sockets.filter(|worker| ready_file(&self.folder, *worker).exists());
        workers.max_by_key(|worker: &u64| Hash::hash(format!("{worker} {session}").as_bytes()))
    }

    /// A kept connection that takes a request at once. One that still sends the rest of a request whose answer has come is
    /// left alone.
    pub fn take(&self, worker: u64) -> Option<SendRequest<HopBody>> {
        let mut idle = lock(&self.idle);
        let idle = idle.get_mut(&worker)?;
        let ready = idle.iter().rposition(SendRequest::is_ready)?;
        Some(idle.swap_remove(ready))
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// When the worker has no socket, or its queue is full; when this process has no descriptor left.
    pub async fn connect(self: &Arc<Self>, worker: u64) -> io::Result<SendRequest<HopBody>> {
        let stream = UnixStream::connect(private_socket(&self.folder, worker)).await?;
        let opened = handshake(TokioIo::new(stream)).await;
        let (sender, connection) = opened.map_err(io::Error::other)?;
        let pool = Arc::downgrade(self);
        tokio::spawn(async move {
            // The request, if there is one, is told why the connection has ended.
            let _ = connection.await;
            if let Some(pool) = pool.upgrade() {
                pool.remove_closed(worker);
            }
        });
        Ok(sender)
    }

    /// Keeps a connection whose response is complete.
    pub fn keep(&self, worker: u64, sender: SendRequest<HopBody>) {
        let mut idle = lock(&self.idle);
        // Under the lock: one that closes later is removed then.
        if sender.is_closed() {
            return;
        }
        let idle = idle.entry(worker).or_default();
        if idle.len() < MAX_IDLE {
            idle.push(sender);
        }
    }

    fn remove_closed(&self, worker: u64) {
        let mut all = lock(&self.idle);
        if let Some(idle) = all.get_mut(&worker) {
            idle.retain(|sender| !sender.is_closed());
            if idle.is_empty() {
                all.remove(&worker);
            }
        }
    }

    /// Number of connections to a worker that are kept; `None` if nothing is remembered of the worker.
    #[cfg(test)]
    pub fn idle(&self, worker: u64) -> Option<usize> {
        lock(&self.idle).get(&worker).map(Vec::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::supervise::remove_files;

    #[test]
    fn a_session_has_one_successor_which_stays() {
        let folder = std::env::temp_dir().join(format!("mcpbolt-successor-{}", std::process::id()));
        // What a process of this number left that was killed.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let pool = HopPool::new(&folder);
        assert_eq!(pool.successor("a"), None);
        let open = |worker| {
            std::fs::write(private_socket(&folder, worker), "").unwrap();
            std::fs::write(ready_file(&folder, worker), "").unwrap();
        };
        let _starting = std::os::unix::net::UnixListener::bind(private_socket(&folder, 1)).unwrap();
        assert_eq!(pool.successor("a"), None, "it does not serve yet");
        (2..=5).for_each(open);
        let of = |session: usize| pool.successor(&session.to_string()).unwrap();
        let before: Vec<_> = (0..400).map(of).collect();
        for worker in 2..=5 {
            let own = before.iter().filter(|it| **it == worker).count();
            assert!((50..=150).contains(&own), "worker {worker} gets {own}");
        }
        remove_files(&folder, 3);
        for (session, before) in before.iter().enumerate() {
            let stays = of(session) == *before;
            assert!(stays != (*before == 3), "session {session} of {before}");
        }
        open(6);
        for (session, before) in before.iter().enumerate() {
            assert!(of(session) == 6 || *before == 3 || of(session) == *before);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn few_connections_to_a_worker_are_kept() {
        let folder = std::env::temp_dir().join(format!("mcpbolt-pool-{}", std::process::id()));
        // What a process of this number left that was killed.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let _listener = tokio::net::UnixListener::bind(private_socket(&folder, 1)).unwrap();
        let pool = Arc::new(HopPool::new(&folder));
        assert!(pool.has(1));
        for _ in 0..MAX_IDLE + 3 {
            let sender = pool.connect(1).await.unwrap();
            pool.keep(1, sender);
        }
        assert_eq!(pool.idle(1), Some(MAX_IDLE));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(!pool.has(1));
        assert!(pool.connect(1).await.is_err());
    }
}
