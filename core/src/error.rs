//! The error vocabulary of the engine. Each module has small error types of its own; every one of
//! them tells its [`Scope`] (how much it ends), its [`Origin`] (who caused it) and, where it goes
//! on the wire, its code.

use std::fmt;
use std::time::Duration;

pub use mcpbolt_codec::error::{Origin, Scope};

/// Why a request got no result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RequestError {
    /// The peer answered with a JSON-RPC error.
    Peer(PeerError),
    /// The caller, or the caller's token, cancelled the request; the peer was notified.
    Cancelled(Option<Box<str>>),
    /// The deadline passed; the peer was sent a cancellation (R-CAN-09).
    TimedOut,
    /// The connection ended before an answer arrived.
    Closed(ConnectionError),
    /// This side's limits were reached and nothing was sent: too many requests wait for answers, or
    /// too many bytes wait for the peer to read them. Try again later.
    Overloaded,
    /// The transport failed for this request or its answer; other requests are not affected.
    Carrier(Box<CarrierError>),
    /// The peer's answer violates its revision.
    BadAnswer(&'static str),
    /// The peer's result violates its revision. The text names the method, the member and the
    /// reason.
    BadResult(Box<str>),
    /// The peer did not declare the named capability; nothing was sent (R-CAP-03).
    Unsupported(&'static str),
    /// The call itself is wrong, for example its params are not a JSON object.
    Misuse(&'static str),
}

/// A JSON-RPC error as the peer sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerError {
    /// The error code on the wire.
    pub code: i64,
    /// The peer's error message.
    pub message: Box<str>,
    /// The peer's `data`, as raw JSON.
    pub data: Option<Box<str>>,
}

impl RequestError {
    /// How much the error ends.
    pub fn scope(&self) -> Scope {
        match self {
            Self::Closed(_) => Scope::Connection,
            _ => Scope::Request,
        }
    }

    /// The side that caused the error.
    pub fn origin(&self) -> Origin {
        match self {
            Self::Peer(_) | Self::BadAnswer(_) | Self::BadResult(_) | Self::Unsupported(_) => {
                Origin::Peer
            }
            Self::Cancelled(_) | Self::Misuse(_) => Origin::Caller,
            Self::TimedOut | Self::Overloaded => Origin::Engine,
            Self::Closed(error) => error.origin(),
            Self::Carrier(error) => error.origin(),
        }
    }

    /// Whether the peer says that the resource does not exist, by the code of any revision.
    /// Meaningful for errors of `resources/read` (R-ERR-08).
    pub fn is_resource_not_found(&self) -> bool {
        matches!(self.code(), Some(-32002 | -32602))
    }

    /// The peer's error code. `None` for local failures, so that they cannot be mistaken for the
    /// peer's (R-ERR-26).
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Peer(error) => Some(error.code),
            _ => None,
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peer(error) => write!(
                f,
                "the peer answered with error {}: {}",
                error.code, error.message
            ),
            Self::Cancelled(None) => f.write_str("the request was cancelled"),
            Self::Cancelled(Some(reason)) => write!(f, "the request was cancelled: {reason}"),
            Self::TimedOut => f.write_str("the request timed out"),
            Self::Closed(error) => write!(f, "the connection ended before an answer came: {error}"),
            Self::Overloaded => f.write_str(
                "nothing was sent: too many requests or bytes wait on this connection already",
            ),
            Self::Carrier(error) => error.fmt(f),
            Self::BadAnswer(what) => write!(f, "the peer's answer is not valid: {what}"),
            Self::BadResult(what) => write!(f, "the peer's answer is not valid: {what}"),
            Self::Unsupported(what) => {
                write!(f, "nothing was sent: the peer did not declare {what}")
            }
            Self::Misuse(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for RequestError {}

/// Why a connection ended. The first reason is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// This side closed the connection.
    ClosedLocally,
    /// This side is shutting down in good order and starts no new requests.
    ShuttingDown,
    /// The peer closed its end in good order.
    ClosedByPeer,
    /// The peer's process ended; the text says how, if known.
    PeerExited(Box<str>),
    /// The peer stopped reading: it read no byte of an output above its cap for longer than the
    /// stall timeout, or a notification found no room in the output.
    Stalled,
    /// The peer did not answer a keepalive ping in time.
    Unresponsive,
    /// Nothing happened for longer than the idle timeout.
    Idle,
    /// The two sides have no protocol revision in common.
    NoCommonRevision,
    /// The handshake failed for another reason.
    Handshake(Box<str>),
    /// The server did not answer this request of the handshake in time.
    HandshakeTimedOut(&'static str),
    /// The operating system reported a failure.
    Io(std::io::ErrorKind),
    /// The transport failed before the connection was established.
    Carrier(Box<CarrierError>),
}

impl ConnectionError {
    /// A stable identifier for programs, such as `stalled` or `peer_exited`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ClosedLocally => "closed_locally",
            Self::ShuttingDown => "shutting_down",
            Self::ClosedByPeer => "closed_by_peer",
            Self::PeerExited(_) => "peer_exited",
            Self::Stalled => "stalled",
            Self::Unresponsive => "unresponsive",
            Self::Idle => "idle",
            Self::NoCommonRevision => "no_common_revision",
            Self::Handshake(_) => "handshake",
            Self::HandshakeTimedOut(_) => "handshake_timed_out",
            Self::Io(_) => "io",
            Self::Carrier(_) => "carrier",
        }
    }

    /// How much the error ends.
    pub fn scope(&self) -> Scope {
        Scope::Connection
    }

    /// The side that caused the error.
    pub fn origin(&self) -> Origin {
        match self {
            Self::ClosedLocally | Self::ShuttingDown => Origin::Caller,
            Self::Idle => Origin::Engine,
            Self::Io(_) => Origin::Io,
            Self::Carrier(error) => error.origin(),
            _ => Origin::Peer,
        }
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClosedLocally => f.write_str("closed by this side"),
            Self::ShuttingDown => f.write_str("this side is shutting down"),
            Self::ClosedByPeer => f.write_str("closed by the peer"),
            Self::PeerExited(how) => write!(f, "the peer's process ended ({how})"),
            Self::Stalled => f.write_str("the peer stopped reading"),
            Self::Unresponsive => f.write_str("the peer does not answer"),
            Self::Idle => f.write_str("nothing happened for too long"),
            Self::NoCommonRevision => f.write_str("no protocol revision that both sides speak"),
            Self::Handshake(why) => write!(f, "the handshake failed: {why}"),
            Self::HandshakeTimedOut(request) => {
                write!(
                    f,
                    "the handshake failed: the server did not answer {request} in time"
                )
            }
            Self::Io(kind) => write!(f, "{kind}"),
            Self::Carrier(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConnectionError {}

/// How a transport failed that carries each message on its own (HTTP). "Carrier" in these names is
/// the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CarrierFault {
    /// The peer could not be reached; the message was not delivered.
    Unreachable,
    /// TLS could not be established, for example because the peer's certificate is not trusted.
    Tls,
    /// The peer took too long to connect or to answer.
    TimedOut,
    /// The peer's transport refused the message, with a status.
    Refused,
    /// The peer redirects to a place that messages must not be sent to.
    Redirected,
    /// The response is not an answer in this protocol.
    NoAnswer,
    /// The response is longer than the limit.
    TooLong,
    /// The connection broke off. It is not known whether the peer carried out the request.
    Broken,
    /// The session of the request, or the stream that was to carry its answer, has ended. It is not
    /// known whether the peer carried out the request.
    SessionLost,
}

impl CarrierFault {
    /// A stable identifier for programs, such as `unreachable` or `timed_out`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Tls => "tls",
            Self::TimedOut => "timed_out",
            Self::Refused => "refused",
            Self::Redirected => "redirected",
            Self::NoAnswer => "no_answer",
            Self::TooLong => "too_long",
            Self::Broken => "broken",
            Self::SessionLost => "session_lost",
        }
    }
}

/// A failure of the transport for one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarrierError {
    /// The kind of failure.
    pub fault: CarrierFault,
    /// The status the peer's transport gave, such as an HTTP status.
    pub status: Option<u16>,
    /// How the peer wants the client to authenticate: the value of HTTP's `WWW-Authenticate`,
    /// unchanged.
    pub authenticate: Option<Box<str>>,
    /// How long the peer asks the client to wait: HTTP's `Retry-After`, if given in seconds.
    pub retry_after: Option<Duration>,
    /// Which step of a login failed, if the request was not sent for want of credentials.
    pub login: Option<Box<FailedLogin>>,
    /// A description; contains no address and no credentials.
    pub why: Box<str>,
}

/// Where a login failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedLogin {
    /// A stable identifier of the step, such as `registration`.
    pub step: &'static str,
    /// The error code that the authorization server gave, such as `access_denied`.
    pub code: Option<Box<str>>,
}

impl CarrierError {
    /// An error without a status.
    pub fn new(fault: CarrierFault, why: impl Into<Box<str>>) -> Self {
        Self {
            fault,
            status: None,
            authenticate: None,
            retry_after: None,
            login: None,
            why: why.into(),
        }
    }

    /// The server has ended the session that the request was for.
    pub(crate) fn session_lost() -> Self {
        Self::new(CarrierFault::SessionLost, "the session has ended")
    }

    /// How much the error ends.
    pub fn scope(&self) -> Scope {
        Scope::Request
    }

    /// The side that caused the error.
    pub fn origin(&self) -> Origin {
        match self.fault {
            CarrierFault::Unreachable | CarrierFault::TimedOut | CarrierFault::Broken => Origin::Io,
            _ => Origin::Peer,
        }
    }

    /// Whether the peer was reached but did not understand the message, so that a message of
    /// another era may be understood (R-ERA-09). False where credentials are missing or refused,
    /// and for rate limits and unavailability.
    pub fn is_incomprehension(&self) -> bool {
        match (self.fault, self.status) {
            (CarrierFault::NoAnswer, _) => true,
            (CarrierFault::Refused, Some(status)) => !matches!(status, 401 | 403 | 407 | 429 | 503),
            _ => false,
        }
    }
}

impl fmt::Display for CarrierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for CarrierError {}

impl From<CarrierError> for RequestError {
    fn from(error: CarrierError) -> Self {
        Self::Carrier(Box::new(error))
    }
}
