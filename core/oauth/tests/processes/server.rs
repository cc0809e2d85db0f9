//! An authorization server with rotating refresh tokens, and a resource whose access tokens end quickly.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

/// How often an access token may be used; then it has ended.
const USES: u64 = 10;

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub logins: u64,
    pub refreshes: u64,
    /// Accepted uses of access tokens.
    pub uses: u64,
    /// Refresh tokens that were used a second time, each of which ended its login.
    pub reused: u64,
    /// Those whose first answer had been kept.
    pub reused_after_kept: u64,
}

#[derive(Default)]
struct State {
    seen: Seen,
    /// The uses that are left of each access token that has not ended.
    access: HashMap<String, u64>,
    /// The login of each refresh token, and whether it has been used.
    refresh: HashMap<String, (u64, bool)>,
    ended: Vec<u64>,
    /// Refresh tokens whose successor was kept.
    kept: Vec<String>,
    /// Number of refreshes after which the resource tells its clients to stop.
    until: u64,
    next: u64,
}

pub struct Server {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let state = Arc::clone(&shared);
                // A client that is killed breaks its connection.
                std::thread::spawn(move || serve(&stream.unwrap(), &state));
            }
        });
        Self { port, state }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Clients go on until there have been that many refreshes.
    pub fn until(&self, refreshes: u64) {
        self.state().until = refreshes;
    }

    pub fn seen(&self) -> Seen {
        self.state().seen.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

fn serve(stream: &TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut token = vec![0; length];
    reader.read_exact(&mut token).ok()?;
    let token = String::from_utf8(token).ok()?;
    let (status, body) = state.lock().unwrap().answer(&path, &token);
    let mut stream = stream;
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).ok()
}

impl State {
    fn answer(&mut self, path: &str, token: &str) -> (u16, String) {
        match path {
            "/login" => {
                self.seen.logins += 1;
                (200, self.grant(self.seen.logins))
            }
            "/token" => self.refresh(token),
            "/kept" => {
                self.kept.push(token.to_owned());
                (200, String::new())
            }
            _ if self.seen.refreshes >= self.until => (410, String::new()),
            _ => match self.access.get_mut(token) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    self.seen.uses += 1;
                    (200, String::new())
                }
                _ => (401, String::new()),
            },
        }
    }

    fn refresh(&mut self, token: &str) -> (u16, String) {
        let Some((login, is_used)) = self.refresh.get_mut(token) else {
            return (400, "invalid_grant".into());
        };
        let login = *login;
        if std::mem::replace(is_used, true) {
            self.seen.reused += 1;
            self.seen.reused_after_kept += u64::from(self.kept.iter().any(|one| one == token));
            self.ended.push(login);
        }
        if self.ended.contains(&login) {
            return (400, "invalid_grant".into());
        }
        self.seen.refreshes += 1;
        (200, self.grant(login))
    }

    fn grant(&mut self, login: u64) -> String {
        self.next += 1;
        let (access, refresh) = (
            format!("access-{}", self.next),
            format!("refresh-{}", self.next),
        );
        self.access.insert(access.clone(), USES);
        self.refresh.insert(refresh.clone(), (login, false));
        format!(
            r#"{{"access_token":"{access}","token_type":"Bearer","expires_in":3600,"refresh_token":"{refresh}"}}"#
        )
    }
}
