//! The state that all requests to a consent proxy share.

use super::options::ConsentProxyOptions;
use super::seal::Seal;
use super::signer::Signer;
use super::used::Used;
use crate::server::TokenRules;

/// The server. See the [module documentation](super).
#[derive(Debug)]
pub struct ConsentProxy {
    pub(super) options: ConsentProxyOptions,
    pub(super) seal: Seal,
    pub(super) signer: Signer,
    pub(super) used: Used,
    /// What its tokens must be.
    pub(super) rules: TokenRules,
}
