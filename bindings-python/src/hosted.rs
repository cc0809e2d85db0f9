//! The host of each connection of a server on the network, whose connections threads of the engine drive.

use std::sync::Arc;

use mcpbolt::connection::{Config, Handle};
use mcpbolt::policy::Policy;
use mcpbolt::server::{ChangeFeed, Hosting, ServerHost};
use mcpbolt::store::SharedStore;

use crate::bridge::Bridge;
use crate::hub::Hub;

/// Makes the host for each connection of a server on the network.
pub struct Hosted(pub Arc<Hub>);

impl Hosting for Hosted {
    fn config(&self) -> &Arc<Config> {
        &self.0.served.config
    }

    fn host(&self, handle: Handle, _timers: Option<&Handle>) -> ServerHost {
        let live = self.0.served.live.clone();
        let bridge = Bridge::new(&self.0, handle.clone());
        ServerHost::shared(live, handle, Box::new(bridge))
    }

    fn policy(&self) -> Option<Arc<Policy>> {
        self.0.served.live.snapshot().registry.policy().cloned()
    }

    fn wants_heads(&self) -> bool {
        self.0.served.kernel.is_some()
    }

    fn share_states(&self, key: [u8; 32]) {
        if let Some(signer) = &self.0.served.state_signer {
            signer.share(key);
        }
    }

    fn share_tasks(&self, store: Arc<dyn SharedStore>) {
        self.0.served.live.snapshot().registry.share_tasks(store);
    }

    fn change_feed(&self) -> Option<ChangeFeed> {
        Some(self.0.served.live.snapshot().registry.change_feed())
    }
}
