//! Messages as HTTP requests on persistent connections. Each is stateless or, in the revision with a
//! handshake, belongs to the one session that the server has created.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem::find;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::carrier::Carrier;
use super::wire::{Revision, shorten};

/// The size of one read, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// Connections to a server on this machine: as many as there are concurrent requests.
pub struct Http {
    port: u16,
    revision: Revision,
    /// The session id from the server.
    session: Option<String>,
    connections: Vec<Connection>,
    /// Messages that wait for a connection.
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
    pub fn new(port: u16, revision: Revision) -> Self {
        Self {
            port,
            revision,
            session: None,
            connections: Vec::new(),
            waiting: Vec::new(),
        }
    }

    /// Waits until the server listens.
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

    /// The head of a request, without `Content-Length`.
    fn head(&self, body: &[u8]) -> String {
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
            self.port
        );
        let mut add = |name, value: &str| {
            if !value.is_empty() {
                let _ = write!(head, "{name}: {value}\r\n");
            }
        };
        let version = self.revision.name();
        match (self.revision, &self.session) {
            (Revision::Envelope, _) => {
                add("MCP-Protocol-Version", version);
                add("Mcp-Method", between(body, b"\"method\":\""));
                add("Mcp-Name", between(body, b"\"params\":{\"name\":\""));
            }
            (Revision::Handshake, Some(session)) => {
                add("MCP-Protocol-Version", version);
                add("Mcp-Session-Id", session);
            }
            (Revision::Handshake, None) => {}
        }
        head
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
            let head = self.head(&body);
            self.connections[at].ask(&head, &body);
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
            if let Some(session) = connection.read(on)? {
                self.session = Some(session);
            }
        }
        Ok(())
    }
}

impl Connection {
    fn ask(&mut self, head: &str, body: &[u8]) {
        let _ = write!(self.out, "{head}Content-Length: {}\r\n\r\n", body.len());
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

    /// Passes a complete answer to `on`. Returns the session id in it.
    fn read(&mut self, on: &mut dyn FnMut(&[u8])) -> Result<Option<String>> {
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
        let Some(answer) = Answer::read(&self.input)? else {
            return Ok(None);
        };
        // Notifications get an empty answer.
        if !answer.body.is_empty() {
            on(&answer.body);
        }
        ensure!(answer.len == self.input.len(), "two answers to one request");
        let session = answer.session;
        self.input.clear();
        self.is_busy = false;
        Ok(session)
    }
}

/// The text after `words` up to the next quote; empty if `words` are not found.
fn between<'a>(body: &'a [u8], words: &[u8]) -> &'a str {
    let rest = find(body, words).map(|at| &body[at + words.len()..]);
    let text = rest.and_then(|rest| rest.split(|byte| *byte == b'"').next());
    std::str::from_utf8(text.unwrap_or_default()).unwrap_or_default()
}

/// A complete HTTP response.
#[derive(Debug, PartialEq)]
struct Answer<'a> {
    body: Cow<'a, [u8]>,
    session: Option<String>,
    /// Its length with its head, in bytes.
    len: usize,
}

impl<'a> Answer<'a> {
    /// `None` while it is incomplete.
    fn read(input: &'a [u8]) -> Result<Option<Self>> {
        let Some(end) = find(input, b"\r\n\r\n") else {
            return Ok(None);
        };
        let head = String::from_utf8_lossy(&input[..end]);
        let header = |name: &str| {
            let fields = head.lines().filter_map(|line| line.split_once(':'));
            let mut named = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name));
            named.next().map(|(_, value)| value.trim())
        };
        let rest = &input[end + 4..];
        let len = header("content-length").and_then(|len| len.parse().ok());
        let (body, len) = match (len, header("transfer-encoding")) {
            (Some(len), _) if rest.len() < len => return Ok(None),
            (Some(len), _) => (Cow::Borrowed(&rest[..len]), len),
            (None, Some("chunked")) if header("content-type") != Some("text/event-stream") => {
                let (body, len, is_whole) = chunks(rest)?;
                if !is_whole {
                    return Ok(None);
                }
                (Cow::Owned(body), len)
            }
            (None, _) => bail!("no answer in one piece: {}", shorten(&head)),
        };
        let session = header("mcp-session-id").map(str::to_owned);
        let len = end + 4 + len;
        Ok(Some(Self { body, session, len }))
    }
}

/// Decodes a chunked body as far as it has arrived. Returns the body, the bytes of input that it takes with
/// its framing, and whether it is complete.
pub fn chunks(input: &[u8]) -> Result<(Vec<u8>, usize, bool)> {
    let mut body = Vec::new();
    let mut at = 0;
    while let Some(end) = find(&input[at..], b"\r\n") {
        let size = std::str::from_utf8(&input[at..at + end])?;
        let size = usize::from_str_radix(size.trim(), 16).context("no length of a chunk")?;
        let begin = at + end + 2;
        let Some(chunk) = input.get(begin..begin + size + 2) else {
            break;
        };
        body.extend_from_slice(&chunk[..size]);
        at = begin + size + 2;
        if size == 0 {
            return Ok((body, at, true));
        }
    }
    Ok((body, at, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::wire;

    #[test]
    fn an_answer_is_whole_when_its_length_or_its_last_chunk_has_come() {
        let answers: [(&[u8], &[u8]); 3] = [
            (b"HTTP/1.1 200 OK\r\ncontent-Length: 2\r\nMcp-Session-Id: Ab\r\n\r\n{}", b"{}"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nMcp-Session-Id: Ab\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", b"{}"),
            (b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\nMcp-Session-Id: Ab\r\n\r\n0\r\n\r\n", b""),
        ];
        for (whole, body) in answers {
            for cut in 0..whole.len() {
                assert_eq!(Answer::read(&whole[..cut]).unwrap(), None, "{cut}");
            }
            let answer = Answer::read(whole).unwrap().unwrap();
            assert_eq!((&*answer.body, answer.len), (body, whole.len()));
            assert_eq!(answer.session.as_deref(), Some("Ab"));
        }
        assert!(Answer::read(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        let stream = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n";
        assert!(Answer::read(stream).is_err());
    }

    #[test]
    fn headers_say_what_a_message_is_about() {
        let call = wire::call(1, Revision::Envelope, "echo", "{}");
        assert_eq!(between(call.as_bytes(), b"\"method\":\""), "tools/call");
        let name = b"\"params\":{\"name\":\"";
        assert_eq!(between(call.as_bytes(), name), "echo");
        let list = wire::list(1, Revision::Envelope, None);
        assert_eq!(between(list.as_bytes(), name), "");
    }
}
