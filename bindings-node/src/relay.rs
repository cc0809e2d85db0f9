//! Carries messages to and from a server over HTTP, without an engine connection on top.

use std::sync::Arc;

use mcpbolt::error::CarrierError;
use mcpbolt::io::http::{Relay, RelayEvent, RelayOptions, SendOptions};
use napi::bindgen_prelude::Function;
use napi_derive::napi;
use serde_json::json;

use crate::error::{Result, misuse};
use crate::inbox::{Event, Inbox};
use crate::kinds::Inbound;
use crate::link::{Link, Side};

/// JavaScript gets message numbers modulo this: it has few messages in progress at a time.
const NUMBERS: u64 = i32::MAX as u64;

fn told(of: Option<u64>) -> u32 {
    of.map_or(0, |of| (of % NUMBERS) as u32 + 1)
}

/// Creates a wire to a server over HTTP.
#[napi(catch_unwind)]
pub fn wire_http(url: String, session: Option<String>, wake: Function<'_, (), ()>) -> Result<Link> {
    let inbox = Arc::new(Inbox::new(&wake)?);
    let options = RelayOptions {
        session,
        ends_session: false,
        ..RelayOptions::default()
    };
    let hearing = inbox.clone();
    let relay = Relay::open(&url, options, move |arrived| hear(&hearing, arrived));
    let relay = Arc::new(relay.map_err(misuse)?);
    let closing = relay.clone();
    Ok(Link::new(inbox, Side::Relay(relay), move || {
        closing.close()
    }))
}

fn hear(inbox: &Inbox, arrived: RelayEvent) {
    inbox.push(match arrived {
        RelayEvent::Message { of, message } => Event::Frame(told(of), message),
        RelayEvent::Bad(why) => Event::text(Inbound::Bad, why.to_string()),
        RelayEvent::Position { of, position } => {
            Event::row(Inbound::Position, told(of), 0, position)
        }
        RelayEvent::Session(name) => Event::text(Inbound::Session, name.unwrap_or_default()),
        RelayEvent::Done { of, outcome } => {
            Event::row(Inbound::Done, told(Some(of)), 0, failure(outcome))
        }
        RelayEvent::Ended => Event::text(Inbound::Ended, String::new()),
        _ => return,
    });
}

/// Why a message was not delivered, as JSON; empty if it was.
fn failure(outcome: std::result::Result<(), CarrierError>) -> String {
    match outcome {
        Ok(()) => String::new(),
        Err(why) => json!({ "message": why.why, "status": why.status }).to_string(),
    }
}

impl Link {
    fn relay(&self) -> Result<&Relay> {
        match &self.side {
            Side::Relay(relay) => Ok(relay),
            _ => Err(misuse("this link is not a wire over HTTP")),
        }
    }
}

#[napi]
impl Link {
    /// Sends a message over HTTP, with headers as names and values in turn; returns the number of its events.
    /// With `resume`, asks instead for the rest of an earlier stream, after that position.
    #[napi(catch_unwind)]
    pub fn carry(
        &self,
        message: String,
        headers: Vec<String>,
        resume: Option<String>,
    ) -> Result<u32> {
        let pairs = headers.chunks_exact(2);
        let headers = pairs.filter_map(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone())));
        let headers = headers.collect();
        let of = self.relay()?.send(message, SendOptions { headers, resume });
        Ok(told(Some(of)))
    }

    /// Ends the session on the server; returns the number of its events.
    #[napi(catch_unwind)]
    pub fn end_session(&self) -> Result<u32> {
        Ok(told(Some(self.relay()?.end_session())))
    }
}
