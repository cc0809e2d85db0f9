//! Request correlation: sent and received requests that are not yet answered, cancellation and
//! deadlines.
//!
//! * [`PendingRequests`]: shared between threads; the request id encodes the slot's address.
//! * [`SecondaryMap`]: a side table with a value for each outgoing request, for a single owner.
//! * [`InFlight`]: the peer's requests, found by id and type of id.
//! * [`CancelToken`]: tells a handler whether its answer is still wanted.
//! * [`TimerQueue`]: the timers of a connection; the time is passed as an argument.
//!
//! Every request ends exactly once: the first that finds it pending in its table decides the outcome
//! (R-CAN-11), so an answer, a cancellation, a deadline and the loss of the connection may race
//! freely.

mod arena;
mod cancel;

mod in_flight;
mod key;
mod outgoing;
mod secondary_map;
#[cfg(test)]
mod tests;
mod timers;

pub use cancel::{CancelToken, Cancelled};
pub use in_flight::{InFlight, IncomingKey, Refused, Vacant};
pub use key::RequestKey;
pub use outgoing::{PendingRequests, Unregistered};
pub use secondary_map::SecondaryMap;
pub(crate) use timers::Deadlines;
pub use timers::{TimerKey, TimerQueue};
