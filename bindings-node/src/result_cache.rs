//! Cached results of tools.

use std::sync::Arc;

use mcpbolt::server::{self, CacheScope};
use napi_derive::napi;

use crate::answers::Encoded;
use crate::error::Result;
use crate::json::duration;

/// A cache of results, which expire after a set time.
#[napi]
pub struct ResultCache(server::Results<Arc<Encoded>>);

#[napi]
impl ResultCache {
    /// Creates an empty cache.
    #[napi(constructor, catch_unwind)]
    pub fn new(ttl_ms: f64, is_public: bool) -> Result<Self> {
        let scope = match is_public {
            true => CacheScope::Public,
            false => CacheScope::Private,
        };
        Ok(Self(server::Results::new(duration(ttl_ms)?, scope)))
    }

    /// Removes the results of a tool.
    #[napi(catch_unwind)]
    pub fn forget(&self, tool: String) {
        self.0.forget(&tool);
    }

    /// Removes the results of all tools.
    #[napi(catch_unwind)]
    pub fn forget_all(&self) {
        self.0.forget_all();
    }

    /// Looks up a call; `None` if its result is not to be cached.
    #[napi(catch_unwind)]
    pub fn ask(&self, tool: String, arguments: String, who: Option<String>) -> Option<CachedCall> {
        let call = self.0.ask(&tool, &arguments, who.as_deref());
        call.map(CachedCall)
    }
}

/// A call whose result is cached, or may be.
#[napi]
pub struct CachedCall(server::KeptCall<Arc<Encoded>>);

#[napi]
impl CachedCall {
    /// The cached result of the same call.
    #[napi(catch_unwind)]
    pub fn found(&self) -> Option<Encoded> {
        let found = self.0.found()?;
        Some(Encoded::clone(&found))
    }

    /// Caches its result.
    #[napi(catch_unwind)]
    pub fn keep(&self, encoded: Encoded) {
        let bytes = size_of::<Encoded>() + encoded.text.len();
        self.0.keep(Arc::new(encoded), bytes);
    }
}
