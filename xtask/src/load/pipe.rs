//! Sends and receives lines over a pair of pipes at the same time, without blocking on either.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::{ChildStdin, ChildStdout};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::carrier::Carrier;

/// The size of one read, in bytes.
const READ_BYTES: usize = 256 * 1024;

/// Our ends of the server's two pipes.
pub struct Pipe {
    to: ChildStdin,
    from: ChildStdout,
    /// `out[sent..]` is still to be written.
    out: Vec<u8>,
    sent: usize,
    /// `input[..filled]` begins with an unfinished line; `input[..searched]` contains no newline.
    input: Vec<u8>,
    filled: usize,
    searched: usize,
}

impl Pipe {
    pub fn new(to: ChildStdin, from: ChildStdout) -> Result<Self> {
        for end in [to.as_fd(), from.as_fd()] {
            let flags = OFlag::from_bits_retain(fcntl(end, FcntlArg::F_GETFL)?);
            fcntl(end, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        }
        Ok(Self {
            to,
            from,
            out: Vec::new(),
            sent: 0,
            input: vec![0; READ_BYTES],
            filled: 0,
            searched: 0,
        })
    }

    /// Drops the server's output and returns its input, which the caller closes by dropping it.
    pub fn into_input(self) -> ChildStdin {
        self.to
    }

    fn write(&mut self) -> Result<()> {
        while self.sent < self.out.len() {
            match self.to.write(&self.out[self.sent..]) {
                Ok(0) => bail!("the server takes no more input"),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("writing to the server"),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        if self.input.len() - self.filled < READ_BYTES / 4 {
            self.input.resize(self.input.len() * 2, 0);
        }
        match self.from.read(&mut self.input[self.filled..]) {
            Ok(0) => bail!("the server closed its output"),
            Ok(count) => self.filled += count,
            Err(error)
                if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => {}
            Err(error) => return Err(error).context("reading from the server"),
        }
        Ok(())
    }

    fn deliver(&mut self, on: &mut dyn FnMut(&[u8])) {
        let mut start = 0;
        while let Some(at) = memchr::memchr(b'\n', &self.input[self.searched..self.filled]) {
            let end = self.searched + at;
            on(&self.input[start..end]);
            start = end + 1;
            self.searched = start;
        }
        if start > 0 {
            self.input.copy_within(start..self.filled, 0);
            self.filled -= start;
        }
        self.searched = self.filled;
    }
}

impl Carrier for Pipe {
    fn queue(&mut self, write: &mut dyn FnMut(&mut Vec<u8>)) {
        write(&mut self.out);
        self.out.push(b'\n');
    }

    fn turn(&mut self, wait: Duration, on: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.write()?;
        let mut ends = [
            PollFd::new(self.from.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.to.as_fd(), PollFlags::POLLOUT),
        ];
        let watched = if self.out.is_empty() { 1 } else { 2 };
        let wait = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
        match poll(&mut ends[..watched], wait) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).context("waiting for the server"),
        }
        self.write()?;
        self.read()?;
        self.deliver(on);
        Ok(())
    }
}
