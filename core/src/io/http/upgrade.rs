//! WebSocket at the path of Streamable HTTP.

use std::sync::Arc;

use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::header::{
    SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use super::answers::{self, Refusal, with};
use super::body::HttpBody;
use super::forwarded::Network;
use super::gate::Admitted;
use crate::connection::Framing;
use crate::io::net::handshake::{self, ACTIONS, PROTOCOL, lists};
use crate::io::net::places::Place;
use crate::io::net::reception::{Accepted, Reception};
use crate::io::net::turns;

const VERSION: &str = "13";

const BAD_KEY: Refusal = Refusal::new(
    StatusCode::BAD_REQUEST,
    "Sec-WebSocket-Key is not 16 bytes in base64",
);
const BAD_VERSION: Refusal = Refusal::new(
    StatusCode::UPGRADE_REQUIRED,
    "Sec-WebSocket-Version 13 is spoken here",
);
const NO_UPGRADE: Refusal = Refusal::new(
    StatusCode::BAD_REQUEST,
    "this connection cannot become a WebSocket: ask by HTTP/1.1, of a server that lets it",
);

/// Whether a request asks to upgrade to WebSocket.
pub fn is_asked(parts: &Parts) -> bool {
    parts.method == Method::GET
        && lists(&parts.headers, UPGRADE, "websocket")
        && lists(&parts.headers, CONNECTION, "upgrade")
}

/// Upgrades to WebSocket (R-WSK-06, R-WSK-07).
///
/// # Errors
/// Why the upgrade is refused.
pub fn upgrade(
    admitted: Admitted,
    trusted: &[Network],
    reception: &Arc<Reception>,
) -> Result<Response<HttpBody>, Refusal> {
    let (source, principal) = (admitted.source(trusted), admitted.principal().cloned());
    let mut request = Request::from_parts(admitted.into_parts(), ());
    let headers = request.headers();
    if headers
        .get(SEC_WEBSOCKET_VERSION)
        .is_none_or(|version| version != VERSION)
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
    if request
        .extensions()
        .get::<hyper::upgrade::OnUpgrade>()
        .is_none()
    {
        return Err(NO_UPGRADE);
    }
    let upgraded = hyper::upgrade::on(&mut request);
    let reception = reception.clone();
    let accepted = Accepted {
        framing: Framing::WebSocket { masked: false },
        actions: spoken == Some(ACTIONS),
        source,
        principal,
    };
    let place = request.extensions_mut().remove::<Place>();
    turns::spawn(async move {
        // Nothing to report: the client may be gone already, and a trace that cannot be written is
        // reported when the server starts.
        if let Ok(stream) = upgraded.await {
            let stream = TokioIo::new(stream);
            let _ = reception.serve(stream, accepted, place).await;
        }
    });
    let mut response = with(StatusCode::SWITCHING_PROTOCOLS, HttpBody::empty());
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

/// A refusal; if the version is not supported, it names the version that is.
pub fn refused(refusal: Refusal) -> Response<HttpBody> {
    let mut response = answers::refused(refusal);
    if refusal.status == StatusCode::UPGRADE_REQUIRED {
        let version = HeaderValue::from_static(VERSION);
        response
            .headers_mut()
            .insert(SEC_WEBSOCKET_VERSION, version);
    }
    response
}
