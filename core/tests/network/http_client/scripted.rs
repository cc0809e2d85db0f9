//! Servers that follow a script, over a bare socket: what they say need not be HTTP at all.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::io::http::HttpClientOptions;
use serde_json::{Value, json};

use super::PATIENCE;

/// One request, as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub verb: String,
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: Value,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| &**value)
    }

    /// The method of the message.
    pub fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// An answer to it.
    pub fn result(&self, result: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result})
    }

    pub fn error(&self, code: i64) -> Value {
        let error = json!({"code": code, "message": "no"});
        json!({"jsonrpc": "2.0", "id": self.body["id"], "error": error})
    }

    /// A result with the text of a tool.
    pub fn said(&self, text: &str) -> Value {
        self.result(json!({"content": [{"type": "text", "text": text}], "resultType": "complete"}))
    }
}

/// Where the script answers.
pub struct Wire(TcpStream);

impl Wire {
    /// The same socket, for who says more on it later.
    pub fn socket(&self) -> TcpStream {
        self.0.try_clone().unwrap()
    }

    /// Writes what need not be HTTP. That the client has gone is no concern.
    pub fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.0.write_all(bytes.as_ref());
    }

    /// The same; whether it could be written.
    pub fn writes(&mut self, text: &str) -> bool {
        self.0.write_all(text.as_bytes()).is_ok()
    }

    /// The same, as the last on its connection; an answer of HTTP says so.
    pub fn last(&mut self, answer: &str) {
        self.raw(answer.replacen("\r\n", "\r\nConnection: close\r\n", 1));
        self.close();
    }

    /// A whole answer.
    pub fn answer(&mut self, status: u16, headers: &str, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let len = body.len();
        self.raw(format!(
            "HTTP/1.1 {status} -\r\n{headers}Content-Length: {len}\r\n\r\n"
        ));
        self.raw(body);
    }

    pub fn json(&mut self, message: &Value) {
        self.answer(
            200,
            "Content-Type: application/json\r\n",
            message.to_string(),
        );
    }

    pub fn error(&mut self, status: u16, message: &Value) {
        self.answer(
            status,
            "Content-Type: application/json\r\n",
            message.to_string(),
        );
    }

    /// The head of a stream of events that ends with its connection.
    pub fn events(&mut self) {
        self.raw("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
    }

    /// Ends the connection.
    pub fn close(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }

    /// Waits until the client has gone.
    pub fn until_gone(&mut self) {
        self.0.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = [0; 64];
        assert!(matches!(self.0.read(&mut rest), Ok(0) | Err(_)), "{rest:?}");
    }
}

pub struct Scripted {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Scripted {
    pub fn serve(script: impl Fn(&Request, &mut Wire) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, script) = (Arc::<Mutex<Vec<_>>>::default(), Arc::new(script));
        let sees = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, script) = (sees.clone(), script.clone());
                thread::spawn(move || {
                    let stream = stream.unwrap();
                    stream.set_nodelay(true).unwrap();
                    let mut wire = Wire(stream.try_clone().unwrap());
                    let mut reader = BufReader::new(stream);
                    while let Some(request) = read(&mut reader) {
                        seen.lock().unwrap().push(request.clone());
                        script(&request, &mut wire);
                    }
                });
            }
        });
        Self { address, seen }
    }

    /// A server of 2026-07-28 but for what the script makes of other methods than discovery.
    pub fn stateless(script: impl Fn(&Request, &mut Wire) + Send + Sync + 'static) -> Self {
        Self::serve(move |request, wire| match request.method() {
            "server/discover" => wire.json(&request.result(json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
            }))),
            _ => script(request, wire),
        })
    }

    /// A server of the handshake era without sessions and streams but for what the script makes
    /// of other requests than the opening.
    pub fn handshake(
        version: &'static str,
        script: impl Fn(&Request, &mut Wire) + Send + Sync + 'static,
    ) -> Self {
        Self::serve(
            move |request, wire| match (&*request.verb, request.method()) {
                ("POST", "initialize") => wire.json(&request.result(opening(version))),
                ("POST", "notifications/initialized") => wire.answer(202, "", ""),
                _ => script(request, wire),
            },
        )
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    /// The requests with that method of the protocol.
    pub fn asked(&self, method: &str) -> Vec<Request> {
        let seen = self.seen().into_iter();
        seen.filter(|request| request.method() == method).collect()
    }

    pub fn open(&self, builder: ClientBuilder) -> Client {
        self.with(builder, HttpClientOptions::default())
    }

    pub fn with(&self, builder: ClientBuilder, options: HttpClientOptions) -> Client {
        block_on(builder.http(&self.url(), options)).unwrap()
    }
}

/// The result of `initialize`.
pub fn opening(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}, "resources": {"subscribe": true}, "logging": {}},
        "serverInfo": {"name": "scripted", "version": "1"},
    })
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    let mut next = || {
        line.clear();
        reader.read_line(&mut line).ok().filter(|len| *len > 0)?;
        Some(line.trim_end().to_owned())
    };
    let first = next()?;
    let mut words = first.split(' ').map(str::to_owned);
    let (verb, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let line = next()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let len = headers.iter().find(|(name, _)| name == "content-length");
    let len = len.map_or(0, |(_, len)| len.parse().unwrap());
    let mut body = vec![0; len];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Some(Request {
        verb,
        path,
        headers,
        body,
    })
}
