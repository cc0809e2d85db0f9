//! HTTP/1.1 by hand: what is sent is what a test says, well-formed or not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// No test waits longer for anything.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// One answer of the server.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map_or("", |(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The messages of an event stream.
    pub fn events(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), "text/event-stream", "{self:?}");
        let lines = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// A connection to a server.
pub struct Wire(BufReader<TcpStream>);

impl Wire {
    pub fn open(to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    /// From one of this machine's own addresses: another source than the usual one.
    pub fn open_from(from: [u8; 4], to: SocketAddr) -> Self {
        use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
        let stream = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&stream, &SocketAddr::from((from, 0))).unwrap();
        connect(&stream, &to).unwrap();
        let stream = TcpStream::from(stream);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// Whether it could be sent: not when the server has closed the connection.
    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.0.get_mut().write_all(bytes).is_ok()
    }

    /// So many bytes of whatever comes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// An answer as it comes, head and chunks, to the end of its last.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while !all.ends_with(b"\r\n0\r\n\r\n") {
            all.push(self.bytes(1)[0]);
        }
        all
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        // Where the connection ends, or is reset, so does the line.
        let _ = self.0.read_line(&mut line);
        line.trim_end().to_owned()
    }

    fn head(&mut self) -> (u16, Vec<(String, String)>) {
        let status = self.line();
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else {
                return (status.unwrap_or(0), headers);
            };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
    }

    /// One chunk of a body that comes in chunks; empty at its end.
    pub fn chunk(&mut self) -> String {
        let len = usize::from_str_radix(&self.line(), 16).unwrap();
        let mut chunk = vec![0; len];
        self.0.read_exact(&mut chunk).unwrap();
        self.line();
        String::from_utf8(chunk).unwrap()
    }

    /// The head of an answer whose body goes on.
    pub fn begin(&mut self) -> Answer {
        let (status, headers) = self.head();
        let body = String::new();
        Answer {
            status,
            headers,
            body,
        }
    }

    pub fn answer(&mut self) -> Answer {
        let mut answer = self.begin();
        if answer.header("transfer-encoding") == "chunked" {
            while let Some(chunk) = Some(self.chunk()).filter(|chunk| !chunk.is_empty()) {
                answer.body += &chunk;
            }
        } else {
            let len = answer.header("content-length").parse().unwrap_or(0);
            let mut body = vec![0; len];
            self.0.read_exact(&mut body).unwrap();
            answer.body = String::from_utf8(body).unwrap();
        }
        answer
    }

    /// Ends the connection at once, so that its port is free again: a reset, not an end.
    pub fn break_off(self) {
        let linger = Some(Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(self.0.get_ref(), linger).unwrap();
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0) | Err(_))
    }
}

/// The envelope of 2026-07-28.
pub fn envelope(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// A request with its envelope.
pub fn request(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    if params.get("_meta").is_none() {
        params["_meta"] = envelope(json!({}));
    }
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// The standard headers of a message.
pub fn headers(message: &Value) -> Vec<(&'static str, String)> {
    let params = &message["params"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut headers = vec![
        ("Host", "localhost".to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("Accept", "application/json, text/event-stream".to_owned()),
        ("MCP-Protocol-Version", "2026-07-28".to_owned()),
        ("Mcp-Method", text(&message["method"])),
    ];
    let name = if params["uri"].is_string() {
        &params["uri"]
    } else {
        &params["name"]
    };
    if name.is_string() {
        headers.push(("Mcp-Name", text(name)));
    }
    headers
}

/// A whole POST.
pub fn post(headers: &[(&str, String)], body: &str) -> Vec<u8> {
    let mut head = "POST /mcp HTTP/1.1\r\n".to_owned();
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Sends a message with its headers on a connection of its own.
pub fn ask(to: SocketAddr, message: &Value) -> Answer {
    let mut wire = Wire::open(to);
    wire.send(&post(&headers(message), &message.to_string()));
    wire.answer()
}
