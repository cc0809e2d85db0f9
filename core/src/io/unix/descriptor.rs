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

use crate::io::blocking::{ThreadReader, ThreadWriter};
use crate::io::ends::{ReadEnd, Way, WriteEnd};
use crate::io::wake::LoopWake;

/// A descriptor that is read and written without blocking.
#[derive(Debug)]
pub(in crate::io) struct Descriptor {
    fd: OwnedFd,
    /// A socket, whose open file is shared: each call passes `MSG_DONTWAIT`. Otherwise the open file is our
    /// own, and non-blocking.
    is_socket: bool,
}

const SOCKET_FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

impl Descriptor {
    fn own(fd: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
        let is_socket = false;
        Ok(Self { fd, is_socket })
    }

    pub fn register(&self, to: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        to.register(&mut SourceFd(&self.fd.as_raw_fd()), token, interest)
    }

    pub fn reregister(&self, at: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        at.reregister(&mut SourceFd(&self.fd.as_raw_fd()), token, interest)
    }

    pub fn deregister(&self, from: &Registry) {
        // Fails only when it was never registered.
        let _ = from.deregister(&mut SourceFd(&self.fd.as_raw_fd()));
    }

    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let outcome = match self.is_socket {
                false => rustix::io::read(&self.fd, &mut *into),
                true => recv(&self.fd, &mut *into, RecvFlags::DONTWAIT).map(|(n, _)| n),
            };
            match outcome {
                Err(Errno::INTR) => {}
                outcome => return Ok(outcome?),
            }
        }
    }

    pub fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let fd = &self.fd;
        loop {
            let outcome = match (self.is_socket, slices) {
                (false, [one]) => rustix::io::write(fd, one),
                (false, many) => rustix::io::writev(fd, many),
                (true, [one]) => send(fd, one, SOCKET_FLAGS),
                (true, many) => {
                    sendmsg(fd, many, &mut SendAncillaryBuffer::default(), SOCKET_FLAGS)
                }
            };
            match outcome {
                Err(Errno::INTR) => {}
                outcome => return Ok(outcome?),
            }
        }
    }

    /// The event to ask the poll for at an end that is written, while it is not blocked. A pipe reports room only
    /// after it was full. A socket reports room each time the peer reads, which would wake the loop once per
    /// message. Where the system has an interest in out-of-band data, which stdio never carries, it is used
    /// instead: only the peer's end is then reported.
    pub fn interest_at_rest(&self) -> Interest {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if self.is_socket {
            return Interest::PRIORITY;
        }
        Interest::WRITABLE
    }
}

impl<T> Way<T> {
    fn of_inherited(
        fd: OwnedFd,
        access: OFlags,
        thread: impl FnOnce(Patient) -> io::Result<T>,
    ) -> io::Result<Self> {
        let kind = FileType::from_raw_mode(fstat(&fd)?.st_mode);
        let is_socket = kind == FileType::Socket;
        let own = match kind {
            FileType::Fifo => reopen(fd.as_fd(), access).ok(),
            _ => None,
        };
        match own {
            Some(fd) => Ok(Self::Polled(Descriptor { fd, is_socket })),
            None if is_socket => Ok(Self::Polled(Descriptor { fd, is_socket })),
            None => thread(Patient(File::from(fd))).map(Self::Thread),
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

impl ReadEnd {
    /// Takes a descriptor whose open file others may share; its flags are not changed.
    ///
    /// # Errors
    /// When the descriptor is not open, or a thread is needed and cannot be started.
    pub fn inherited(fd: OwnedFd, wake: &Arc<LoopWake>) -> io::Result<Self> {
        let thread = |file| ThreadReader::spawn(file, wake.clone());
        Way::of_inherited(fd, OFlags::RDONLY, thread).map(Self)
    }

    /// Takes a descriptor whose open file only this process uses, and makes it non-blocking.
    ///
    /// # Errors
    /// When the descriptor is not open.
    pub fn own(fd: impl Into<OwnedFd>) -> io::Result<Self> {
        Descriptor::own(fd.into()).map(|fd| Self(Way::Polled(fd)))
    }
}

impl WriteEnd {
    /// Takes a descriptor whose open file others may share; its flags are not changed.
    ///
    /// # Errors
    /// When the descriptor is not open, or a thread is needed and cannot be started.
    pub fn inherited(fd: OwnedFd, wake: &Arc<LoopWake>) -> io::Result<Self> {
        let thread = |file| ThreadWriter::spawn(file, wake.clone());
        Way::of_inherited(fd, OFlags::WRONLY, thread).map(Self)
    }

    /// Takes a descriptor whose open file only this process uses, and makes it non-blocking.
    ///
    /// # Errors
    /// When the descriptor is not open.
    pub fn own(fd: impl Into<OwnedFd>) -> io::Result<Self> {
        Descriptor::own(fd.into()).map(|fd| Self(Way::Polled(fd)))
    }
}

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
