//! A client on HTTP that keeps its connection, and tells a lost call from one that was refused.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than anything takes here: a call without an answer by then hangs.
const HANGS: Duration = Duration::from_secs(60);

/// A response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub session: Option<String>,
    pub retry_after: Option<String>,
    pub body: String,
}

impl Response {
    /// The last message of the body, which may be one of several events.
    pub fn message(&self) -> Value {
        let mut events = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let last = events.next_back().unwrap_or(&self.body);
        serde_json::from_str(last).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        let message = self.message();
        let text = message["result"]["content"][0]["text"].as_str();
        text.unwrap_or_default().to_owned()
    }
}

/// A client at one address.
pub struct Client {
    place: String,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    /// `address` is one that the command has printed.
    pub fn at(address: &str) -> Self {
        let place = address.strip_prefix("http://").unwrap();
        let place = place.split('/').next().unwrap().to_owned();
        let connection = None;
        Self { place, connection }
    }

    /// Lets go of the connection, so that another worker may get the next request.
    pub fn hang_up(&mut self) {
        self.connection = None;
    }

    /// Sends a request. An error is a connection that broke off before its response was complete.
    pub fn send(&mut self, method: &str, headers: &str, body: &str) -> io::Result<Response> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let stream = TcpStream::connect(&self.place)?;
                stream.set_read_timeout(Some(HANGS))?;
                stream.set_nodelay(true)?;
                BufReader::new(stream)
            }
        };
        let (place, length) = (&self.place, body.len());
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {place}\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        connection.get_mut().write_all((head + body).as_bytes())?;
        let (response, stays) = read(&mut connection)?;
        self.connection = stays.then_some(connection);
        Ok(response)
    }

    /// Calls a tool of a server of 2026-07-28, without a session.
    pub fn call(&mut self, tool: &str) -> io::Result<Response> {
        self.call_with(tool, &json!({}))
    }

    /// The same, with what a further round of the call has.
    pub fn call_with(&mut self, tool: &str, round: &Value) -> io::Result<Response> {
        let headers = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        );
        let mut body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": {}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
            }},
        });
        for (name, value) in round.as_object().into_iter().flatten() {
            body["params"][name] = value.clone();
        }
        self.send("POST", &headers, &body.to_string())
    }

    /// Begins a session of 2025-06-18. Returns its headers.
    pub fn begin(&mut self) -> io::Result<String> {
        let body = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}},
                "clientInfo": {"name": "a", "version": "1"},
            },
        });
        let response = self.send("POST", "", &body.to_string())?;
        assert_eq!(response.status, 200, "{response:?}");
        let session = response.session.unwrap();
        let headers = format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
        let body = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let told = self.send("POST", &headers, &body.to_string())?;
        assert_eq!(told.status, 202, "{told:?}");
        Ok(headers)
    }

    /// Calls a tool in a session.
    pub fn call_in(&mut self, session: &str, tool: &str) -> io::Result<Response> {
        self.send("POST", session, &call(tool).to_string())
    }

    /// Sends a call in a session, and reads its messages one by one.
    pub fn open(&self, session: &str, tool: &str) -> Events {
        self.stream("POST", session, &call(tool).to_string())
    }

    /// Goes on with a stream of a session after an event of it.
    pub fn resume(&self, session: &str, after: &str) -> Events {
        self.stream("GET", &format!("{session}Last-Event-ID: {after}\r\n"), "")
    }

    fn stream(&self, method: &str, headers: &str, body: &str) -> Events {
        let stream = TcpStream::connect(&self.place).unwrap();
        stream.set_read_timeout(Some(HANGS)).unwrap();
        let (place, length) = (&self.place, body.len());
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {place}\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        (&stream).write_all((head + body).as_bytes()).unwrap();
        let lines = BufReader::new(stream);
        let id = String::new();
        Events { lines, id }
    }
}

fn call(tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

/// The messages of a stream of events.
pub struct Events {
    lines: BufReader<TcpStream>,
    /// The id of the last event that had one.
    pub id: String,
}

impl Events {
    /// The next message; `None` at the end.
    pub fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(id) = line.trim_end().strip_prefix("id: ") {
                id.clone_into(&mut self.id);
            }
            let data = line.trim_end().strip_prefix("data: ");
            if let Some(data) = data.filter(|data| !data.is_empty()) {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}

fn broken() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// Reads a response. Returns whether the connection stays open.
fn read(from: &mut BufReader<TcpStream>) -> io::Result<(Response, bool)> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Err(broken());
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let pairs = head.iter().filter_map(|line| line.split_once(": "));
        let found = pairs.filter(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned()).next()
    };
    let status = head[0].split(' ').nth(1).unwrap().parse().unwrap();
    let mut body = Vec::new();
    if header("transfer-encoding").is_some() {
        loop {
            let mut line = String::new();
            if from.read_line(&mut line)? == 0 {
                return Err(broken());
            }
            let length = usize::from_str_radix(line.trim_end(), 16).map_err(|_| broken())?;
            let mut chunk = vec![0; length + 2];
            from.read_exact(&mut chunk)?;
            if length == 0 {
                break;
            }
            body.extend(&chunk[..length]);
        }
    } else {
        let length = header("content-length").map_or(0, |length| length.parse().unwrap());
        body = vec![0; length];
        from.read_exact(&mut body)?;
    }
    let stays = header("connection").as_deref() != Some("close");
    let response = Response {
        status,
        session: header("mcp-session-id"),
        retry_after: header("retry-after"),
        body: String::from_utf8(body).unwrap(),
    };
    Ok((response, stays))
}
