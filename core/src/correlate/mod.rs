//! Who waits for what: requests sent and not yet answered, requests received and not yet
//! answered, cancellation and deadlines.
//!
//! * [`Outgoing`]: lock-free, shared between threads; our request id *is* the slot's address.
//! * [`OwnedOutgoing`]: the same for one owner, without atomics.
//! * [`Beside`]: what one owner keeps of each outgoing request.
//! * [`Incoming`]: the peer's requests, found by their id with its type.
//! * [`CancelToken`]: what a handler asks whether anybody still wants its answer.
//! * [`TimerWheel`]: every deadline of a connection; time is an argument.
//!
//! Every request ends exactly once. What decides is one compare-and-swap on the slot's word
//! (R-CAN-11), so an answer, a cancel, a deadline and the loss of the connection may race freely.

mod arena;
mod beside;
mod cancel;
mod chunks;
mod incoming;
mod key;
mod outgoing;
mod owned;
#[allow(unsafe_code)]
mod slab;
mod sync;
#[cfg(test)]
mod tests;
mod wheel;

pub use beside::Beside;
pub use cancel::{CancelToken, Cancelled};
pub use incoming::{Incoming, IncomingKey, Refused, Vacant};
pub use key::RequestKey;
pub use outgoing::{Outgoing, Unregistered};
pub use owned::OwnedOutgoing;
pub use wheel::{TimerKey, TimerWheel};
