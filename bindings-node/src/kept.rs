//! Cached results of tools.

use std::sync::Arc;

use mcpbolt::server;
use napi_derive::napi;

use crate::error::Result;
use crate::link::duration;
use crate::offer::scope;

/// An encoded answer: its kind, as in `submit`, and its text.
#[napi(object)]
#[derive(Clone)]
pub struct Made {
    pub kind: u32,
    pub text: String,
}

/// A cache of results, which expire after a set time.
#[napi]
pub struct KeptResults(server::Results<Arc<Made>>);

#[napi]
impl KeptResults {
    /// Creates an empty cache.
    #[napi(constructor, catch_unwind)]
    pub fn new(ttl_ms: f64, is_public: bool) -> Result<Self> {
        let results = server::Results::new(duration(ttl_ms)?, scope(is_public));
        Ok(Self(results))
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
    pub fn ask(&self, tool: String, arguments: String, who: Option<String>) -> Option<KeptCall> {
        let call = self.0.ask(&tool, &arguments, who.as_deref());
        call.map(KeptCall)
    }
}

/// A call whose result is cached, or may be.
#[napi]
pub struct KeptCall(server::KeptCall<Arc<Made>>);

#[napi]
impl KeptCall {
    /// The cached result of the same call.
    #[napi(catch_unwind)]
    pub fn found(&self) -> Option<Made> {
        let found = self.0.found()?;
        Some(Made::clone(&found))
    }

    /// Caches its result.
    #[napi(catch_unwind)]
    pub fn keep(&self, made: Made) {
        let bytes = size_of::<Made>() + made.text.len();
        self.0.keep(Arc::new(made), bytes);
    }
}
