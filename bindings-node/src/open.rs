//! A client of a server at an address.

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
use crate::panics::{self, caught};

/// Connection options of a client.
#[napi(object)]
pub struct Credentials {
    /// Additional headers: names and values in turn.
    pub headers: Vec<String>,
    /// The type of authentication, and its arguments.
    pub auth: Option<Vec<String>>,
    /// Subprotocols that a WebSocket offers.
    pub protocols: Option<Vec<String>>,
    /// Time limit for the transport to connect, in ms.
    pub connect_ms: Option<f64>,
    /// Silence on a WebSocket after which the server is pinged, in ms.
    pub heartbeat_ms: Option<f64>,
    /// Additional CA certificates to trust, in PEM.
    pub certificates: Vec<String>,
    /// The client certificate and its key, in PEM.
    pub certificate: Option<Vec<String>>,
    /// The origins to which a message may be redirected.
    pub redirect_origins: Option<Vec<String>>,
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
        options.http.redirect_origins = self.redirect_origins.unwrap_or_default();
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

/// The state of a connection, from its opening until JavaScript closes it.
#[derive(Default)]
enum Kept {
    #[default]
    Opening,
    Open(Client),
    Given,
}

/// Starts to connect to a server at an address.
#[napi(catch_unwind)]
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
        let opened = caught(|| {
            panics::point("open");
            block_on(described.builder.open(&address, credentials))
        });
        match opened.unwrap_or_else(|panic| Err(panic.into())) {
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

/// Why the connection failed, as JSON.
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

/// The words of the command that an address names; `None` for an address without a command.
#[napi(catch_unwind)]
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
