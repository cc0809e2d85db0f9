//! WebSocket at the path of Streamable HTTP.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::header::{
    SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::forwarded::Network;
use super::gate::Admitted;
use super::refusal::{BAD_KEY, BAD_VERSION, NO_UPGRADE};
use super::response::{self, HttpAnswer};
use crate::connection::Framing;
use crate::io::net::handshake::{self, ACTIONS, PROTOCOL, lists};
use crate::io::net::places::Place;
use crate::io::net::reception::{Accepted, Reception};
use crate::io::net::turns;

/// Upgrades to WebSocket (R-WSK-06, R-WSK-07).
///
/// # Errors
/// Why the upgrade is refused.
pub fn upgrade(
    request: &Admitted<'_>,
    trusted: &[Network],
    reception: &Arc<Reception>,
) -> HttpAnswer {
    let (headers, extensions) = (request.headers().all, &request.parts().extensions);
    if headers
        .get(SEC_WEBSOCKET_VERSION)
        .is_none_or(|version| version != "13")
    {
        return Err(BAD_VERSION);
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes);
    let key = key.filter(|key| handshake::is_key(key)).ok_or(BAD_KEY)?;
    let accept = HeaderValue::from_str(&handshake::accept(key)).map_err(|_| BAD_KEY)?;
    let spoken = [PROTOCOL, ACTIONS];
    let spoken = spoken
        .into_iter()
        .take(if reception.takes_actions() { 2 } else { 1 })
        .find(|it| lists(headers, SEC_WEBSOCKET_PROTOCOL, it));
    let upgraded = extensions.get::<OnUpgrade>().cloned().ok_or(NO_UPGRADE)?;
    let reception = reception.clone();
    let accepted = Accepted {
        framing: Framing::WebSocket { masked: false },
        actions: spoken == Some(ACTIONS),
        source: request.source(trusted),
        channel: request.websocket_channel(),
        principal: request.principal().cloned(),
    };
    let place = extensions.get::<Place>().cloned();
    turns::spawn(async move {
        // Nothing to report: the client may be gone already, and a trace that cannot be written is
        // reported when the server starts.
        if let Ok(stream) = upgraded.await {
            let stream = TokioIo::new(stream);
            let _ = reception.serve(stream, accepted, place).await;
        }
    });
    let mut response = response::empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(protocol) = spoken {
        let protocol = HeaderValue::from_static(protocol);
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(response)
}
