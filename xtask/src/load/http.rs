//! Messages as requests of HTTP that stand alone, on connections that are kept.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem::find;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::carrier::Carrier;
use super::wire::{Revision, shorten};

/// Bytes that one read asks for.
const READ_BYTES: usize = 64 * 1024;

/// Connections to a server of this machine: as many as there are requests at once.
pub struct Http {
    port: u16,
    connections: Vec<Connection>,
    /// Messages for which there was no connection yet.
    waiting: Vec<Vec<u8>>,
}

struct Connection {
    stream: TcpStream,
    out: Vec<u8>,
    sent: usize,
    input: Vec<u8>,
    is_busy: bool,
}

impl Http {
    pub fn new(port: u16) -> Self {
        Self {
            port,
            connections: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Waits until somebody listens there.
    pub fn until_there(&mut self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            match self.connect() {
                Ok(connection) => {
                    self.connections.push(connection);
                    return Ok(());
                }
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_micros(500)),
            }
        }
    }

    fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        let stream = stream.context("nobody listens")?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Connection {
            stream,
            out: Vec::new(),
            sent: 0,
            input: Vec::new(),
            is_busy: false,
        })
    }

    fn hand_out(&mut self) -> Result<()> {
        while let Some(body) = self.waiting.pop() {
            let idle = self.connections.iter().position(|each| !each.is_busy);
            let at = match idle {
                Some(at) => at,
                None => {
                    let connection = self.connect()?;
                    self.connections.push(connection);
                    self.connections.len() - 1
                }
            };
            self.connections[at].ask(self.port, &body);
        }
        Ok(())
    }
}

impl Carrier for Http {
    fn queue(&mut self, write: &mut dyn FnMut(&mut Vec<u8>)) {
        let mut body = Vec::new();
        write(&mut body);
        self.waiting.push(body);
    }

    fn turn(&mut self, wait: Duration, on: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.hand_out()?;
        let mut busy = Vec::new();
        for connection in self.connections.iter_mut().filter(|each| each.is_busy) {
            connection.write()?;
            busy.push(connection);
        }
        let watched = |connection: &&mut Connection| match connection.out.is_empty() {
            true => PollFlags::POLLIN,
            false => PollFlags::POLLIN | PollFlags::POLLOUT,
        };
        let mut ends: Vec<_> = busy
            .iter()
            .map(|each| PollFd::new(each.stream.as_fd(), watched(each)))
            .collect();
        let wait = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
        match poll(&mut ends, wait) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).context("waiting for the server"),
        }
        let ready: Vec<_> = ends
            .iter()
            .map(|end| end.any().unwrap_or_default())
            .collect();
        drop(ends);
        for (connection, _) in busy.into_iter().zip(ready).filter(|(_, ready)| *ready) {
            connection.write()?;
            connection.read(on)?;
        }
        Ok(())
    }
}

impl Connection {
    fn ask(&mut self, port: u16, body: &[u8]) {
        let (version, len) = (Revision::Envelope.name(), body.len());
        let method = between(body, b"\"method\":\"");
        let _ = write!(
            self.out,
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: {version}\r\nMcp-Method: {method}\r\nContent-Length: {len}\r\n"
        );
        let name = between(body, b"\"params\":{\"name\":\"");
        if !name.is_empty() {
            let _ = write!(self.out, "Mcp-Name: {name}\r\n");
        }
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(body);
        self.is_busy = true;
    }

    fn write(&mut self) -> Result<()> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
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

    fn read(&mut self, on: &mut dyn FnMut(&[u8])) -> Result<()> {
        let filled = self.input.len();
        self.input.resize(filled + READ_BYTES, 0);
        let count = match self.stream.read(&mut self.input[filled..]) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(count) => count,
            Err(error)
                if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) =>
            {
                0
            }
            Err(error) => return Err(error).context("reading from the server"),
        };
        self.input.truncate(filled + count);
        let Some((head, body)) = answer(&self.input)? else {
            return Ok(());
        };
        on(&self.input[head..head + body]);
        ensure!(
            self.input.len() == head + body,
            "two answers to one request"
        );
        self.input.clear();
        self.is_busy = false;
        Ok(())
    }
}

/// What stands in a message behind those words, up to the next quote; empty if nothing does.
fn between<'a>(body: &'a [u8], words: &[u8]) -> &'a str {
    let rest = find(body, words).map(|at| &body[at + words.len()..]);
    let text = rest.and_then(|rest| rest.split(|byte| *byte == b'"').next());
    std::str::from_utf8(text.unwrap_or_default()).unwrap_or_default()
}

/// The lengths of an answer's head and body, once all of it is there.
fn answer(input: &[u8]) -> Result<Option<(usize, usize)>> {
    let Some(end) = find(input, b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&input[..end]).to_ascii_lowercase();
    let len = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let Some(len) = len.and_then(|len| len.trim().parse().ok()) else {
        bail!("no answer in one piece: {}", shorten(&head));
    };
    let head = end + 4;
    Ok((input.len() >= head + len).then_some((head, len)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::wire;

    #[test]
    fn an_answer_is_whole_when_its_length_has_come() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-Length: 2\r\n\r\n{}";
        for cut in 0..whole.len() {
            assert_eq!(answer(&whole[..cut]).unwrap(), None, "{cut}");
        }
        assert_eq!(answer(whole).unwrap(), Some((whole.len() - 2, 2)));
        assert!(answer(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn headers_say_what_a_message_is_about() {
        let call = wire::call(1, Revision::Envelope, "echo", "{}", false);
        assert_eq!(between(call.as_bytes(), b"\"method\":\""), "tools/call");
        let name = b"\"params\":{\"name\":\"";
        assert_eq!(between(call.as_bytes(), name), "echo");
        let list = wire::list(1, Revision::Envelope, None);
        assert_eq!(between(list.as_bytes(), name), "");
    }
}
