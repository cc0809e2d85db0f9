//! The attacked server: its process, and what can be measured of it from outside.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::case::{Carrier, Setup};
use super::wire::{End, Wire};
use crate::process;

/// How long a server may take to start.
const START: Duration = Duration::from_secs(60);

/// The clients and keys of a server with a verifier.
const KEYS: &str = "honest:key-honest,alice:key-alice,bob:key-bob";
/// The secret that signs the tokens of `tokens.json`.
const SECRET: &str = "a secret that only tests of attacks use";
/// The daily calls of each client, for servers with a quota.
pub const QUOTA: &str = "3";
/// The same for servers that are called without end.
const LARGE_QUOTA: &str = "1000000000";

/// How long a server on pipes may run on once its input has ended.
const END: Duration = Duration::from_secs(60);
/// The line that `touch` writes to stderr.
const TOUCHED: &[u8] = b"touched";

/// The seconds in which a connection must begin, for servers with short deadlines: more than an honest
/// client takes on a busy machine, and less than a read of the answer waits.
const OPENING: &str = "2";

/// A running server. Dropping it ends it.
pub struct Target {
    child: Child,
    pub place: Place,
    /// Counts the lines of `touch` on the stderr of a server on pipes, until its end.
    touches: Option<JoinHandle<u64>>,
}

/// Where a server is reached.
#[derive(Clone, Debug)]
pub enum Place {
    Socket(SocketAddr),
    Path(PathBuf),
    /// Stdin and stdout: each connection is a process of its own.
    Pipe(Vec<String>, Setup),
}

impl Target {
    /// Starts the server of a command line, with this setup, on an address of that carrier.
    pub fn start(words: &[String], carrier: Carrier, setup: Setup) -> Result<Self> {
        let address = match carrier {
            Carrier::Http => "http://127.0.0.1:0/mcp".to_owned(),
            Carrier::Ws => "ws://127.0.0.1:0/mcp".to_owned(),
            Carrier::Tcp => "tcp:127.0.0.1:0".to_owned(),
            Carrier::Unix => {
                // A path that no other test uses, and a short one, because socket addresses are limited.
                let mut nonce = [0; 8];
                io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut nonce)?;
                let name = format!("mcpbolt-attacks-{:x}.sock", u64::from_ne_bytes(nonce));
                format!("unix:{}", std::env::temp_dir().join(name).display())
            }
            Carrier::Stdio => bail!("each connection on pipes is a process of its own"),
        };
        let mut child = command(words, setup)
            .arg(&address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", words[0]))?;
        let stderr = child.stderr.take().context("no stderr")?;
        let (said, hear) = mpsc::channel();
        thread::spawn(move || {
            let mut stderr = BufReader::new(stderr);
            let mut line = String::new();
            let _ = stderr.read_line(&mut line);
            let _ = said.send(line);
            // Later output must be read, or a full pipe would block the server.
            let _ = io::copy(&mut stderr, &mut io::sink());
        });
        let mut target = Self {
            child,
            place: Place::Path(PathBuf::new()),
            touches: None,
        };
        let line = hear.recv_timeout(START).context("the server is silent")?;
        target.place = place(&line)?;
        Ok(target)
    }

    /// Starts the server on pipes. Returns it and the connection.
    pub fn on_pipes(words: &[String], setup: Setup) -> Result<(Self, Wire)> {
        let mut child = command(words, setup)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let to = child.stdin.take().context("no pipe to the server")?;
        let from = child.stdout.take().context("no pipe from the server")?;
        let stderr = child.stderr.take().context("no stderr")?;
        let target = Self {
            child,
            place: Place::Pipe(words.to_vec(), setup),
            touches: Some(thread::spawn(move || {
                let lines = BufReader::new(stderr).split(b'\n').map_while(Result::ok);
                lines
                    .filter(|line| line.trim_ascii_end() == TOUCHED)
                    .count() as u64
            })),
        };
        Ok((target, Wire::new(End::Pipe(Some(to), from))?))
    }

    /// Waits for the end of a server on pipes whose input has ended. Returns how often `touch` ran.
    pub fn ended(mut self) -> Result<u64> {
        let until = Instant::now() + END;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            ensure!(
                Instant::now() < until,
                "the server runs on after the end of its input"
            );
            thread::sleep(Duration::from_millis(1));
        };
        ensure!(status.signal().is_none(), "the server crashed: {status}");
        let touches = self.touches.take().context("not a server on pipes")?;
        let counted = touches.join();
        counted.map_err(|_| anyhow!("the reader of stderr panicked"))
    }

    /// Whether the server still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The server's memory in bytes: now, and the peak since [`Self::forget_peak`].
    pub fn memory(&self) -> (u64, u64) {
        let mut all = (0, 0);
        for pid in process::tree(self.child.id()) {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            all.0 += kib(&status, "VmRSS:") * 1024;
            all.1 += kib(&status, "VmHWM:") * 1024;
        }
        all
    }

    /// Resets the peak to the current size.
    pub fn forget_peak(&self) {
        for pid in process::tree(self.child.id()) {
            // Some containers refuse this: the peak then covers the whole life of the process.
            let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
        }
    }

    /// The number of open descriptors.
    pub fn descriptors(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.child.id());
        fs::read_dir(folder).map_or(0, Iterator::count)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Once it is reaped, its id may be that of another process.
        if self.is_alive() {
            process::kill_tree(self.child.id());
            let _ = self.child.wait();
        }
        if let Place::Path(path) = &self.place {
            let _ = fs::remove_file(path);
        }
    }
}

impl Place {
    /// Opens another connection, from that local address if one is given.
    pub fn connect(&self, from: Option<&str>) -> Result<Wire> {
        match self {
            Self::Socket(to) => Wire::tcp(*to, from),
            Self::Path(path) => Wire::new(End::Unix(UnixStream::connect(path)?)),
            Self::Pipe(..) => bail!("a process has one connection on its pipes"),
        }
    }

    pub fn port(&self) -> u16 {
        match self {
            Self::Socket(address) => address.port(),
            _ => 0,
        }
    }
}

fn command(words: &[String], setup: Setup) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    match setup {
        Setup::Bare => command.env("MCP_ACTIONS", "0"),
        _ => command.env("MCP_TARGETS", "1"),
    };
    match setup {
        Setup::Keys => drop(command.env("MCP_KEYS", KEYS)),
        Setup::Tokens => drop(command.env("MCP_KEYS", KEYS).env("MCP_JWT", SECRET)),
        Setup::Quota => drop(command.env("MCP_QUOTA", QUOTA)),
        Setup::Guarded => drop(command.env("MCP_KEYS", KEYS).env("MCP_QUOTA", LARGE_QUOTA)),
        Setup::Hasty => drop(command.env("MCP_OPENING", OPENING)),
        Setup::Plain | Setup::Bare => {}
    }
    command
}

/// Parses the address that a server prints as the last word of its line.
fn place(line: &str) -> Result<Place> {
    let address = line.split_whitespace().last().unwrap_or_default();
    if let Some(path) = address.strip_prefix("unix:") {
        return Ok(Place::Path(path.into()));
    }
    let rest = address.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let rest = rest.trim_start_matches(':').trim_start_matches("//");
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let address = authority.parse();
    Ok(Place::Socket(address.with_context(|| {
        format!("the server said nothing of where it listens, but {line:?}")
    })?))
}

fn kib(status: &str, name: &str) -> u64 {
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix(name));
    let number = value.and_then(|value| value.trim().trim_end_matches(" kB").parse().ok());
    number.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_where_it_listens() {
        for (line, port) in [
            ("diagnostic listens on http://127.0.0.1:8000/mcp\n", 8000),
            ("x listens on ws://127.0.0.1:8001/mcp\n", 8001),
            ("x listens on tcp:127.0.0.1:8002\n", 8002),
            ("x listens on tcp:127.0.0.1:8003?framing=detect\n", 8003),
        ] {
            assert_eq!(place(line).unwrap().port(), port, "{line}");
        }
        assert!(place("").is_err());
    }
}
