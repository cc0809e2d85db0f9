//! State about a server of the action dialect that the clones of a client share.

use super::breaker::Breaker;
use super::schemas::ActionSchemas;

/// The schemas that were fetched, and the circuit breaker.
#[derive(Debug, Default)]
pub(in crate::client) struct ActionState {
    pub schemas: ActionSchemas,
    pub breaker: Breaker,
}
