//! One worker, as its supervisor has it.

use std::cell::RefCell;
use std::fs::{DirBuilder, File, remove_dir};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, id};

use mio::{Interest, Registry, Token};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Signal, geteuid};

use super::control::{self, Key, READY, REPLACED, VARIABLE};
use super::plan::Number;
use super::worker::{private_socket, remove_files};
use crate::io::net::listener::Listener;
use crate::io::unix::Process;
use crate::unguessable;

/// What all workers of a supervisor have: a key, and the folder of the private sockets, which only this user can enter. The
/// folder is removed when this is dropped.
pub struct Common {
    folder: PathBuf,
    key: Key,
    /// Locked as long as the supervisor lives: systemd-tmpfiles removes old files, such as those of workers that serve for long, only
    /// from folders that nobody has locked.
    lock: RefCell<File>,
}

impl Common {
    pub fn new() -> io::Result<Self> {
        let chance = unguessable::name().ok_or_else(|| io::Error::other("no randomness"))?;
        let name = format!("mcpbolt-{}", chance.get(..16).unwrap_or_default());
        let path = std::env::temp_dir().join(name);
        let mut key = Key::default();
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let lock = RefCell::new(make(&path)?);
        Ok(Self {
            folder: path,
            key,
            lock,
        })
    }

    /// Makes the folder again if somebody has removed it, and with it the sockets in it. Returns whether it was so.
    ///
    /// # Errors
    /// When it cannot be made, or somebody else has made another one in its place.
    pub fn mend(&self) -> io::Result<bool> {
        match std::fs::symlink_metadata(&self.folder) {
            Ok(found) if found.is_dir() && found.uid() == geteuid().as_raw() => Ok(false),
            Ok(_) => Err(io::Error::other(
                "somebody else has put something in its place",
            )),
            Err(_) => {
                self.lock.replace(make(&self.folder)?);
                Ok(true)
            }
        }
    }
}

/// Makes a folder, and locks it.
fn make(folder: &Path) -> io::Result<File> {
    DirBuilder::new().mode(0o700).create(folder)?;
    let made = File::open(folder)?;
    flock(&made, FlockOperation::NonBlockingLockShared)?;
    Ok(made)
}

impl Drop for Common {
    fn drop(&mut self) {
        let _ = remove_dir(&self.folder);
    }
}

/// A worker that has not been reaped.
#[derive(Debug)]
pub struct RunningWorker {
    process: Process,
    control: mio::net::UnixStream,
    _files: WorkerFiles,
    /// The worker has said that it serves.
    is_ready: bool,
    /// The worker has closed its end of the control socket, or ended.
    has_hung_up: bool,
}

/// The files of a worker, which are removed when this is dropped.
#[derive(Debug)]
struct WorkerFiles {
    folder: PathBuf,
    number: Number,
}

impl Drop for WorkerFiles {
    fn drop(&mut self) {
        remove_files(&self.folder, self.number);
    }
}

impl RunningWorker {
    /// Starts a worker on a listening socket. What it says, and its end, are reported to `registry` as these tokens.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(
        mut command: Command,
        number: Number,
        common: &Common,
        listener: &Listener,
        (registry, says, ends): (&Registry, Token, Token),
    ) -> io::Result<Self> {
        common.mend()?;
        let folder = common.folder.clone();
        let files = WorkerFiles { folder, number };
        let private = UnixListener::bind(private_socket(&common.folder, number))?;
        let (control, theirs) = UnixStream::pair()?;
        let identity = control::identity(&theirs)?;
        let value = format!("{} {number} {identity} {}", id(), common.folder.display());
        command.env(VARIABLE, value).stdin(OwnedFd::from(theirs));
        let mut process = Process::spawn(&mut command)?;
        control::send(&control, [listener.as_fd(), private.as_fd()], &common.key)?;
        control.set_nonblocking(true)?;
        let mut control = mio::net::UnixStream::from_std(control);
        registry.register(&mut control, says, Interest::READABLE)?;
        process.register(registry, ends);
        Ok(Self {
            process,
            control,
            _files: files,
            is_ready: false,
            has_hung_up: false,
        })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Reads what the worker has said. Returns whether it says for the first time that it serves.
    pub fn hear(&mut self) -> bool {
        let mut said = [0; 16];
        let was_ready = self.is_ready;
        loop {
            match self.control.read(&mut said) {
                Ok(0) => {
                    self.has_hung_up = true;
                    break;
                }
                Ok(len) => self.is_ready |= said.iter().take(len).any(|byte| *byte == READY),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.has_hung_up |= error.kind() != io::ErrorKind::WouldBlock;
                    break;
                }
            }
        }
        self.is_ready && !was_ready
    }

    /// Whether the process must be asked from time to time whether it has ended.
    pub fn is_to_be_watched(&self) -> bool {
        self.has_hung_up || !self.process.is_told()
    }

    /// Tells the worker that another has taken over.
    pub fn replace(&mut self) {
        // A worker that has hung up ends anyway.
        let _ = self.control.write(&[REPLACED]);
    }

    /// Tells the worker to end.
    pub fn end(&self) {
        let _ = self.control.shutdown(Shutdown::Write);
    }

    /// Kills the worker, and what it has started in its process group.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends a signal to the worker alone, if it serves. One that is starting may not handle the signal yet, and would end.
    pub fn signal(&self, signal: i32) {
        if !self.is_ready {
            return;
        }
        if let (Some(pid), Some(signal)) = (self.process.pid(), Signal::from_named_raw(signal)) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// Reaps the process if it has ended.
    pub fn take_exit(&mut self) -> Option<io::Result<ExitStatus>> {
        self.process.has_exited().then(|| self.process.reap())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_was_removed_is_made_again_unless_its_place_is_taken() {
        let common = Common::new().unwrap();
        assert!(!common.mend().unwrap());
        remove_dir(&common.folder).unwrap();
        assert!(common.mend().unwrap());
        assert_eq!(common.folder.metadata().unwrap().mode() & 0o777, 0o700);
        remove_dir(&common.folder).unwrap();
        std::os::unix::fs::symlink(std::env::temp_dir(), &common.folder).unwrap();
        assert!(common.mend().is_err());
        std::fs::remove_file(&common.folder).unwrap();
    }
}
