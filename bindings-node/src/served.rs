//! The state that every connection of a server uses.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mcpbolt::connection::Config;
use mcpbolt::policy::Policy;
use mcpbolt::server::{SharedRegistry, StateSigner, Template};

use crate::delegate::Delegate;

/// The resource templates by number, to extract the variables of a URI. All other work of an operation is
/// JavaScript's.
pub type Templates = HashMap<u32, Template>;

/// The current registry, and the configuration of its connections.
#[derive(Clone)]
pub struct Served {
    pub live: Arc<SharedRegistry<Templates>>,
    pub config: Arc<Config>,
    pub signer: Option<StateSigner>,
    /// The policy, also where a front enforces it.
    pub policy: Option<Arc<Policy>>,
    /// Whether requests for lists are passed to JavaScript.
    pub passes_lists: Arc<AtomicBool>,
    /// Answers requests instead of the registry, if present.
    pub delegate: Option<Arc<Delegate>>,
}
