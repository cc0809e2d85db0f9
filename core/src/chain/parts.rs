//! The parts of a front, and how failures of the hop to its server are worded.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::attempts::Attempts;
use super::external::External;
use super::list_cache::ListCache;
use super::middleware::{ChainResponse, Middleware};
use super::places::Places;
use super::prefix::Prefix;
use crate::connection::{Config, Handle, Observer, ReplyTo};
use crate::error::RequestError;
use crate::handler::Spawner;
use crate::json::string;
use crate::mcp::code::{INTERNAL_ERROR, OVERLOADED, REQUEST_CANCELLED};
use crate::mcp::header_arguments::HeaderArguments;
use crate::mcp::{Era, ErrorKind};
use crate::server::Registry;

/// The parts of a front, as one of its servers has them.
pub(super) struct Parts {
    pub external: External,
    /// Its index among the servers of the front.
    pub index: usize,
    /// The kept lists of all servers.
    pub lists: Arc<ListCache>,
    /// What clients see before the names of the server.
    pub prefix: Option<Prefix>,
    /// Whether the front has other servers.
    pub is_of_many: bool,
    pub middleware: Vec<Arc<dyn Middleware>>,
    pub config: Arc<Config>,
    pub registry: Arc<Registry>,
    pub spawner: Arc<dyn Spawner>,
    pub max_hops: u64,
    /// The attempts to reach the server.
    pub attempts: Attempts,
    /// The arguments of the server's tools that HTTP repeats in headers, as far as clients have listed the tools.
    pub mirrored: Arc<HeaderArguments>,
    /// The connections to the server.
    pub places: Arc<Places>,
    /// The era of the server: 0 while it is not known.
    pub era: AtomicU8,
    /// Whether the server was of the stateless era when it was last reached for a client of the handshake era.
    pub takes_no_handshakes: AtomicBool,
    /// Set when the front has been succeeded: how long its calls wait for their clients' answers then.
    pub retired: OnceLock<Duration>,
}

impl Parts {
    /// Notes the era of the server, as it was found for a client of the era `asked`.
    pub fn learn(&self, asked: Era, era: Era) {
        let number = match era {
            Era::Handshake => 1,
            Era::Stateless => 2,
        };
        self.era.store(number, Ordering::Relaxed);
        if asked == Era::Handshake || era == Era::Handshake {
            let takes_none = era == Era::Stateless;
            self.takes_no_handshakes
                .store(takes_none, Ordering::Relaxed);
        }
    }

    /// Whether even clients of the handshake era find a server of the stateless era.
    pub fn takes_no_handshakes(&self) -> bool {
        self.takes_no_handshakes.load(Ordering::Relaxed)
    }

    /// Whether sessions of the handshake era need no connections of their own: the server takes none, and a connection to it is nothing but
    /// requests.
    pub fn lends(&self) -> bool {
        let external = &self.external;
        let may_lend = external.is_of_requests && !external.follows_revision;
        may_lend && self.takes_no_handshakes()
    }

    /// The era of the server, if it is known.
    pub fn era(&self) -> Option<Era> {
        match self.era.load(Ordering::Relaxed) {
            1 => Some(Era::Handshake),
            2 => Some(Era::Stateless),
            _ => None,
        }
    }

    /// The observer of requests to the server: none if they are those that have come to the front.
    pub fn observer_of_hop(&self) -> Option<Arc<dyn Observer>> {
        let observer = self.config.observer.as_ref();
        observer.filter(|_| !self.external.is_own).cloned()
    }

    /// The observer in place of the server's own, which is told of the requests of its handlers: one that is told of all others at the front.
    pub fn observer_of_handlers(&self) -> Option<Arc<dyn Observer>> {
        let observer = self.config.observer.as_ref();
        observer.filter(|_| self.external.is_own).cloned()
    }

    /// Tells middleware that a connection to the server has ended.
    pub fn connection_ended(&self, connection: u64) {
        let all = self.external.middleware.iter().chain(&self.middleware);
        all.for_each(|one| one.connection_ended(connection));
    }

    /// Answers a call of a client.
    pub fn answer(
        &self,
        front: &Handle,
        reply: &ReplyTo,
        outcome: Result<ChainResponse, RequestError>,
    ) {
        let mut replies = front.replies();
        match outcome {
            Ok(response) => replies.whole_result(reply, response.result()),
            Err(RequestError::Peer(error)) => {
                let data = error.data.as_deref();
                replies.error_code(reply, error.code, &error.message, data);
            }
            Err(error) => {
                let (code, message, data) = self.worded(&error, reply.revision().era());
                replies.error_code(reply, code, &message, Some(&data));
            }
        }
        replies.submit_last();
    }

    /// The code, the message and the data for a failure of the hop to the server (R-CHN-14).
    pub fn worded(&self, error: &RequestError, era: Era) -> (i64, String, String) {
        let name = self.external.name();
        let (code, reason) = match error {
            RequestError::Closed(_) | RequestError::Carrier(_) => {
                (INTERNAL_ERROR, "upstream_unavailable")
            }
            RequestError::TimedOut => (INTERNAL_ERROR, "upstream_timeout"),
            RequestError::Overloaded => (OVERLOADED, "upstream_overloaded"),
            RequestError::BadAnswer(_) | RequestError::BadResult(_) => {
                (INTERNAL_ERROR, "upstream_answer_not_valid")
            }
            RequestError::Cancelled(_) if era == Era::Handshake => {
                (REQUEST_CANCELLED, "upstream_cancelled")
            }
            RequestError::Cancelled(_) => (INTERNAL_ERROR, "upstream_cancelled"),
            _ => (INTERNAL_ERROR, "not_relayed"),
        };
        let mut data = b"{\"reason\":".to_vec();
        string::append(&mut data, reason);
        data.extend_from_slice(b",\"upstream\":");
        string::append(&mut data, name);
        if code == OVERLOADED {
            data.extend_from_slice(b",\"retryAfter\":1");
        }
        data.push(b'}');
        let message = format!("the server {name:?}: {error}");
        (code, message, String::from_utf8(data).unwrap_or_default())
    }
}

/// The error for a method that the next hop does not have.
pub(super) fn no_such_method(method: &str) -> RequestError {
    let kind = ErrorKind::MethodNotFound;
    let code = kind.code(crate::mcp::Revision::NEWEST);
    super::middleware::refusal(code, format!("unknown method: {method}"))
}
