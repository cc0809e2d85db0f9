//! Every bound of the engine, with its unit and what it stops. Nothing is preallocated from a
//! length the peer claims, and nothing a peer sends grows without one of these (R-RPC-23).

use std::time::{Duration, Instant};

/// The bounds of one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Longest single message, in bytes. Longer ones are discarded as they arrive and refused.
    pub max_message_bytes: usize,
    /// Deepest nesting of arrays and objects in one message.
    pub max_depth: usize,
    /// Longest batch array (revision 2025-03-26), in elements.
    pub max_batch_len: usize,
    /// Requests of the peer that may be in flight at once; further ones wait.
    pub max_incoming: usize,
    /// Bytes of requests that wait for others to be answered; beyond it they are refused as
    /// overload, with `retryAfter`.
    pub waiting_cap_bytes: usize,
    /// Requests of this side that may wait for an answer at once; further ones fail locally.
    pub max_outgoing: usize,
    /// Bytes waiting to be written above which new requests wait, log messages are shed and only
    /// the newest progress of each request is kept. Answers are never dropped.
    pub output_mark_bytes: usize,
    /// Bytes waiting to be written above which reading stops and the stall timer runs, requests
    /// of this side fail at once, and a notification of this side ends the connection.
    pub output_cap_bytes: usize,
    /// How long the peer may take nothing of an output above its cap before it is disconnected.
    pub stall_timeout: Duration,
    /// Silence after which the peer is asked for a sign of life, where the revision has `ping`
    /// (R-PNG-02); never when `None`.
    pub keepalive_interval: Option<Duration>,
    /// How long the peer may take to give that sign before it is disconnected.
    pub keepalive_timeout: Duration,
    /// How long a connection may be without traffic and without anything in flight before it is
    /// closed; for ever when `None`.
    pub idle_timeout: Option<Duration>,
    /// How long a request waits for its answer unless the call says otherwise (R-CAN-09).
    pub request_timeout: Duration,
    /// Most that progress may extend a request to, counted from its start (R-CAN-09).
    pub max_request_timeout: Duration,
    /// How long each step of the handshake may take (R-LIF-16).
    pub handshake_timeout: Duration,
    /// How long an era probe waits before the client falls back to `initialize` (R-ERA-07).
    pub probe_timeout: Duration,
    /// How fast the peer may send requests; those beyond it are refused as overload, with
    /// `retryAfter` (R-TOL-03, R-CMP-04). Pings and discovery are free. No limit when `None`.
    pub request_rate: Option<Rate>,
    /// How fast this side reports progress and logs; beyond it only the newest progress of each
    /// request is kept, and log messages are left out (R-PRG-04, R-LOG-05). When `None`, only how
    /// fast the peer reads limits it.
    pub report_rate: Option<Rate>,
}

/// How often something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// So often at once; at least once.
    pub burst: u32,
    /// So often in each second, on average.
    pub per_second: u32,
}

/// How much may be done in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// So many calls.
    pub calls: u64,
    /// From the first of them on; without a length, they are not counted.
    pub period: Duration,
}

impl Limits {
    /// Bounds for a pipe to a process that the user started.
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

    /// Bounds for a peer across a network.
    pub const NETWORK: Self = Self {
        max_message_bytes: 16 << 20,
        waiting_cap_bytes: 4 << 20,
        output_cap_bytes: 64 << 20,
        ..Self::STDIO
    };
}

/// The bounds of all connections of one configuration together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TotalLimits {
    /// Requests of peers in flight above which new ones are refused as overload.
    pub max_incoming: usize,
    /// Bytes queued, in and out, above which new requests are refused as overload, log messages
    /// are shed and only the newest progress of each request is kept.
    pub queued_cap_bytes: usize,
}

impl Default for TotalLimits {
    fn default() -> Self {
        Self {
            max_incoming: 65_536,
            queued_cap_bytes: 1 << 30,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::STDIO
    }
}

/// Longest request id kept, in bytes of its raw token; a longer one is refused as an invalid
/// request. Stops a peer from pinning memory with ids.
pub const MAX_ID_BYTES: usize = 4096;

/// What a request that waits costs beside its frame, in bytes. Keeps many tiny ones from
/// outgrowing their cap.
pub const WAITING_REQUEST_BYTES: usize = 512;

/// Smallest read offered to a driver, in bytes.
pub const READ_BYTES: usize = 64 << 10;

/// Capacity an input buffer keeps after a large message, in bytes. A buffer shrinks to this only
/// after [`SHRINK_AFTER`] small messages, so alternating sizes do not thrash the allocator.
pub const KEEP_BYTES: usize = 256 << 10;

/// Drained reads without a large message after which a grown buffer is given back.
pub const SHRINK_AFTER: u32 = 64;

/// Largest region of input that is copied out to leave the driver's thread; above it the whole
/// block changes hands instead.
pub const COPY_OUT_BYTES: usize = 32 << 10;

/// Largest frame that is copied into the output's running segment; larger ones are queued as
/// they are and written vectored.
pub const COPY_IN_BYTES: usize = 32 << 10;

/// Bytes in the streams of all actions of one endpoint above which a stream that breaks off is not kept
/// for who comes back.
pub const MAX_LEFT_BYTES: usize = 64 << 20;

/// Most data of actions that answers of a server refer to, and of one of them, in bytes; the oldest give
/// way. What is longer is answered whole, or not at all.
pub const MAX_REFERRED_BYTES: usize = 64 << 20;

/// Most answers whose data a server keeps so; the oldest give way.
pub const MAX_REFERENCES: usize = 1024;

/// Most servers on HTTP of which a program remembers how they open. Stops one that talks to ever
/// other servers from growing.
pub const MAX_KNOWN_SERVERS: usize = 1_000;

/// Most resources that one connection may be subscribed to. Stops a peer from pinning memory with
/// URIs.
pub const MAX_SUBSCRIPTIONS: usize = 10_000;

/// Most streams of `subscriptions/listen` that one connection may have open. Stops a peer from
/// having each change told to it over and over.
pub const MAX_LISTENS: usize = 64;

/// How long a cancel is kept that overtook its request on another stream of its session.
pub const EARLY_CANCEL: Duration = Duration::from_secs(5);

/// Most such cancels that a session keeps.
pub const MAX_EARLY_CANCELS: usize = 64;

/// Most requests of which a session knows that they came: a cancel of one of them that is no
/// longer in flight came too late, not too early.
pub const MAX_KNOWN_IDS: usize = 1024;

/// Most pages of one list that a client keeps.
pub const MAX_CACHED_PAGES: usize = 256;

/// Longest page of a list that a client keeps, in bytes.
pub const MAX_CACHED_BYTES: usize = 4 << 20;

/// Most tools of a server whose arguments a client repeats in headers. Stops a server from pinning
/// memory with names.
pub const MAX_MIRRORED_TOOLS: usize = 10_000;

/// Most tasks that one server keeps, the ended ones included. Stops clients from pinning memory
/// with calls that they never ask for again.
pub const MAX_TASKS: usize = 1024;

/// Most bytes of results that tasks keep, in all; the result of a task that would exceed it is
/// an error.
pub const MAX_TASK_BYTES: usize = 64 << 20;

/// Longest that a task is kept, from its creation.
pub const MAX_TASK_TTL: Duration = Duration::from_secs(3600);

/// Most states of clients that a server remembers as used up, where each is good for one use. When
/// there are more, the oldest are forgotten, and all that are as old are refused.
pub const MAX_USED_STATES: usize = 65_536;

/// How often clients are told to ask how far a task is.
pub const TASK_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Most clients whose rates and quotas a policy keeps apart; beyond it those that are new share one.
/// Stops clients from pinning memory with names.
pub const MAX_RATED_CLIENTS: usize = 10_000;

/// Most of what a program writes to stderr that is kept for the answer of its one action, in bytes:
/// the end of it.
pub const MAX_CAPTURED_BYTES: usize = 64 << 10;

/// Most results of tools that a server keeps for those who ask the same. Stops clients from pinning
/// memory with questions.
pub const MAX_KEPT_RESULTS: usize = 1024;

/// What those results and the arguments that they answer may take together, in bytes; one that is
/// longer is not kept. Stops a few large results from doing the same.
pub const MAX_KEPT_BYTES: usize = 16 << 20;

/// Longest arguments of a tool that are checked against its schema on the driver's thread, in
/// bytes; longer ones are checked where the handler runs, so that they hold up nobody (R-SCH-08).
pub const CHECK_HERE_BYTES: usize = 4 << 10;

/// A time that never comes.
const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What a client is told to wait, in seconds: at least one.
#[cfg(feature = "server")]
pub(crate) fn whole_seconds(wait: Duration) -> u128 {
    wait.as_millis().div_ceil(1000).max(1)
}

/// The instant `wait` from `now`, however long it is: [`Duration::MAX`] stands for "never".
pub(crate) fn later(now: Instant, wait: Duration) -> Instant {
    now.checked_add(wait).unwrap_or(now + FAR)
}
