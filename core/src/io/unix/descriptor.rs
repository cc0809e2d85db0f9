//! Makes descriptors that other processes share pollable, without side effects on those processes.
//!
//! `O_NONBLOCK` belongs to the open file, not to the descriptor. Set on an inherited stdin, it would
//! break the shell, the parent and every sibling that shares the open file. Therefore:
//!
//! | inherited descriptor | how it is read and written |
//! |---|---|
//! | pipe, FIFO | reopened through `/proc/self/fd`, as a non-blocking open file of our own |
//! | socket | `MSG_DONTWAIT` on each call |
//! | anything else, or if the above fails | by a thread that blocks ([`blocking`](crate::io::blocking)) |
//!
//! A pipe to our own child has one open file for each end, so our end can be made non-blocking.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat, open};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};

use crate::io::blocking;
use crate::io::wake::LoopWake;

/// How the bytes of one end are read or written.
#[derive(Debug)]
enum Way<T> {
    /// A non-blocking open file of our own.
    Own(OwnedFd),
    /// A shared open file; each call passes `MSG_DONTWAIT`.
    Socket(OwnedFd),
    /// A thread that blocks instead of the loop.
    Thread(T),
}

impl<T> Way<T> {
    fn of_inherited(
        fd: OwnedFd,
        access: OFlags,
        thread: impl FnOnce(File) -> io::Result<T>,
    ) -> io::Result<Self> {
        match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
            FileType::Fifo => match reopen(fd.as_fd(), access) {
                Ok(own) => Ok(Self::Own(own)),
                Err(_) => Ok(Self::Thread(thread(File::from(fd))?)),
            },
            FileType::Socket => Ok(Self::Socket(fd)),
            _ => Ok(Self::Thread(thread(File::from(fd))?)),
        }
    }

    fn of_own(fd: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
        Ok(Self::Own(fd))
    }

    fn polled(&self) -> Option<&OwnedFd> {
        match self {
            Self::Own(fd) | Self::Socket(fd) => Some(fd),
            Self::Thread(_) => None,
        }
    }
}

/// Opens the same pipe again. Fails without `/proc` or the permission to open it.
fn reopen(fd: BorrowedFd<'_>, access: OFlags) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let own = open(path, flags, Mode::empty())?;
    let (before, after) = (fstat(fd)?, fstat(&own)?);
    if (before.st_dev, before.st_ino) != (after.st_dev, after.st_ino) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(own)
}

/// The end of a byte stream that this process reads.
#[derive(Debug)]
pub struct ReadEnd(Way<blocking::Reader>);

impl ReadEnd {
    /// Takes a descriptor whose open file others may share; its flags are not changed.
    ///
    /// # Errors
    /// When the descriptor is not open, or a thread is needed and cannot be started.
    pub fn inherited(fd: OwnedFd, wake: &Arc<LoopWake>) -> io::Result<Self> {
        let thread = |file| blocking::Reader::spawn(Patient(file), wake.clone());
        Way::of_inherited(fd, OFlags::RDONLY, thread).map(Self)
    }

    /// Takes a descriptor whose open file only this process uses, and makes it non-blocking.
    ///
    /// # Errors
    /// When the descriptor is not open.
    pub fn own(fd: impl Into<OwnedFd>) -> io::Result<Self> {
        Way::of_own(fd.into()).map(Self)
    }

    /// Whether the poll reports readiness; the end of a thread must be checked instead.
    pub(in crate::io) fn is_polled(&self) -> bool {
        self.0.polled().is_some()
    }

    pub(in crate::io) fn register(&self, registry: &Registry, token: Token) -> io::Result<()> {
        match self.0.polled() {
            Some(fd) => {
                registry.register(&mut SourceFd(&fd.as_raw_fd()), token, Interest::READABLE)
            }
            None => Ok(()),
        }
    }

    /// The socket's open file, and with it the registration, may outlive this end.
    pub(in crate::io) fn deregister(&self, registry: &Registry) {
        if let Some(fd) = self.0.polled() {
            // Fails only when it was never registered.
            let _ = registry.deregister(&mut SourceFd(&fd.as_raw_fd()));
        }
    }

    /// Reads once without blocking; `Ok(0)` is the end of the stream.
    pub(in crate::io) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let outcome = match &mut self.0 {
                Way::Own(fd) => rustix::io::read(fd, &mut *into),
                Way::Socket(fd) => recv(fd, &mut *into, RecvFlags::DONTWAIT).map(|(n, _)| n),
                Way::Thread(reader) => return reader.read(into),
            };
            match outcome {
                Err(Errno::INTR) => {}
                outcome => return Ok(outcome?),
            }
        }
    }
}

/// The end of a byte stream that this process writes.
#[derive(Debug)]
pub struct WriteEnd(Way<blocking::Writer>);

impl WriteEnd {
    /// Takes a descriptor whose open file others may share; its flags are not changed.
    ///
    /// # Errors
    /// When the descriptor is not open, or a thread is needed and cannot be started.
    pub fn inherited(fd: OwnedFd, wake: &Arc<LoopWake>) -> io::Result<Self> {
        let thread = |file| blocking::Writer::spawn(Patient(file), wake.clone());
        Way::of_inherited(fd, OFlags::WRONLY, thread).map(Self)
    }

    /// Takes a descriptor whose open file only this process uses, and makes it non-blocking.
    ///
    /// # Errors
    /// When the descriptor is not open.
    pub fn own(fd: impl Into<OwnedFd>) -> io::Result<Self> {
        Way::of_own(fd.into()).map(Self)
    }

    /// Whether the poll reports readiness; the end of a thread must be checked instead.
    pub(in crate::io) fn is_polled(&self) -> bool {
        self.0.polled().is_some()
    }

    pub(in crate::io) fn register(&self, registry: &Registry, token: Token) -> io::Result<()> {
        match self.0.polled() {
            Some(fd) => registry.register(&mut SourceFd(&fd.as_raw_fd()), token, self.at_rest()),
            None => Ok(()),
        }
    }

    pub(in crate::io) fn deregister(&self, registry: &Registry) {
        if let Some(fd) = self.0.polled() {
            // Fails only when it was never registered.
            let _ = registry.deregister(&mut SourceFd(&fd.as_raw_fd()));
        }
    }

    /// Requests an event when there is room to write or, if not `blocked`, only when the peer has gone.
    pub(in crate::io) fn await_room(
        &self,
        registry: &Registry,
        token: Token,
        blocked: bool,
    ) -> io::Result<()> {
        match &self.0 {
            Way::Socket(fd) if self.at_rest() != Interest::WRITABLE => {
                let interest = if blocked {
                    Interest::WRITABLE
                } else {
                    self.at_rest()
                };
                registry.reregister(&mut SourceFd(&fd.as_raw_fd()), token, interest)
            }
            _ => Ok(()),
        }
    }

    /// A pipe reports room only after it was full. A socket reports room each time the peer reads,
    /// which would wake the loop once per message. Where the system has an interest in out-of-band
    /// data, which stdio never carries, it is used instead: only the peer's end is then reported.
    fn at_rest(&self) -> Interest {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if matches!(self.0, Way::Socket(_)) {
            return Interest::PRIORITY;
        }
        Interest::WRITABLE
    }

    /// Writes once without blocking.
    pub(in crate::io) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            let outcome = match (&mut self.0, slices) {
                (Way::Own(fd), [one]) => rustix::io::write(fd, one),
                (Way::Own(fd), many) => rustix::io::writev(fd, many),
                (Way::Socket(fd), [one]) => send(fd, one, SOCKET_FLAGS),
                (Way::Socket(fd), many) => {
                    sendmsg(fd, many, &mut SendAncillaryBuffer::default(), SOCKET_FLAGS)
                }
                (Way::Thread(writer), slices) => {
                    return slices.first().map_or(Ok(0), |first| writer.write(first));
                }
            };
            match outcome {
                Err(Errno::INTR) => {}
                outcome => return Ok(outcome?),
            }
        }
    }

    /// Whether all accepted bytes have left this process.
    ///
    /// # Errors
    /// The failure that stopped the writing.
    pub(in crate::io) fn is_flushed(&self) -> io::Result<bool> {
        match &self.0 {
            Way::Thread(writer) => writer.is_flushed(),
            _ => Ok(true),
        }
    }
}

const SOCKET_FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// A file that blocks even when another holder has made the open file non-blocking: "try again" then
/// means to wait, not the end.
struct Patient(File);

impl Patient {
    fn wait(&self, flags: PollFlags) -> io::Result<()> {
        match poll(&mut [PollFd::new(&self.0, flags)], None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(PollFlags::IN)?
                }
                outcome => return outcome,
            }
        }
    }
}

impl Write for Patient {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(from) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(PollFlags::OUT)?
                }
                outcome => return outcome,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
