//! Every limit of the engine, with its unit and what it prevents. Nothing is preallocated from a
//! length the peer claims, and nothing that a peer sends grows without a limit (R-RPC-23). The test
//! `each_limit_has_a_test_that_tries_it` names, for each limit, the test that tries to exceed it.

use std::time::{Duration, Instant};

use serde::{Deserialize, Deserializer};

pub use mcpbolt_codec::limits::{
    COPY_IN_BYTES, KEEP_BYTES, MAX_ID_BYTES, READ_BYTES, SHRINK_AFTER,
};

/// The limits of one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Longest single message, in bytes. Longer messages are discarded as they arrive, and refused.
    pub max_message_bytes: usize,
    /// Deepest nesting of arrays and objects in one message.
    pub max_depth: usize,
    /// Longest batch array (revision 2025-03-26), in elements.
    pub max_batch_len: usize,
    /// Requests of the peer that may be in flight at once; further requests wait.
    pub max_incoming: usize,
    /// Most bytes of requests that wait for a free place; beyond this, requests are refused as
    /// overload, with `retryAfter`.
    pub waiting_cap_bytes: usize,
    /// Requests of this side that may wait for an answer at once; further requests fail locally.
    pub max_outgoing: usize,
    /// Bytes of pending output above which new requests of the peer wait, log messages are dropped
    /// and only the newest progress of each request is kept. Answers are never dropped.
    pub output_mark_bytes: usize,
    /// Bytes of pending output above which this side stops reading and starts the stall timer.
    /// Requests of this side then fail at once, and a notification of this side ends the
    /// connection.
    pub output_cap_bytes: usize,
    /// How long the peer may leave an output above its cap unread before it is disconnected.
    pub stall_timeout: Duration,
    /// Silence after which the peer is pinged, if the revision has `ping` (R-PNG-02); never when
    /// `None`.
    pub keepalive_interval: Option<Duration>,
    /// How long the peer may take to answer that ping before it is disconnected.
    pub keepalive_timeout: Duration,
    /// How long a connection may have neither traffic nor requests in flight before it is closed;
    /// unlimited when `None`.
    pub idle_timeout: Option<Duration>,
    /// How long a request waits for its answer unless the call says otherwise (R-CAN-09).
    pub request_timeout: Duration,
    /// Longest time to which progress may extend a request, counted from its start (R-CAN-09).
    pub max_request_timeout: Duration,
    /// How long each step of the handshake may take (R-LIF-16).
    pub handshake_timeout: Duration,
    /// How long an era probe waits before the client falls back to `initialize` (R-ERA-07).
    pub probe_timeout: Duration,
    /// How fast the peer may send requests; requests beyond the rate are refused as overload, with
    /// `retryAfter` (R-TOL-03, R-CMP-04). Pings and discovery do not count. No limit when `None`.
    pub request_rate: Option<Rate>,
    /// How fast this side reports progress and logs. Beyond the rate, only the newest progress of
    /// each request is kept and log messages are dropped (R-PRG-04, R-LOG-05). When `None`, only
    /// the peer's reading speed limits reports.
    pub report_rate: Option<Rate>,
}

/// A rate limit (token bucket).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rate {
    /// How many may happen at once; at least one.
    pub burst: u32,
    /// How many may happen per second, on average. With 0, the burst is all that may happen in
    /// 366 days, in one process as in several that share a store.
    pub per_second: u32,
}

/// The time in which a rate of 0 per second allows its burst again: the longest for which a store keeps anything.
pub(crate) const SLOWEST_REFILL: Duration = Duration::from_secs(366 * 24 * 3600);

impl Rate {
    /// How many may happen per second: a rate of 0 is as slow as any may be.
    pub(crate) fn exact_per_second(self) -> f64 {
        match self.per_second {
            0 => f64::from(self.burst.max(1)) / SLOWEST_REFILL.as_secs_f64(),
            per_second => per_second.into(),
        }
    }
}

/// How many calls may be made in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// The number of calls.
    pub calls: u64,
    /// The length of the period, which begins with the first call. When zero, calls are not
    /// counted. In JSON, a number of milliseconds.
    #[serde(deserialize_with = "millis")]
    pub period: Duration,
}

impl Limits {
    /// Limits for a pipe to a process that the user started.
    pub const STDIO: Self = Self {
        max_message_bytes: 128 << 20,
        max_depth: 512,
        max_batch_len: 1024,
        max_incoming: 8192,
        waiting_cap_bytes: 32 << 20,
        max_outgoing: 65_536,
        output_mark_bytes: 8 << 20,
        output_cap_bytes: 256 << 20,
        stall_timeout: Duration::from_secs(60),
        keepalive_interval: None,
        keepalive_timeout: Duration::from_secs(30),
        idle_timeout: None,
        request_timeout: Duration::from_secs(60),
        max_request_timeout: Duration::from_secs(600),
        handshake_timeout: Duration::from_secs(30),
        probe_timeout: Duration::from_secs(5),
        request_rate: None,
        report_rate: None,
    };

    /// Limits for a peer across a network.
    pub const NETWORK: Self = Self {
        max_message_bytes: 16 << 20,
        waiting_cap_bytes: 4 << 20,
        output_cap_bytes: 64 << 20,
        ..Self::STDIO
    };
}

/// The limits of all connections of one server together, over all its transports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TotalLimits {
    /// Requests of peers in flight above which new requests are refused as overload. The last
    /// quarter is for clients that have less than a hundredth; clients are told apart by principal, or
    /// else by address.
    pub max_incoming: usize,
    /// Memory held for peers, in bytes; 256 MiB by default. One part in [`ALLOCATOR_SHARE`] is left to
    /// the allocator, which rounds sizes up and returns memory late. The rest limits the bytes of:
    /// - messages that have not fully arrived,
    /// - requests that wait or are being served,
    /// - answers that the peer has not read,
    /// - data kept beyond its request.
    ///
    /// One part in [`RESERVE_SHARE`] of that limit is reserved for messages of at most [`SMALL_BYTES`],
    /// and at most one part in [`KEPT_SHARE`] may be kept beyond requests. When the bytes outside the reserve are used up:
    /// - longer messages are refused at once, as overload with `retryAfter`; over HTTP, with status
    ///   503 and `Retry-After`,
    /// - log messages are dropped, and only the newest progress of each request is kept,
    /// - peers that leave a long output unread are disconnected after
    ///   [`stall_timeout`](Limits::stall_timeout).
    pub max_bytes: usize,
}

impl TotalLimits {
    /// The default limits of a server that is reached by a pipe alone. Its one peer is a program of
    /// the same user, whose messages may reach [`Limits::STDIO`] and take twice their length while
    /// they arrive.
    pub const PIPE: Self = Self {
        max_incoming: 65_536,
        max_bytes: 1 << 30,
    };
}

impl Default for TotalLimits {
    fn default() -> Self {
        Self {
            max_bytes: 256 << 20,
            ..Self::PIPE
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::STDIO
    }
}

/// Divisor of [`TotalLimits::max_bytes`] that gives the part left to the allocator.
pub const ALLOCATOR_SHARE: usize = 5;

/// Divisor of the bytes that may be held; gives the reserve for small messages.
pub const RESERVE_SHARE: usize = 8;

/// Divisor of the bytes that may be held; gives the most that may be kept beyond requests, such as
/// replay logs, results and references.
pub const KEPT_SHARE: usize = 2;

/// Most bytes that one connection, or one body, may hold and still be served from the reserve.
pub const SMALL_BYTES: usize = 64 << 10;

/// Longest message held by a handler, or body in transit, that does not count towards
/// [`TotalLimits::max_bytes`], in bytes. The limit on requests in flight bounds these to no more
/// than the total.
pub const UNCOUNTED_BYTES: usize = 4 << 10;

/// Longest `clientInfo`, and longest `capabilities`, that a server keeps of an `initialize`, in
/// bytes. A server keeps the members of a longer object that fit, in their order.
pub const MAX_INTRODUCTION_BYTES: usize = 4 << 10;

/// Overhead charged for a waiting request in addition to its frame, in bytes. Keeps many tiny
/// requests from outgrowing their cap.
pub const WAITING_REQUEST_BYTES: usize = 512;

/// Largest region of input that is copied when it leaves the driver's thread, in bytes; above it,
/// ownership of the whole block is passed on instead.
pub const COPY_OUT_BYTES: usize = 32 << 10;

/// Bytes in the streams of all actions of one endpoint above which a stream that breaks off is not
/// kept for a client that reconnects.
pub const MAX_LEFT_BYTES: usize = 64 << 20;

/// Most bytes of action data that a server keeps for answers that refer to it, in all and for one
/// answer; the oldest data are dropped first. Longer data are never referred to: the answer holds
/// them in full, or fails.
pub const MAX_REFERRED_BYTES: usize = 64 << 20;

/// Most answers whose data a server keeps for reference; the oldest are dropped first.
pub const MAX_REFERENCES: usize = 1024;

/// Most HTTP servers whose era a program remembers. Keeps a program that talks to ever new servers
/// from growing.
pub const MAX_KNOWN_SERVERS: usize = 1_000;

/// Most handlers of one connection that [sleep](crate::connection::Handle::sleep) at once; of all requests of
/// 2026-07-28 of one HTTP endpoint together. Further ones do not sleep. Keeps timers from growing.
pub const MAX_SLEEPS: usize = 500_000;

/// Most resources that one connection may be subscribed to. Stops a peer from pinning memory with
/// URIs.
pub const MAX_SUBSCRIPTIONS: usize = 10_000;

/// Most bytes of URIs and task ids that one connection may be subscribed to. Stops a peer from
/// pinning memory with a few long ones.
pub const MAX_SUBSCRIPTION_BYTES: usize = 1 << 20;

/// Most streams of `subscriptions/listen` that one connection may have open. Stops a peer from
/// having each change sent to it many times.
pub const MAX_LISTENS: usize = 64;

/// Most pages of one list that a client keeps.
pub const MAX_CACHED_PAGES: usize = 256;

/// Longest page of a list that a client keeps, in bytes.
pub const MAX_CACHED_BYTES: usize = 4 << 20;

/// Most tools of a server whose arguments a client mirrors in HTTP headers. Stops a server from
/// pinning memory with names.
pub const MAX_MIRRORED_TOOLS: usize = 10_000;

/// Default for the most audit events that wait for the audit's thread. Stops a slow audit from
/// filling memory.
pub const MAX_AUDIT_EVENTS: usize = 10_000;

/// Most tasks that one server keeps, including ended ones. Stops clients from pinning memory with
/// calls that they never ask for again.
pub const MAX_TASKS: usize = 1024;

/// Most tasks that one server keeps for one owner: a principal or, without authentication, an
/// address. An owner has the same share of [`MAX_TASK_BYTES`]. Stops one client from leaving no
/// tasks to others.
pub const MAX_TASKS_PER_OWNER: usize = 256;

/// Most bytes of results that tasks keep, in all. The result of a task that would exceed it is
/// replaced by an error.
pub const MAX_TASK_BYTES: usize = 64 << 20;

/// Longest that a task is kept, from its creation.
pub const MAX_TASK_TTL: Duration = Duration::from_secs(3600);

/// Most single-use client states that a server remembers as used. Beyond this, the oldest are
/// forgotten, and all states as old as those are refused.
pub const MAX_USED_STATES: usize = 65_536;

/// How often clients are told to poll a task.
pub const TASK_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Most clients whose rates and quotas a policy remembers; beyond this, the clients that asked
/// least are forgotten. Stops clients from pinning memory with names.
pub const MAX_RATED_CLIENTS: usize = 10_000;

/// How often one address may present wrong credentials, if the policy sets no rate of its own.
pub const WRONG_CREDENTIALS: Rate = Rate {
    burst: 100,
    per_second: 10,
};

/// How long an async verifier may take for one request, if the policy sets no time of its own.
pub const VERIFIER_TIMEOUT: Duration = Duration::from_secs(10);

/// Most verifications by an async verifier at a time; there is no verdict on the credentials of further requests.
pub const MAX_VERIFICATIONS: usize = 1000;

/// Most of a program's stderr that is kept for the answer of its one action, in bytes; the end is
/// kept.
pub const MAX_CAPTURED_BYTES: usize = 64 << 10;

/// Most cached tool results of a server. Stops clients from pinning memory with ever new arguments.
pub const MAX_KEPT_RESULTS: usize = 1024;

/// Most bytes of cached tool results and their arguments; a longer result is not cached. Stops a
/// few large results from pinning memory.
pub const MAX_KEPT_BYTES: usize = 16 << 20;

/// Longest tool arguments that are checked against the schema on the driver's thread, in bytes;
/// longer arguments are checked where the handler runs, so that they block no other request
/// (R-SCH-08).
pub const CHECK_HERE_BYTES: usize = 4 << 10;

/// Reads a time from a number of milliseconds.
pub(crate) fn millis<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_millis)
}

/// A century, which stands for "never".
const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The seconds a client is told to wait: `wait` rounded up, at least 1.
#[cfg(feature = "server")]
pub(crate) fn whole_seconds(wait: Duration) -> u128 {
    wait.as_millis().div_ceil(1000).max(1)
}

/// Whether a source that holds `own` of `all` places may take one more while `taken` are taken. The last
/// quarter is for sources that have less than a hundredth.
pub fn may_have_more(own: usize, taken: usize, all: usize) -> bool {
    taken < all - all / 4 || taken < all && own < few(all)
}

/// How many of `all` places count as few: a hundredth, and at least one.
fn few(all: usize) -> usize {
    match all / 100 {
        0 => 1,
        few => few,
    }
}

/// The instant `wait` after `now`. Does not overflow: [`Duration::MAX`] stands for "never".
pub(crate) fn later(now: Instant, wait: Duration) -> Instant {
    now.checked_add(wait).unwrap_or(now + FAR)
}
