//! WebSocket at the path of Streamable HTTP.

use std::sync::Arc;

use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::header::{
    SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use super::answers::{self, with};
use super::body::HttpBody;
use super::guard::{self, Refusal};
use super::options::HttpOptions;
use crate::connection::Framing;
use crate::connection::Principal;
use crate::io::net::handshake::{self, ACTIONS, PROTOCOL, lists};
use crate::io::net::listen::Place;
use crate::io::net::reception::Reception;

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

/// Whether a request asks to go on as a WebSocket.
pub fn is_asked<B>(request: &Request<B>) -> bool {
    *request.method() == Method::GET
        && lists(request.headers(), UPGRADE, "websocket")
        && lists(request.headers(), CONNECTION, "upgrade")
}

/// Goes on as a WebSocket, if who asks may (R-HTP-06, R-WSK-06, R-WSK-07).
///
/// # Errors
/// Why not.
pub fn upgrade<B>(
    mut request: Request<B>,
    options: &HttpOptions,
    reception: &Arc<Reception>,
) -> Result<Response<HttpBody>, Refusal> {
    guard::check_source(request.uri(), request.headers(), options)?;
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
    let place = request.extensions_mut().remove::<Place>();
    let principal = request.extensions_mut().remove::<Principal>();
    tokio::spawn(async move {
        // Who has gone meanwhile is not missed; a trace that cannot be written is told of when
        // the server begins.
        if let Ok(stream) = upgraded.await {
            let framing = Framing::WebSocket { masked: false };
            let stream = TokioIo::new(stream);
            let carried = (framing, spoken == Some(ACTIONS));
            let _ = reception.serve(stream, carried, principal.as_ref()).await;
        }
        drop(place);
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

/// A refusal, which says what version there is to who asked for another.
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
