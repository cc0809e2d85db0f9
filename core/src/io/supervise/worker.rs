//! The worker's side of the control socket.

use std::env;
use std::io;
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::getppid;
use rustix::stdio;
use tokio::sync::watch;

use super::control::{self, Key, READY, REPLACED, VARIABLE};
use super::plan::Number;
use crate::io::net::listener::Listener;
use crate::sync::lock;

/// This process as one of several that serve an address, which a [`Supervisor`](super::Supervisor) has started. Set
/// [`ServeOptions::worker`](crate::io::ServeOptions::worker) to serve as this worker. Clones are the same worker.
#[derive(Clone)]
pub struct WorkerProcess(Arc<Inner>);

struct Inner {
    number: Number,
    /// The process id of the supervisor.
    supervisor: i32,
    control: UnixStream,
    listener: Listener,
    /// The socket for requests that other workers pass on, until a server takes it.
    private: Mutex<Option<UnixListener>>,
    folder: PathBuf,
    key: Option<Key>,
}

impl std::fmt::Debug for WorkerProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerProcess")
            .field("number", &self.0.number)
            .field("folder", &self.0.folder)
            .finish_non_exhaustive()
    }
}

/// What the supervisor has told a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing yet.
    Serving,
    /// Another worker has taken over.
    Replaced,
    /// To end, or it is gone.
    Over,
}

fn parent_id() -> Option<i32> {
    getppid().map(|pid| pid.as_raw_nonzero().get())
}

/// The path of a worker's private socket.
pub fn private_socket(folder: &Path, number: Number) -> PathBuf {
    folder.join(number.to_string())
}

/// The path of the file that says that a worker serves. Its socket is there before: the supervisor binds it, and then starts the
/// process.
pub fn ready_file(folder: &Path, number: Number) -> PathBuf {
    folder.join(format!("{number}.ready"))
}

/// Removes the files of a worker, as far as they are there.
pub fn remove_files(folder: &Path, number: Number) {
    let _ = std::fs::remove_file(ready_file(folder, number));
    let _ = std::fs::remove_file(private_socket(folder, number));
}

impl WorkerProcess {
    /// This process as a worker; `None` if no supervisor has started it. Takes stdin, which is then empty. Further calls
    /// return the same worker.
    ///
    /// # Errors
    /// When the supervisor has died, or hands over no sockets.
    pub fn inherited() -> io::Result<Option<Self>> {
        static INHERITED: Mutex<Option<WorkerProcess>> = Mutex::new(None);
        let mut inherited = lock(&INHERITED);
        if inherited.is_none() {
            *inherited = Self::take()?;
        }
        Ok(inherited.clone())
    }

    fn take() -> io::Result<Option<Self>> {
        let value = env::var(VARIABLE).unwrap_or_default();
        let mut parts = value.splitn(4, ' ');
        let mut part = || parts.next().unwrap_or_default();
        let (supervisor, number) = (part().parse::<i32>(), part().parse());
        let (identity, folder) = (part(), part());
        let (Ok(supervisor), Ok(number)) = (supervisor, number) else {
            return Ok(None);
        };
        if !control::identity(stdio::stdin()).is_ok_and(|stdin| stdin == identity) {
            // A program that a worker has started.
            return Ok(None);
        }
        if parent_id() != Some(supervisor) {
            return Err(io::Error::other("the supervisor of this worker has died"));
        }
        let control = UnixStream::from(fcntl_dupfd_cloexec(stdio::stdin(), 3)?);
        let nowhere = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        stdio::dup2_stdin(&nowhere)?;
        let ([listener, private], key) = control::receive(&control)?;
        control.set_nonblocking(true)?;
        let private = UnixListener::from(private);
        private.set_nonblocking(true)?;
        Ok(Some(Self(Arc::new(Inner {
            number,
            supervisor,
            control,
            listener: Listener::handed(listener)?,
            private: Mutex::new(Some(private)),
            folder: folder.into(),
            key,
        }))))
    }

    /// The number of this worker: 1 for the first one, and never the same for two workers of a supervisor.
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// The socket that the workers share, or this worker's own where each has one.
    pub fn listener(&self) -> &Listener {
        &self.0.listener
    }

    /// Takes the socket on which other workers pass on requests, for the tokio runtime of the caller. `None` if a server of
    /// this process has taken it.
    pub(in crate::io) fn take_private(&self) -> io::Result<Option<tokio::net::UnixListener>> {
        let private = lock(&self.0.private).take();
        private.map(tokio::net::UnixListener::from_std).transpose()
    }

    /// Removes the file that says that this worker serves: from then on, other workers go on with the sessions that it would have gone on
    /// with.
    pub(in crate::io) fn retire(&self) {
        let _ = std::fs::remove_file(ready_file(&self.0.folder, self.0.number));
    }

    /// Removes the file of the private socket: from then on, other workers know that this one has no sessions. Only after
    /// that may the socket be closed.
    pub(in crate::io) fn withdraw(&self) {
        remove_files(&self.0.folder, self.0.number);
    }

    /// The key that all workers of the supervisor have for states that clients hold.
    pub(in crate::io) fn state_key(&self) -> Option<Key> {
        self.0.key
    }

    /// The folder of the private sockets.
    pub(in crate::io) fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Tells the supervisor and the other workers that this one serves.
    pub(in crate::io) fn ready(&self) {
        // Without the file, the others leave sessions whose worker has ended to those that have one.
        let _ = std::fs::File::create(ready_file(&self.0.folder, self.0.number));
        // If the supervisor is gone, the watch says so.
        let _ = (&self.0.control).write(&[READY]);
    }

    /// Watches what the supervisor says, in a task of the caller's tokio runtime.
    pub(in crate::io) fn watch(&self) -> io::Result<watch::Receiver<Standing>> {
        let control = tokio::net::UnixStream::from_std(self.0.control.try_clone()?)?;
        let (standing, receiver) = watch::channel(Standing::Serving);
        let worker = self.clone();
        tokio::spawn(async move {
            loop {
                let mut said = [0; 16];
                match control
                    .readable()
                    .await
                    .and_then(|()| control.try_read(&mut said))
                {
                    Ok(0) => break,
                    Ok(len) if said.iter().take(len).any(|byte| *byte == REPLACED) => {
                        standing.send_replace(Standing::Replaced);
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
            standing.send_replace(Standing::Over);
            worker.tidy();
        });
        Ok(receiver)
    }

    /// Removes the private socket, in case the supervisor was killed and cannot do so.
    fn tidy(&self) {
        if parent_id() != Some(self.0.supervisor) {
            self.withdraw();
            // The last one succeeds.
            let _ = std::fs::remove_dir(&self.0.folder);
        }
    }
}
