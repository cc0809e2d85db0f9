//! The opening handshake of WebSocket on HTTP (RFC 6455, section 4).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderMap, HeaderName};
use sha1::{Digest, Sha1};

/// The subprotocol of JSON-RPC messages (R-WSK-06); the name is not official.
pub const PROTOCOL: &str = "mcp";

/// The subprotocol of the action dialect.
#[cfg(feature = "http")]
pub const ACTIONS: &str = "mcp-action";

const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The server's `Sec-WebSocket-Accept` for a client's key, which proves that the answer is not cached.
pub fn accept(key: &[u8]) -> String {
    let hash = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    STANDARD.encode(hash)
}

/// Whether a client's key is valid: 16 bytes in base64.
#[cfg(feature = "http")]
pub fn is_key(key: &[u8]) -> bool {
    STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == 16)
}

/// Whether a header that is a comma-separated list contains a word.
pub fn lists(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let values = headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .any(|own| own.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_example_of_the_rfc() {
        let said = super::accept(b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(said, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
