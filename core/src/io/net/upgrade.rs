//! The client's side of the upgrade from HTTP to WebSocket (RFC 6455, 4.1).

use std::error::Error as _;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use super::connect::ByteStream;
use super::handshake;
use crate::io::address::Url;
use crate::io::faults::invalid;
use crate::io::open::ConnectOptions;

/// The upgrade request and the answer that is expected.
pub struct UpgradeRequest {
    request: Request<Empty<Bytes>>,
    accept: String,
    protocols: Vec<String>,
}

impl UpgradeRequest {
    /// Builds the request to upgrade to WebSocket at `url` (R-WSK-05).
    ///
    /// # Errors
    /// When a header is not valid.
    pub fn new(url: &Url, options: &ConnectOptions) -> io::Result<Self> {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let key = STANDARD.encode(nonce);
        let mut request = Request::get(&url.path)
            .header(HOST, url.authority())
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key);
        let protocols = options.protocols.clone();
        if !protocols.is_empty() {
            request = request.header(SEC_WEBSOCKET_PROTOCOL, protocols.join(", "));
        }
        for (name, value) in options.headers.iter().chain(&options.auth.header()?) {
            request = request.header(name, value);
        }
        Ok(Self {
            request: request.body(Empty::new()).map_err(invalid)?,
            accept: handshake::accept(key.as_bytes()),
            protocols,
        })
    }

    /// Checks the server's answer; the error says what is wrong with it.
    fn check<B>(&self, response: &Response<B>) -> Result<(), String> {
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let status = response.status();
            return Err(format!(
                "the server does not go on as a WebSocket: {status}"
            ));
        }
        let headers = response.headers();
        let says = |name, value: &str| {
            let said = text(headers, name);
            said.is_some_and(|said| said.eq_ignore_ascii_case(value))
        };
        if !says(UPGRADE, "websocket") || !handshake::lists(headers, CONNECTION, "upgrade") {
            return Err("the server switches to something else than WebSocket".into());
        }
        if text(headers, SEC_WEBSOCKET_ACCEPT) != Some(&self.accept) {
            return Err("the server's answer is to another key".into());
        }
        match text(headers, SEC_WEBSOCKET_PROTOCOL) {
            Some(said) if !self.protocols.iter().any(|own| own == said) => Err(format!(
                "the server chose a subprotocol that was not offered: {said}"
            )),
            _ => Ok(()),
        }
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).map(HeaderValue::to_str)?.ok()
}

/// Converts an error of hyper; its source says more than the error itself.
fn broken(error: hyper::Error) -> io::Error {
    let source = error.source();
    match source.and_then(|source| source.downcast_ref::<io::Error>()) {
        Some(why) => io::Error::new(why.kind(), why.to_string()),
        None if error.is_canceled() => {
            let why = "the server closed the connection before it answered";
            io::Error::new(io::ErrorKind::ConnectionAborted, why)
        }
        None => io::Error::other(error),
    }
}

/// Sends the request and upgrades the connection to WebSocket.
///
/// # Errors
/// Why the upgrade failed.
pub async fn upgrade<S: ByteStream + 'static>(
    stream: S,
    mut asked: UpgradeRequest,
) -> io::Result<Box<dyn ByteStream>> {
    let begun = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = begun.map_err(broken)?;
    let connection = tokio::spawn(connection.with_upgrades());
    let request = std::mem::take(&mut asked.request);
    let response = match sender.send_request(request).await {
        Ok(response) => response,
        Err(error) => {
            drop(sender);
            // The reason why the connection ended says more.
            let ended = connection.await.ok().and_then(Result::err);
            return Err(broken(ended.unwrap_or(error)));
        }
    };
    asked.check(&response).map_err(|why| {
        let kind = match response.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => io::ErrorKind::PermissionDenied,
            StatusCode::NOT_FOUND => io::ErrorKind::NotFound,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, why)
    })?;
    let upgraded = hyper::upgrade::on(response).await;
    Ok(Box::new(TokioIo::new(upgraded.map_err(broken)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::address::Address;

    /// RFC 6455, 4.1: `Connection` is a list, `Upgrade` a single word.
    #[test]
    fn a_server_may_say_more_of_its_connection() {
        let Ok(Address::WebSocket(url)) = "ws://localhost/mcp".parse() else {
            panic!("no WebSocket");
        };
        let asked = UpgradeRequest::new(&url, &ConnectOptions::default()).unwrap();
        for (connection, upgrade, is_welcome) in [
            ("Upgrade", "websocket", true),
            ("keep-alive, upgrade", "WebSocket", true),
            ("keep-alive", "websocket", false),
            ("upgrade", "h2c", false),
        ] {
            let response = Response::builder()
                .status(StatusCode::SWITCHING_PROTOCOLS)
                .header(CONNECTION, connection)
                .header(UPGRADE, upgrade)
                .header(SEC_WEBSOCKET_ACCEPT, &asked.accept)
                .body(());
            let checked = asked.check(&response.unwrap());
            assert_eq!(checked.is_ok(), is_welcome, "{connection}: {checked:?}");
        }
    }
}
