//! A client of a server wherever it is.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use mcpbolt::client::{Client, block_on};
use mcpbolt::error::RequestError;
use mcpbolt::io::{Address, Auth, ClientCertificate, ConnectOptions};
use napi::bindgen_prelude::Function;
use napi_derive::napi;

use crate::client::ClientOptions;
use crate::drain::quote;
use crate::error::{self, Result, error};
use crate::inbox::{Event, Farewell, Inbox};
use crate::link::{Link, Side, duration, spawn};

/// What a client brings to the opening of a connection.
#[napi(object)]
pub struct Credentials {
    /// Further headers: names and values in turn.
    pub headers: Vec<String>,
    /// Of which kind, and its words.
    pub auth: Option<Vec<String>>,
    /// Subprotocols that a WebSocket offers.
    pub protocols: Option<Vec<String>>,
    /// How long it may take until the carrier is there, in ms.
    pub connect_ms: Option<f64>,
    /// Silence on a WebSocket after which the server is pinged, in ms.
    pub heartbeat_ms: Option<f64>,
    /// Certificates that are trusted besides, in PEM.
    pub certificates: Vec<String>,
    /// What is shown to who asks for a certificate, and its key, in PEM.
    pub certificate: Option<Vec<String>>,
}

impl Credentials {
    fn read(self) -> Result<ConnectOptions> {
        let mut options = ConnectOptions::default();
        for pair in self.headers.chunks_exact(2) {
            if let [name, value] = pair {
                options.headers.push((name.clone(), value.clone()));
            }
        }
        let words = self.auth.unwrap_or_default();
        let words: Vec<_> = words.iter().map(|word| &**word).collect();
        options.auth = match words[..] {
            ["bearer", token] => Auth::Bearer(token.to_owned()),
            ["basic", user, password] => Auth::Basic {
                user: user.to_owned(),
                password: password.to_owned(),
            },
            ["apiKey", key] => Auth::api_key(key),
            ["apiKey", key, header] => Auth::ApiKey {
                header: header.to_owned(),
                key: key.to_owned(),
            },
            [] => Auth::None,
            _ => {
                return Err(error(
                    "ERR_MCP_MISUSE",
                    "auth is of type bearer, basic or apiKey",
                ));
            }
        };
        if let Some(protocols) = self.protocols {
            options.protocols = protocols;
        }
        if let Some(ms) = self.connect_ms {
            options.connect_timeout = duration(ms)?;
        }
        if let Some(ms) = self.heartbeat_ms {
            options.heartbeat = Some(duration(ms)?);
        }
        let pem = self.certificates.into_iter().map(String::into_bytes);
        options.root_certificates = pem.collect();
        if let Some([certificates, key]) = self.certificate.as_deref() {
            options.certificate = Some(ClientCertificate {
                certificates: certificates.clone().into_bytes(),
                key: key.clone().into_bytes(),
            });
        }
        Ok(options)
    }
}

/// The connection, from before it is there until JavaScript lets go of it.
#[derive(Default)]
enum Kept {
    #[default]
    Opening,
    Open(Client),
    Given,
}

/// Sets out for a server at an address.
#[napi]
pub fn open_address(
    options: ClientOptions,
    address: String,
    credentials: Credentials,
    wake: Function<'_, (), ()>,
) -> Result<Link> {
    let address: Address = address
        .parse()
        .map_err(|why| error("ERR_MCP_MISUSE", why))?;
    let credentials = credentials.read()?;
    let inbox = Arc::new(Inbox::new(&wake)?);
    let described = options.describe(&inbox, |opened| Some(Farewell::of(&inbox, opened)))?;
    let kept = Arc::new(Mutex::new(Kept::Opening));
    let letting_go = kept.clone();
    let link = Link::new(inbox.clone(), Side::Client(described.asker), move || {
        let kept = std::mem::replace(&mut *lock(&letting_go), Kept::Given);
        if let Kept::Open(client) = kept {
            client.handle().close();
        }
    });
    spawn("mcpbolt-open", move || {
        match block_on(described.builder.open(&address, credentials)) {
            Ok(client) => {
                let mut kept = lock(&kept);
                if matches!(*kept, Kept::Opening) {
                    *kept = Kept::Open(client);
                }
            }
            Err(why) => inbox.push(Event::Ended(failure(&why))),
        }
    })?;
    Ok(link)
}

fn lock(kept: &Mutex<Kept>) -> std::sync::MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why there is no connection, as JSON.
fn failure(why: &io::Error) -> String {
    let known = why
        .get_ref()
        .and_then(|why| why.downcast_ref::<RequestError>());
    let mut text = String::from("{\"failure\":");
    match known {
        Some(known) => error::request_json(&mut text, known),
        None => {
            text.push_str("{\"code\":\"ERR_MCP_IO\",\"message\":");
            quote(&mut text, &why.to_string());
            text.push('}');
        }
    }
    text.push('}');
    text
}

/// The words of the command that an address names; nothing when it names none.
#[napi]
pub fn command_of(address: String) -> Result<Option<Vec<String>>> {
    match address
        .parse()
        .map_err(|why| error("ERR_MCP_MISUSE", why))?
    {
        Address::Stdio(words) if words.is_empty() => {
            let why = "a client names the command of its server, as in stdio:COMMAND ARGS";
            Err(error("ERR_MCP_MISUSE", why))
        }
        Address::Stdio(words) => Ok(Some(words)),
        _ => Ok(None),
    }
}
