//! An authorization server: its metadata, its keys, and its answers about tokens.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::case;
use super::mint::Keys;

/// What it says at the moment.
#[derive(Clone, Default)]
struct State {
    down: bool,
    keys: Vec<String>,
    tokens: Map<String, Value>,
}

pub struct Authority {
    pub issuer: String,
    state: Arc<Mutex<State>>,
    asked: Arc<AtomicUsize>,
}

impl Authority {
    pub fn start(keys: &Arc<Keys>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let issuer = format!("http://{}", listener.local_addr()?);
        let state = Arc::new(Mutex::new(State {
            keys: keys.published(),
            ..State::default()
        }));
        let asked = Arc::new(AtomicUsize::new(0));
        let (own, count, keys, name) = (state.clone(), asked.clone(), keys.clone(), issuer.clone());
        // The thread ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = own.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let _ = answer(stream, &name, &state, &keys, &count);
            }
        });
        Ok(Self {
            issuer,
            state,
            asked,
        })
    }

    pub fn change(&self, change: &case::Authority) {
        if let Some(millis) = change.wait {
            thread::sleep(Duration::from_millis(millis));
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(down) = change.down {
            state.down = down;
        }
        if let Some(keys) = &change.keys {
            state.keys.clone_from(keys);
        }
        if let Some(tokens) = &change.tokens {
            state.tokens.clone_from(tokens);
        }
    }

    /// How often keys were fetched or a token was asked about.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn answer(
    mut stream: TcpStream,
    issuer: &str,
    state: &State,
    keys: &Keys,
    asked: &AtomicUsize,
) -> Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut request = Vec::new();
    let mut piece = [0; 16 << 10];
    let body_at = loop {
        let len = stream.read(&mut piece)?;
        request.extend_from_slice(&piece[..len]);
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let Some(end) = text.find("\r\n\r\n") else {
            if len == 0 {
                return Ok(());
            }
            continue;
        };
        let length = text.split("content-length:").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.trim().parse().ok());
        if request.len() >= end + 4 + length.unwrap_or(0) {
            break end + 4;
        }
    };
    let text = String::from_utf8_lossy(&request);
    let path = text.split(' ').nth(1).unwrap_or_default();
    let body = match path {
        "/jwks" | "/introspect" => {
            asked.fetch_add(1, Ordering::SeqCst);
            match path {
                "/jwks" => Some(json!({"keys": keys.jwks(&state.keys)})),
                _ => Some(introspect(
                    &text[..body_at],
                    &text[body_at..],
                    issuer,
                    state,
                )),
            }
        }
        "/.well-known/openid-configuration" => {
            Some(json!({"issuer": issuer, "jwks_uri": format!("{issuer}/jwks")}))
        }
        _ => None,
    };
    let status = match (&body, state.down) {
        (_, true) => "503 Service Unavailable",
        (None, false) => "404 Not Found",
        (Some(_), false) => "200 OK",
    };
    let body = body
        .filter(|_| !state.down)
        .map_or_else(String::new, |it| it.to_string());
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    Ok(())
}

/// The answer about a token, to the client `mcp` with the secret `s3cret:` alone.
fn introspect(head: &str, body: &str, issuer: &str, state: &State) -> Value {
    // "mcp:s3cret%3A"
    if !head.contains("Basic bWNwOnMzY3JldCUzQQ==") {
        return json!({"error": "invalid_client"});
    }
    let token = body.split('&').find_map(|pair| pair.strip_prefix("token="));
    let found = token.and_then(|token| state.tokens.get(token));
    let found = found.cloned().unwrap_or_else(|| json!({"active": false}));
    super::mint::filled(&found, issuer, None)
}
