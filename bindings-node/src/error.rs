//! Errors as JavaScript sees them: a stable `code` and a sentence.

use mcpbolt::error::{CarrierError, ConnectionError, RequestError};
use mcpbolt::json::string;
use mcpbolt::server::RegistryError;
use napi::Status;

use crate::panics::Panicked;

/// The `code` of an error that is thrown.
#[derive(Debug)]
pub struct Code(&'static str);

impl AsRef<str> for Code {
    fn as_ref(&self) -> &str {
        self.0
    }
}

impl From<Status> for Code {
    fn from(_: Status) -> Self {
        Self("ERR_MCP_INTERNAL")
    }
}

/// The result of a native function that can fail.
pub type Result<T> = std::result::Result<T, napi::Error<Code>>;

/// Creates an error.
pub fn error(code: &'static str, text: impl ToString) -> napi::Error<Code> {
    napi::Error::new(Code(code), text.to_string())
}

pub fn registry(why: &RegistryError) -> napi::Error<Code> {
    let code = match why {
        RegistryError::Fixed => {
            let text = "the server runs already, without the option listChanges";
            return error("ERR_MCP_MISUSE", text);
        }
        RegistryError::Duplicate(_) => "ERR_MCP_DUPLICATE",
        RegistryError::Schema(..) => "ERR_MCP_SCHEMA",
        RegistryError::Template(_) => "ERR_MCP_TEMPLATE",
        _ => "ERR_MCP_MISUSE",
    };
    error(code, why)
}

pub fn io(why: &std::io::Error) -> napi::Error<Code> {
    error("ERR_MCP_IO", why)
}

pub fn request(why: &RequestError) -> napi::Error<Code> {
    error(request_code(why), why)
}

pub fn request_code(why: &RequestError) -> &'static str {
    match why {
        RequestError::Peer(_) => "ERR_MCP_PEER",
        RequestError::Cancelled(_) => "ERR_MCP_CANCELLED",
        RequestError::TimedOut => "ERR_MCP_TIMEOUT",
        RequestError::Closed(_) => "ERR_MCP_CLOSED",
        RequestError::Overloaded => "ERR_MCP_OVERLOADED",
        RequestError::BadAnswer(_) | RequestError::BadResult(_) => "ERR_MCP_BAD_ANSWER",
        RequestError::Carrier(_) => "ERR_MCP_CARRIER",
        RequestError::Unsupported(_) => "ERR_MCP_UNSUPPORTED",
        RequestError::Misuse(_) => "ERR_MCP_MISUSE",
        _ => "ERR_MCP_INTERNAL",
    }
}

fn connection_code(why: &ConnectionError) -> String {
    format!("ERR_MCP_{}", why.name().to_ascii_uppercase())
}

/// A failed request, as the JSON that the TypeScript side turns into an error.
pub fn request_json(out: &mut String, why: &RequestError) {
    let mut text = begin(request_code(why), why);
    match why {
        RequestError::Peer(peer) => {
            text.truncate(0);
            text.extend_from_slice(b"{\"code\":\"ERR_MCP_PEER\",\"message\":");
            string::append(&mut text, &peer.message);
            text.extend_from_slice(format!(",\"rpcCode\":{}", peer.code).as_bytes());
            if let Some(data) = &peer.data {
                text.extend_from_slice(b",\"data\":");
                text.extend_from_slice(data.as_bytes());
            }
        }
        RequestError::Carrier(error) => carrier(&mut text, error),
        RequestError::Closed(reason) => {
            text.extend_from_slice(b",\"cause\":");
            text.extend_from_slice(&connection(reason));
        }
        _ => {}
    }
    text.push(b'}');
    out.push_str(&String::from_utf8_lossy(&text));
}

/// A panic, as such JSON.
pub fn panic_json(out: &mut String, panic: &Panicked) {
    let mut text = begin("ERR_MCP_INTERNAL", panic);
    text.push(b'}');
    out.push_str(&String::from_utf8_lossy(&text));
}

/// The end of a connection, as such JSON.
pub fn connection_json(out: &mut String, why: &ConnectionError) {
    out.push_str(&String::from_utf8_lossy(&connection(why)));
}

fn connection(why: &ConnectionError) -> Vec<u8> {
    let mut text = begin(&connection_code(why), why);
    if let ConnectionError::Carrier(error) = why {
        carrier(&mut text, error);
    }
    text.push(b'}');
    text
}

/// The details of a transport failure besides its message.
fn carrier(text: &mut Vec<u8>, error: &CarrierError) {
    text.extend_from_slice(format!(",\"fault\":\"{}\"", error.fault.name()).as_bytes());
    if let Some(status) = error.status {
        text.extend_from_slice(format!(",\"status\":{status}").as_bytes());
    }
    if let Some(authenticate) = &error.authenticate {
        text.extend_from_slice(b",\"authenticate\":");
        string::append(text, authenticate);
    }
}

/// Why a server could not be served, as JSON.
pub fn failure_json(why: &std::io::Error) -> String {
    let mut text = b"{\"error\":".to_vec();
    string::append(&mut text, &why.to_string());
    text.push(b'}');
    String::from_utf8_lossy(&text).into_owned()
}

fn begin(code: &str, message: &impl ToString) -> Vec<u8> {
    let mut text = b"{\"code\":".to_vec();
    string::append(&mut text, code);
    text.extend_from_slice(b",\"message\":");
    string::append(&mut text, &message.to_string());
    text
}
