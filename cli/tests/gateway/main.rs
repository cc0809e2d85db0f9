//! `mcpbolt gateway`: files of settings, good and bad, and what it serves.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

#[path = "../../../core/tests/shared/collector.rs"]
mod collector;
mod files;
mod rules;
mod secrets;
mod serves;
#[path = "../serving/mod.rs"]
mod serving;
mod traces;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serving::Serving;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("mcpbolt-gateway-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file at once, so that no half of it is read.
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let (path, new) = (self.0.join(name), self.0.join("new"));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, &path).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The sample server of the examples, which adds.
fn adder() -> PathBuf {
    let command = PathBuf::from(env!("CARGO_BIN_EXE_mcpbolt"));
    command.with_file_name("examples").join("adder")
}

fn gateway(file: &Path) -> Serving {
    let file = file.to_str().unwrap();
    Serving::with(&["gateway", "http://127.0.0.1:0/mcp", "--config", file])
}

fn inspected(gateway: &Serving) -> String {
    String::from_utf8(gateway.run(&["inspect"]).stdout).unwrap()
}

/// Whether something comes to be so.
fn comes(is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    false
}

/// What a process says on stderr, which a thread reads.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    fn of(serving: &mut Serving) -> Self {
        let log = Self::default();
        let (errors, lines) = (serving.process.stderr.take().unwrap(), log.clone());
        std::thread::spawn(move || {
            let mut errors = BufReader::new(errors);
            let mut line = String::new();
            while errors.read_line(&mut line).is_ok_and(|read| read > 0) {
                lines.0.lock().unwrap().push_str(&plain(&line));
                line.clear();
            }
        });
        log
    }

    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    /// Where the status is shown.
    fn status(&self) -> String {
        let at = "status at=http://";
        assert!(comes(|| self.text().contains(at)), "{}", self.text());
        let text = self.text();
        let rest = text.split(at).nth(1).unwrap();
        rest.split('/').next().unwrap().to_owned()
    }
}

/// A line without colours.
fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |line, part| {
        line + part.split_once('m').map_or("", |(_, rest)| rest)
    })
}

/// Sends an HTTP request over a connection of its own. Returns the answer, with its head.
fn http(place: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(place).unwrap();
    let length = body.len();
    let request = format!("{head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn status(place: &str) -> serde_json::Value {
    let answer = http(
        place,
        &format!("GET /status.json HTTP/1.1\r\nHost: {place}"),
        "",
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    serde_json::from_str(body).unwrap()
}
