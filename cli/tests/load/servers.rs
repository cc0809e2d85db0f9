//! Servers for the tests: examples of this crate.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The path of a built example.
pub fn example(name: &str) -> String {
    let command = PathBuf::from(env!("CARGO_BIN_EXE_mcpbolt"));
    let path = command.with_file_name("examples").join(name);
    path.to_str().unwrap().to_owned()
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A process that listens at an address; ends when dropped.
pub struct Listening {
    process: Child,
    pub address: String,
}

impl Listening {
    /// The example `workloads` at an address.
    pub fn workloads(address: &str) -> Self {
        let mut command = Command::new(example("workloads"));
        command
            .arg(address)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(process.stderr.take().unwrap());
        said.read_line(&mut line).unwrap();
        // The rest is read, so that the server can write it.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let address = line
            .trim()
            .strip_prefix("listening on ")
            .unwrap()
            .to_owned();
        Self { process, address }
    }

    /// A proxy before a server, on HTTP.
    pub fn proxy(to: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpbolt"));
        command.args(["proxy", "http://127.0.0.1:0/mcp", "--to", to]);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(process.stdout.as_mut().unwrap());
        said.read_line(&mut line).unwrap();
        let address = line.trim().to_owned();
        Self { process, address }
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Refuses requests, and keeps the `Authorization` header of the first one.
pub struct Refusing {
    pub address: String,
    heard: std::sync::mpsc::Receiver<String>,
}

impl Refusing {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (hears, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut given = String::new();
                let mut line = String::new();
                while stream.read_line(&mut line).unwrap() > 2 {
                    let field = line.trim().to_ascii_lowercase();
                    if let Some(value) = field.strip_prefix("authorization: ") {
                        given = value.to_owned();
                    }
                    line.clear();
                }
                let refusal =
                    "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.get_mut().write_all(refusal.as_bytes());
                let _ = hears.send(given);
            }
        });
        Self { address, heard }
    }

    /// The header of the first request; empty if it had none.
    pub fn authorization(&self) -> String {
        self.heard
            .recv_timeout(std::time::Duration::from_secs(60))
            .unwrap()
    }
}

/// Passes requests on to a server on HTTP, but refuses the endpoint of Streamable HTTP, as servers of 2024-11-05 do.
pub struct SseOnly {
    pub address: String,
    streams: Arc<AtomicUsize>,
}

impl SseOnly {
    pub fn before(address: &str) -> Self {
        let server = address.strip_prefix("http://").unwrap();
        let server = server.strip_suffix("/mcp").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/mcp", listener.local_addr().unwrap());
        let streams = Arc::new(AtomicUsize::new(0));
        let opened = streams.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (server, opened) = (server.clone(), opened.clone());
                std::thread::spawn(move || pass(stream.unwrap(), &server, &opened));
            }
        });
        Self { address, streams }
    }

    /// How many streams were opened.
    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }
}

fn pass(mut client: TcpStream, server: &str, opened: &AtomicUsize) {
    let mut begin = vec![0; 64 << 10];
    let count = client.read(&mut begin).unwrap_or_default();
    begin.truncate(count);
    if begin.starts_with(b"POST /mcp HTTP") {
        let refusal = "HTTP/1.1 405 Method Not Allowed\r\nallow: GET\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let _ = client.write_all(refusal.as_bytes());
        return;
    }
    opened.fetch_add(usize::from(begin.starts_with(b"GET")), Ordering::Relaxed);
    let mut server = TcpStream::connect(server).unwrap();
    let _ = server.write_all(&begin);
    let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    let _ = std::io::copy(&mut client, &mut server);
}
