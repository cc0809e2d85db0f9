//! A client in a process of its own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use futures::executor::block_on;
use mcpbolt_oauth::store::{CredentialStore, FileStore, KeyLock, Stored};
use mcpbolt_oauth::tokens::{self, Refresh, TokenResponse, Tokens};

/// The steps of a refresh at which a process may die, and whether that costs the login.
pub const STEPS: [(&str, bool); 5] = [
    ("locked", false),
    ("sent", true),
    ("answered", true),
    ("kept", false),
    ("released", false),
];

const ROLE: &str = "MCPBOLT_REFRESHES";

pub struct Process(Child);

impl Process {
    pub fn start(folder: &Path, port: u16, login: &str, dies_at: Option<&str>) -> Self {
        let role = format!("{port} {login} {}", dies_at.unwrap_or("-"));
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::a_client", "--nocapture", "--quiet"])
            .env(ROLE, role)
            .env("MCPBOLT_CREDENTIALS", folder.join("credentials"))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn();
        Self(child.unwrap())
    }

    pub fn wait(mut self) -> ExitStatus {
        self.0.wait().unwrap()
    }

    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Ends a process that a failing test leaves behind.
impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

/// What each process runs.
#[test]
fn a_client() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let mut words = role.split(' ');
    let mut word = || words.next().unwrap().to_owned();
    let (port, login, dies_at) = (word().parse().unwrap(), word(), word());
    let store = Mortal(FileStore::of_the_user().unwrap(), dies_at == "kept");
    let store = Arc::new(store);
    Client {
        store,
        port,
        login,
        dies_at,
    }
    .run();
    std::process::exit(0);
}

/// Logs in on behalf of all.
pub fn log_in(folder: &Path, port: u16, login: &str) {
    let client = Client {
        store: Arc::new(FileStore::at(folder.join("credentials"))),
        port,
        login: login.to_owned(),
        dies_at: String::new(),
    };
    client.log_in();
}

fn die_if(now: bool) {
    if now {
        std::process::abort();
    }
}

/// A store in a process that may die right after it has kept something.
struct Mortal(FileStore, bool);

impl CredentialStore for Mortal {
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<String>> {
        self.0.load(key)
    }

    fn save<'a>(&'a self, key: &'a str, document: &'a str) -> Stored<'a, ()> {
        Box::pin(async move {
            self.0.save(key, document).await?;
            die_if(self.1);
            Ok(())
        })
    }

    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()> {
        self.0.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, KeyLock> {
        self.0.lock(key)
    }
}

struct Client {
    store: Arc<dyn CredentialStore>,
    port: u16,
    login: String,
    dies_at: String,
}

impl Client {
    fn log_in(&self) -> Tokens {
        let mut tokens = Tokens::new(self.ask("/login", "").unwrap(), 0);
        block_on(tokens::keep(&*self.store, &self.login, &mut tokens)).unwrap();
        tokens
    }

    fn run(&self) {
        let mut tokens = block_on(tokens::load(&*self.store, &self.login))
            .unwrap()
            .unwrap();
        loop {
            match self.post("/use", &tokens.access_token).0 {
                200 => {}
                410 => return,
                _ => tokens = self.refreshed(&tokens),
            }
        }
    }

    fn refreshed(&self, known: &Tokens) -> Tokens {
        let held = match block_on(tokens::refresh(&self.store, &self.login, known, 0)).unwrap() {
            Refresh::TakenOver(tokens) => return tokens,
            Refresh::LoginNeeded => return self.log_in(),
            Refresh::Ask(held) => held,
        };
        let used = held.refresh_token().to_owned();
        self.step("locked");
        if self.dies_at == "sent" {
            drop(self.send("/token", &used));
        }
        self.step("sent");
        let response = self.ask("/token", &used);
        self.step("answered");
        let Some(response) = response else {
            block_on(held.refused()).unwrap();
            return self.log_in();
        };
        let (tokens, kept) = block_on(held.granted(response, 0));
        kept.unwrap();
        self.step("released");
        self.post("/kept", &used);
        tokens
    }

    fn step(&self, step: &str) {
        die_if(self.dies_at == step);
    }

    fn ask(&self, path: &str, token: &str) -> Option<TokenResponse> {
        let (status, body) = self.post(path, token);
        (status == 200).then(|| serde_json::from_str(&body).unwrap())
    }

    fn post(&self, path: &str, token: &str) -> (u16, String) {
        let mut answer = String::new();
        self.send(path, token).read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, body.to_owned())
    }

    fn send(&self, path: &str, token: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
            token.len()
        );
        stream.write_all((head + token).as_bytes()).unwrap();
        stream
    }
}
