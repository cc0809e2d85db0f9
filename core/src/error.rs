//! The vocabulary every error of the engine answers in: how far it reaches and who is at fault.
//!
//! Each room has small error types of its own; all of them say their [`Scope`], their
//! [`Origin`] and, where something goes on the wire, their code.

use std::fmt;
use std::time::Duration;

/// How much an error ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One frame was bad; the next one is unaffected.
    Message,
    /// One request fails; the connection lives.
    Request,
    /// The connection is over.
    Connection,
}

/// Who caused an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The program that uses the engine.
    Caller,
    /// The engine itself: a limit, a deadline, a shutdown.
    Engine,
    /// The other side of the wire.
    Peer,
    /// The operating system.
    Io,
}

/// What the one waiter of a request learns when no result came.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RequestError {
    /// The peer answered with a JSON-RPC error.
    Peer(PeerError),
    /// The caller, or the caller's token, cancelled the request; the peer was told.
    Cancelled(Option<Box<str>>),
    /// The deadline passed; the peer was told that nobody waits any more (R-CAN-09).
    TimedOut,
    /// The connection ended before an answer came.
    Closed(ConnectionError),
    /// Nothing was sent: so many requests wait for answers, or so many bytes for the peer to read
    /// them, as this side's limits allow. Try again later.
    Overloaded,
    /// What carries this one request, or its answer, failed; others are not affected.
    Carrier(Box<CarrierError>),
    /// The peer's answer is not what its revision allows.
    BadAnswer(&'static str),
    /// The peer's result is not what its revision says of it: which method's, which member, and why.
    BadResult(Box<str>),
    /// The peer did not declare the capability that is named; nothing was sent (R-CAP-03).
    Unsupported(&'static str),
    /// The call itself is wrong, for example params that are no JSON object.
    Misuse(&'static str),
}

/// A JSON-RPC error as the peer sent it.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerError {
    /// The number on the wire.
    pub code: i64,
    /// The peer's sentence.
    pub message: Box<str>,
    /// The peer's `data`, as raw JSON.
    pub data: Option<Box<str>>,
}

impl RequestError {
    /// How far it reaches.
    pub fn scope(&self) -> Scope {
        match self {
            Self::Closed(_) => Scope::Connection,
            _ => Scope::Request,
        }
    }

    /// Who is at fault.
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

    /// Whether the peer says that there is no such resource, in the words of any revision: what
    /// reading one fails with then (R-ERR-08).
    pub fn is_resource_not_found(&self) -> bool {
        matches!(self.code(), Some(-32002 | -32602))
    }

    /// The peer's code, when the peer answered. Local failures have none, so that they cannot
    /// be mistaken for the peer's (R-ERR-26).
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

/// Why a connection ended. Sticky: the first reason stays.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// This side closed it.
    ClosedLocally,
    /// This side ends in good order and begins nothing new.
    ShuttingDown,
    /// The peer closed its end in good order.
    ClosedByPeer,
    /// The peer's process ended; the text says how, where known.
    PeerExited(Box<str>),
    /// The peer stopped reading: it took nothing of a full output for longer than the stall
    /// timeout, or a notification found no room.
    Stalled,
    /// The peer gave no sign of life when asked for one.
    Unresponsive,
    /// Nothing happened for longer than the idle timeout.
    Idle,
    /// No common protocol revision.
    NoCommonRevision,
    /// The handshake failed for another reason.
    Handshake(Box<str>),
    /// The operating system reported a failure.
    Io(std::io::ErrorKind),
    /// What carries its messages failed before it was open.
    Carrier(Box<CarrierError>),
}

impl ConnectionError {
    /// One word for programs, which stays the same: `stalled`, `peer_exited`.
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
            Self::Io(_) => "io",
            Self::Carrier(_) => "carrier",
        }
    }

    /// How far it reaches.
    pub fn scope(&self) -> Scope {
        Scope::Connection
    }

    /// Who is at fault.
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
            Self::Io(kind) => write!(f, "{kind}"),
            Self::Carrier(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConnectionError {}

/// How what carries messages failed, where each travels on its own (HTTP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CarrierFault {
    /// The peer could not be reached: the message was not taken.
    Unreachable,
    /// There is no secure way to the peer: its certificate, for example, is not trusted.
    Tls,
    /// It took too long.
    TimedOut,
    /// The peer's carrier refused the message, with a status.
    Refused,
    /// The peer sends elsewhere, where nothing is sent.
    Redirected,
    /// What came is no answer in this protocol.
    NoAnswer,
    /// What came is longer than the limit.
    TooLong,
    /// It broke off: whether the peer did what it was asked to is not known.
    Broken,
    /// The session in which it was asked has ended, or the stream that was to answer it: whether the
    /// peer did it is not known.
    SessionLost,
}

impl CarrierFault {
    /// One word for programs, which stays the same: `unreachable`, `timed_out`.
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

/// A failure of what carries one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarrierError {
    /// What failed.
    pub fault: CarrierFault,
    /// The status that the peer's carrier gave, of HTTP for example.
    pub status: Option<u16>,
    /// How the peer wants to be shown who asks: `WWW-Authenticate` of HTTP, as it came.
    pub authenticate: Option<Box<str>>,
    /// How long the peer asks to be left alone: `Retry-After` of HTTP, where it is in seconds.
    pub retry_after: Option<Duration>,
    /// A sentence; holds no address and no credentials.
    pub why: Box<str>,
}

impl CarrierError {
    /// A failure without a status.
    pub fn new(fault: CarrierFault, why: impl Into<Box<str>>) -> Self {
        Self {
            fault,
            status: None,
            authenticate: None,
            retry_after: None,
            why: why.into(),
        }
    }

    /// How far it reaches.
    pub fn scope(&self) -> Scope {
        Scope::Request
    }

    /// Who is at fault.
    pub fn origin(&self) -> Origin {
        match self.fault {
            CarrierFault::Unreachable | CarrierFault::TimedOut | CarrierFault::Broken => Origin::Io,
            _ => Origin::Peer,
        }
    }

    /// Whether the peer was there, and only did not know what to make of the message: another may
    /// be understood (R-ERA-09). Who is to show credentials first is not in this case.
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
