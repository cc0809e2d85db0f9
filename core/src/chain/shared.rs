//! The state that all connections of one front share.

use std::sync::Arc;

use super::lanes::Lanes;
use super::parts::Parts;
use super::question::Parking;

pub(super) struct Shared {
    pub parts: Arc<Parts>,
    /// Calls of the stateless era whose clients have a question to answer.
    pub parking: Arc<Parking>,
    /// The connections to the server that clients without a connection of their own use.
    pub lanes: Arc<Lanes>,
}
