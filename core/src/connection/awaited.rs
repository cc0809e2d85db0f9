//! What a host waits for before it decides on a request.

use std::time::Duration;

use super::principal::Principal;
use super::rejection::Rejection;
use crate::limits::Quota;

/// What a host has waited for before it [decides](super::Handle::decide) on a request.
#[derive(Clone, Debug)]
pub struct Awaited {
    /// The sender, `None` if nobody says who it is; or why its credentials are not accepted.
    pub sender: Result<Option<Principal>, Rejection>,
    /// Whether the sender is within its limits, if they are counted where several processes do; `None` if this process
    /// counts.
    pub counted: Option<Result<(), Limited>>,
}

/// The limit that a client has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limited {
    /// Its rate of requests. After this time it may send another one.
    Rate(Duration),
    /// Its quota of tool calls. After this time the next period begins.
    Quota(Quota, Duration),
}
