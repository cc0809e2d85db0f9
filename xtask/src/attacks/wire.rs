//! A raw connection to a server, over any byte transport.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// How long a server may accept no bytes before sending gives up; the second limit holds once it has
/// answered something meanwhile.
const STALL: Duration = Duration::from_secs(1);
const STALL_ONCE_ANSWERED: Duration = Duration::from_millis(100);

/// Our end of a connection.
pub enum End {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// The server's stdin, until its end is sent, and its stdout.
    Pipe(Option<ChildStdin>, ChildStdout),
}

/// A connection, with its received but unused bytes.
pub struct Wire {
    end: End,
    pub input: Vec<u8>,
    /// The server will send nothing more.
    pub is_over: bool,
}

impl Wire {
    pub fn new(end: End) -> Result<Self> {
        match &end {
            End::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
            }
            End::Unix(stream) => stream.set_nonblocking(true)?,
            End::Pipe(to, from) => {
                let to = to.as_ref().map(AsFd::as_fd);
                for fd in to.into_iter().chain([from.as_fd()]) {
                    nix::fcntl::fcntl(
                        fd,
                        nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK),
                    )?;
                }
            }
        }
        Ok(Self {
            end,
            input: Vec::new(),
            is_over: false,
        })
    }

    /// Connects over TCP, from that local address if one is given.
    pub fn tcp(to: SocketAddr, from: Option<&str>) -> Result<Self> {
        let stream = match from {
            None => TcpStream::connect(to)?,
            Some(from) => connect_from(to, from)?,
        };
        Self::new(End::Tcp(stream))
    }

    fn fds(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        match &self.end {
            End::Tcp(stream) => (stream.as_fd(), stream.as_fd()),
            End::Unix(stream) => (stream.as_fd(), stream.as_fd()),
            End::Pipe(to, from) => (to.as_ref().map_or(from.as_fd(), AsFd::as_fd), from.as_fd()),
        }
    }

    /// Sends all bytes, and reads meanwhile. Returns whether the server took all.
    pub fn send(&mut self, mut bytes: &[u8]) -> Result<bool> {
        let mut progress = Instant::now();
        while !bytes.is_empty() {
            let sent = match &mut self.end {
                End::Tcp(stream) => stream.write(bytes),
                End::Unix(stream) => stream.write(bytes),
                End::Pipe(Some(to), _) => to.write(bytes),
                End::Pipe(None, _) => return Ok(false),
            };
            match sent {
                Ok(count) => {
                    bytes = &bytes[count..];
                    progress = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let longest = match self.input.is_empty() {
                        true => STALL,
                        false => STALL_ONCE_ANSWERED,
                    };
                    if progress.elapsed() > longest {
                        return Ok(false);
                    }
                    self.wait(true, Duration::from_millis(20))?;
                    self.take();
                }
                // The server has ended the connection: its earlier output may still be read.
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Ends the input of a server on pipes, and discards its output up to its end or that time.
    pub fn finish(&mut self, until: Instant) -> Result<()> {
        if let End::Pipe(to, _) = &mut self.end {
            *to = None;
        }
        while self.receive(until)? {
            self.input.clear();
        }
        Ok(())
    }

    /// Waits for input. Returns whether there is more than before.
    pub fn receive(&mut self, until: Instant) -> Result<bool> {
        let before = self.input.len();
        while self.input.len() == before && !self.is_over {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.wait(false, left)?;
            self.take();
        }
        Ok(self.input.len() > before)
    }

    fn wait(&self, writes: bool, longest: Duration) -> Result<()> {
        let (to, from) = self.fds();
        let mut ends = vec![PollFd::new(from, PollFlags::POLLIN)];
        if writes {
            ends.push(PollFd::new(to, PollFlags::POLLOUT));
        }
        let longest = PollTimeout::try_from(longest).unwrap_or(PollTimeout::MAX);
        match poll(&mut ends, longest) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error).context("waiting for the server"),
        }
    }

    /// Reads the available input.
    fn take(&mut self) {
        let mut chunk = [0; 64 << 10];
        loop {
            let read = match &mut self.end {
                End::Tcp(stream) => stream.read(&mut chunk),
                End::Unix(stream) => stream.read(&mut chunk),
                End::Pipe(_, from) => from.read(&mut chunk),
            };
            match read {
                Ok(0) => self.is_over = true,
                Ok(count) => {
                    self.input.extend_from_slice(&chunk[..count]);
                    if count == chunk.len() {
                        continue;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The connection was reset.
                Err(_) => self.is_over = true,
            }
            return;
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let End::Tcp(stream) = &self.end {
            // The other side may have shut the connection down before.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Connects from another loopback address.
pub fn connect_from(to: SocketAddr, from: &str) -> Result<TcpStream> {
    let SocketAddr::V4(to) = to else {
        anyhow::bail!("{to} is not reached from {from}");
    };
    let fd = socket(
        AddressFamily::Inet,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    let from: std::net::Ipv4Addr = from.parse()?;
    bind(
        fd.as_raw_fd(),
        &SockaddrIn::from(std::net::SocketAddrV4::new(from, 0)),
    )?;
    connect(fd.as_raw_fd(), &SockaddrIn::from(to))?;
    Ok(TcpStream::from(fd))
}
