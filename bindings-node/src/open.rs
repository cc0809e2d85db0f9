//! A client of a server at an address.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::error::RequestError;
use mcpbolt::io::Address;
use mcpbolt::settings::{ConnectSettings, Milliseconds};
use napi::bindgen_prelude::{ClassInstance, Function};
use napi_derive::napi;
use serde_json::json;

use crate::client::Described;
use crate::error::{self, Failure, Result, misuse};
use crate::inbox::{EndReport, Event, Inbox};
use crate::json::read;
use crate::kinds::Inbound;
use crate::link::{Link, Side};
use crate::login::Login;
use crate::panics::{self, caught};
use crate::telemetry::Telemetry;
use crate::threads::spawn;

/// A connection, from its opening until JavaScript closes it.
#[derive(Default)]
enum Opening {
    #[default]
    Pending,
    Open(Client),
    Closed,
}

/// Starts to connect to a server at an address, on HTTP with these logins.
#[napi(catch_unwind)]
pub fn open_address(
    settings: String,
    trace: bool,
    telemetry: Option<ClassInstance<'_, Telemetry>>,
    address: String,
    options: String,
    login: Option<ClassInstance<'_, Login>>,
    wake: Function<'_, (), ()>,
) -> Result<Link> {
    let address: Address = address.parse().map_err(misuse)?;
    let options: ConnectSettings<Milliseconds> = read(&options)?;
    let mut options = options.connect().map_err(error::io)?;
    if let Some(login) = login {
        if matches!(address, Address::WebSocket(_)) {
            return Err(misuse(
                "logins are for http: and https: addresses; for WebSocket, pass a token as auth",
            ));
        }
        options.http.authorization = Some(login.authorization());
    }
    let telemetry = telemetry.as_deref();
    opening(&settings, trace, telemetry, &wake, async move |builder| {
        builder.open(&address, options).await
    })
}

/// Starts to open a connection by `open`.
pub fn opening<F>(
    settings: &str,
    trace: bool,
    telemetry: Option<&Telemetry>,
    wake: &Function<'_, (), ()>,
    open: F,
) -> Result<Link>
where
    F: AsyncFnOnce(ClientBuilder) -> io::Result<Client> + Send + 'static,
{
    let inbox = Arc::new(Inbox::new(wake)?);
    // The failure of a client that never opened is reported below.
    let report = |opened: &Arc<OnceLock<Client>>| {
        let opened = opened.clone();
        Some(EndReport::when(&inbox, move || opened.get().is_some()))
    };
    let described = Described::new(settings, trace, telemetry, &inbox, report)?;
    let state = Arc::new(Mutex::new(Opening::Pending));
    let closing = state.clone();
    let link = Link::new(inbox.clone(), Side::Client(described.asker), move || {
        let state = std::mem::replace(&mut *lock(&closing), Opening::Closed);
        if let Opening::Open(client) = state {
            client.handle().close();
        }
    });
    spawn("mcpbolt-open", move || {
        let opened = caught(|| {
            panics::point("open");
            block_on(open(described.builder))
        });
        match opened.unwrap_or_else(|panic| Err(panic.into())) {
            Ok(client) => {
                let mut state = lock(&state);
                if matches!(*state, Opening::Pending) {
                    *state = Opening::Open(client);
                }
            }
            Err(why) => inbox.push(Event::text(Inbound::Ended, failure(&why))),
        }
    })?;
    Ok(link)
}

fn lock(state: &Mutex<Opening>) -> std::sync::MutexGuard<'_, Opening> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why the connection failed, as JSON.
fn failure(why: &io::Error) -> String {
    let inner = why.get_ref();
    let known = inner.and_then(|why| why.downcast_ref::<RequestError>());
    let failure = match known {
        Some(known) => Failure::of_request(known),
        None => Failure::new("ERR_MCP_IO", why),
    };
    json!({ "failure": failure }).to_string()
}

/// The words of the command that an address names; `None` for an address without a command.
#[napi(catch_unwind)]
pub fn command_of(address: String) -> Result<Option<Vec<String>>> {
    match address.parse().map_err(misuse)? {
        Address::Stdio(words) if words.is_empty() => Err(misuse(
            "name the command of the server, as in stdio:COMMAND ARGS",
        )),
        Address::Stdio(words) => Ok(Some(words)),
        _ => Ok(None),
    }
}
