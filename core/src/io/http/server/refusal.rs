//! The refusals of requests that are not served, each with its HTTP status.

use std::borrow::Cow;

use hyper::StatusCode;

/// Why a request is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRefusal {
    pub status: u16,
    pub why: Cow<'static, str>,
    /// Seconds after which another attempt may succeed.
    pub retry_after: Option<u64>,
    /// The `details` of the error in the action dialect, as JSON.
    pub details: Option<String>,
    /// The values of `WWW-Authenticate`; if there are none, a 401 asks for any credentials.
    pub challenges: Vec<String>,
}

impl HttpRefusal {
    const fn new(status: u16, why: &'static str) -> Self {
        Self {
            status,
            why: Cow::Borrowed(why),
            retry_after: if status == 503 { Some(1) } else { None },
            details: None,
            challenges: Vec::new(),
        }
    }

    /// The same refusal with another reason.
    pub fn because(self, why: impl Into<Cow<'static, str>>) -> Self {
        let why = why.into();
        Self { why, ..self }
    }

    pub fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST)
    }
}

// The gate.
pub const FOREIGN_HOST: HttpRefusal = HttpRefusal::new(
    403,
    "Host does not name this server: add the name to `hosts`",
);
pub const FOREIGN_ORIGIN: HttpRefusal =
    HttpRefusal::new(403, "Origin is not allowed: add it to `origins`");
pub const FOREIGN_PAGE: HttpRefusal = HttpRefusal::new(
    403,
    "a page of another origin sent no Origin (Sec-Fetch-Site)",
);
pub const NO_SCRIPT: HttpRefusal = HttpRefusal::new(
    403,
    "only scripts of pages are served, no links, frames or images (Sec-Fetch-Mode)",
);
pub const NO_ENDPOINT: HttpRefusal = HttpRefusal::new(404, "there is no endpoint at this path");
pub const NOT_JSON: HttpRefusal =
    HttpRefusal::new(415, "the Content-Type of a message is application/json");
pub const WRONG_METHOD: HttpRefusal = HttpRefusal::new(
    405,
    "this method is not supported here: send messages by POST",
);
pub const NOT_ACCEPTED_BOTH: HttpRefusal = HttpRefusal::new(
    406,
    "an answer may be application/json or text/event-stream: accept both",
);
pub const NOT_ACCEPTED_EVENTS: HttpRefusal =
    HttpRefusal::new(406, "a GET is answered with text/event-stream: accept it");
pub const UNAUTHENTICATED: HttpRefusal = HttpRefusal::new(
    401,
    "credentials are missing or wrong: send some that this server accepts",
);
pub const UNVERIFIED: HttpRefusal = HttpRefusal::new(
    503,
    "the credentials cannot be verified now: try again later",
);
pub const TOO_OFTEN: HttpRefusal = HttpRefusal::new(
    429,
    "too many wrong credentials came from there: try again later",
);

// Bodies.
pub const TOO_LARGE: HttpRefusal =
    HttpRefusal::new(413, "the message is longer than this server accepts");
pub const TOO_SLOW: HttpRefusal = HttpRefusal::new(408, "the body did not arrive in time");
pub const BROKEN: HttpRefusal = HttpRefusal::new(400, "the body broke off");
pub const NO_ROOM: HttpRefusal = HttpRefusal::new(
    503,
    "there is no room for a message of this length now: try again later",
);
pub const NO_MESSAGE: HttpRefusal =
    HttpRefusal::new(400, "the body is not a message that a server accepts");
pub const UNKNOWN_VERSION: HttpRefusal = HttpRefusal::new(
    400,
    "MCP-Protocol-Version names no revision that is spoken here",
);

// Sessions.
pub const NO_SESSION: HttpRefusal = HttpRefusal::new(
    400,
    "Mcp-Session-Id is missing: a session begins with initialize",
);
pub const SESSION_GONE: HttpRefusal = HttpRefusal::new(
    404,
    "there is no such session: begin another with initialize",
);
#[cfg(feature = "sealing")]
pub const NOT_BEGUN_HERE: HttpRefusal = HttpRefusal::new(
    503,
    "the session cannot go on at this process now: try again later",
);
pub const NO_STREAM: HttpRefusal = HttpRefusal::new(
    405,
    "a stream belongs to a session: begin one with a POST of initialize",
);
pub const EVENTS_GONE: HttpRefusal = HttpRefusal::new(
    409,
    "the events after this one are gone, and the other stream has a reader",
);
#[cfg(feature = "sealing")]
pub const END_UNTOLD: HttpRefusal = HttpRefusal::new(
    503,
    "the session has ended here, but other processes cannot be told now: try again later",
);
#[cfg(feature = "sealing")]
pub const EVENTS_AWAY: HttpRefusal = HttpRefusal::new(
    503,
    "the events of the stream are in a store that cannot be read now: try again later",
);
pub const NO_SESSION_LEFT: HttpRefusal =
    HttpRefusal::new(503, "all sessions are in use: try again later");
/// For workers alone: they ask elsewhere.
#[cfg(all(unix, feature = "sealing"))]
pub const MISDIRECTED: HttpRefusal = HttpRefusal::new(
    421,
    "another worker has taken over, and the request is about nothing in flight here",
);
#[cfg(unix)]
pub const OWNER_BUSY: HttpRefusal = HttpRefusal::new(
    503,
    "the worker that has the session cannot be reached now: try again later",
);
#[cfg(unix)]
pub const OWNERS_LOST: HttpRefusal = HttpRefusal::new(
    503,
    "the folder of the sockets of the workers was removed, and they are replaced: try again later",
);
#[cfg(unix)]
pub const OWNER_GONE: HttpRefusal = HttpRefusal::new(
    502,
    "the worker that has the session ended before it had answered: it may have run the request",
);

// Actions.
pub const NO_GET: HttpRefusal = HttpRefusal::new(
    405,
    "a GET does not run this action: POST it; its author may allow GET for a tool that is read-only",
);
pub const BAD_ACTION: HttpRefusal = HttpRefusal::new(400, "the request is not an action");
pub const ACTION_EVENTS_GONE: HttpRefusal = HttpRefusal::new(
    404,
    "the events after this one are not kept here, or no longer",
);

// WebSocket.
pub const BAD_KEY: HttpRefusal =
    HttpRefusal::new(400, "Sec-WebSocket-Key is not 16 bytes in base64");
pub const BAD_VERSION: HttpRefusal =
    HttpRefusal::new(426, "Sec-WebSocket-Version 13 is spoken here");
pub const NO_UPGRADE: HttpRefusal = HttpRefusal::new(
    400,
    "this connection cannot become a WebSocket: use HTTP/1.1, and a server that allows upgrades",
);
