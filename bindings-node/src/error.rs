//! Errors as JavaScript sees them: a stable `code` and a sentence.

use std::collections::BTreeMap;

use mcpbolt::error::{CarrierError, ConnectionError, RequestError};
use mcpbolt::server::RegistryError;
use napi::Status;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

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

/// The error for a wrong use of this package.
pub fn misuse(text: impl ToString) -> napi::Error<Code> {
    error("ERR_MCP_MISUSE", text)
}

/// The error for a name that does not exist.
pub fn unknown(what: &str, name: &str) -> napi::Error<Code> {
    misuse(format!("there is no {what} {name:?}"))
}

/// The error for a failure of JavaScript's own interface.
pub fn internal(why: napi::Error) -> napi::Error<Code> {
    error("ERR_MCP_INTERNAL", why.reason)
}

pub fn registry(why: RegistryError) -> napi::Error<Code> {
    let code = match why {
        RegistryError::Fixed => {
            return misuse("the server already runs; create it with listChanges to change it");
        }
        RegistryError::Duplicate(_) => "ERR_MCP_DUPLICATE",
        RegistryError::Schema(..) => "ERR_MCP_SCHEMA",
        RegistryError::Template(_) => "ERR_MCP_TEMPLATE",
        _ => "ERR_MCP_MISUSE",
    };
    error(code, why)
}

pub fn io(why: std::io::Error) -> napi::Error<Code> {
    error("ERR_MCP_IO", why)
}

pub fn request(why: RequestError) -> napi::Error<Code> {
    error(request_code(&why), why)
}

fn request_code(why: &RequestError) -> &'static str {
    match why {
        RequestError::Peer(_) => "ERR_MCP_PEER",
        RequestError::Cancelled(_) => "ERR_MCP_CANCELLED",
        RequestError::TimedOut => "ERR_MCP_TIMEOUT",
        RequestError::Closed(_) => "ERR_MCP_CLOSED",
        RequestError::Overloaded => "ERR_MCP_OVERLOADED",
        RequestError::BadAnswer(_) | RequestError::BadResult(_) => "ERR_MCP_BAD_ANSWER",
        RequestError::Carrier(error) => carrier_code(error),
        RequestError::Unsupported(_) => "ERR_MCP_UNSUPPORTED",
        RequestError::Misuse(_) => "ERR_MCP_MISUSE",
        _ => "ERR_MCP_INTERNAL",
    }
}

fn carrier_code(error: &CarrierError) -> &'static str {
    match error.login {
        Some(_) => "ERR_MCP_LOGIN",
        None => "ERR_MCP_CARRIER",
    }
}

/// A failure as the JSON object that `revive` in `face/errors.ts` turns into an error.
#[derive(Serialize)]
#[serde(transparent)]
pub struct Failure(BTreeMap<&'static str, Box<RawValue>>);

impl Failure {
    pub fn new(code: &str, message: impl ToString) -> Self {
        let own = Self(BTreeMap::new());
        own.with("code", &code)
            .with("message", &message.to_string())
    }

    /// Adds a member, unless its value is `null`.
    pub fn with(mut self, key: &'static str, value: &impl Serialize) -> Self {
        let value = to_raw_value(value).ok().filter(|json| json.get() != "null");
        self.0.extend(value.map(|json| (key, json)));
        self
    }

    /// A failed request.
    pub fn of_request(why: &RequestError) -> Self {
        let failure = Self::new(request_code(why), why);
        match why {
            RequestError::Peer(peer) => {
                let data = peer
                    .data
                    .as_deref()
                    .map(|json| RawValue::from_string(json.into()));
                let mut failure = failure
                    .with("message", &peer.message)
                    .with("rpcCode", &peer.code);
                failure.0.extend(
                    data.and_then(std::result::Result::ok)
                        .map(|data| ("data", data)),
                );
                failure
            }
            RequestError::Carrier(error) => failure.carrier(error),
            RequestError::Closed(reason) => failure.with("cause", &Self::of_connection(reason)),
            _ => failure,
        }
    }

    /// The end of a connection.
    pub fn of_connection(why: &ConnectionError) -> Self {
        let code = format!("ERR_MCP_{}", why.name().to_ascii_uppercase());
        let failure = Self::new(&code, why);
        match why {
            ConnectionError::Carrier(error) => {
                failure.with("code", &carrier_code(error)).carrier(error)
            }
            _ => failure,
        }
    }

    /// Adds the details of a transport failure.
    fn carrier(self, error: &CarrierError) -> Self {
        let login = error.login.as_deref();
        self.with("fault", &error.fault.name())
            .with("status", &error.status)
            .with("authenticate", &error.authenticate)
            .with("loginStep", &login.map(|login| login.step))
            .with("oauthError", &login.map(|login| &login.code))
    }
}
