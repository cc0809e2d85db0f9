//! The control socket between a supervisor and a worker.
//!
//! | from | what | meaning |
//! |---|---|---|
//! | supervisor | one byte and the key that the workers share, with descriptors | the listening socket, then the worker's private one |
//! | worker | [`READY`] | it accepts connections |
//! | supervisor | [`REPLACED`] | another worker has taken over: accept no more, and take your time |
//! | supervisor | end of stream | end |

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::fs::fstat;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

pub const READY: u8 = b'r';
pub const REPLACED: u8 = b'l';

/// The environment variable that makes a process a worker: the process id of its supervisor, its number, the
/// [`identity`] of its control socket, and the folder of the private sockets, with a space between them.
pub const VARIABLE: &str = "MCPBOLT_WORKER";

/// What the workers of a supervisor share.
pub type Key = [u8; 32];

/// The byte that comes with the descriptors.
const SOCKETS: u8 = b's';

/// The device and the inode of a socket, by which a worker is told from the programs that it starts: these inherit the
/// variable, but not the socket. systemd's `JOURNAL_STREAM` has the same form.
///
/// # Errors
/// When the descriptor is not open.
pub fn identity(socket: impl AsFd) -> io::Result<String> {
    let about = fstat(socket)?;
    Ok(format!("{}:{}", about.st_dev, about.st_ino))
}

/// Hands over the listening socket and the private one, and a key.
pub fn send(to: &UnixStream, sockets: [BorrowedFd<'_>; 2], key: &Key) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(&sockets));
    let text = [IoSlice::new(&[SOCKETS]), IoSlice::new(key)];
    sendmsg(to.as_fd(), &text, &mut rights, SendFlags::empty())?;
    Ok(())
}

/// Takes the listening socket and the private one, and the key if the supervisor has one: it may be of an earlier version.
///
/// # Errors
/// When something else comes.
pub fn receive(from: &UnixStream) -> io::Result<([OwnedFd; 2], Option<Key>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut text = [0; 1 + size_of::<Key>()];
    // Close-on-exec is set below where the system cannot set it here.
    #[cfg(not(target_vendor = "apple"))]
    let flags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(target_vendor = "apple")]
    let flags = RecvFlags::empty();
    let received = recvmsg(
        from.as_fd(),
        &mut [IoSliceMut::new(&mut text)],
        &mut rights,
        flags,
    )?;
    let mut sockets = Vec::new();
    for message in rights.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            sockets.extend(fds);
        }
    }
    #[cfg(target_vendor = "apple")]
    for socket in &sockets {
        rustix::io::fcntl_setfd(socket, rustix::io::FdFlags::CLOEXEC)?;
    }
    let wrong = |_| io::Error::other("the supervisor handed over no sockets");
    let key = (received.bytes == text.len()).then(|| {
        let mut key = Key::default();
        key.copy_from_slice(&text[1..]);
        key
    });
    Ok((<[OwnedFd; 2]>::try_from(sockets).map_err(wrong)?, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sockets_and_a_key_arrive_and_nothing_else_does() {
        let (here, there) = UnixStream::pair().unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        send(&here, [one.as_fd(), other.as_fd()], &[7; 32]).unwrap();
        let (sockets, key) = receive(&there).unwrap();
        assert_eq!(key, Some([7; 32]));
        let [one, other] = sockets.map(UnixStream::from);
        io::Write::write_all(&mut &one, b"x").unwrap();
        let mut read = [0];
        io::Read::read_exact(&mut &other, &mut read).unwrap();
        assert_eq!(read, *b"x");
        io::Write::write_all(&mut &here, b"x").unwrap();
        assert!(receive(&there).is_err());
        drop(here);
        assert!(receive(&there).is_err());
    }
}
