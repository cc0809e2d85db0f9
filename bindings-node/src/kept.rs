//! Results of tools that are kept for a while.

use std::sync::Arc;

use mcpbolt::server;
use napi_derive::napi;

use crate::error::Result;
use crate::link::duration;
use crate::offer::scope;

/// An answer as JavaScript has it: its kind, as `submit` counts them, and its text.
#[napi(object)]
#[derive(Clone)]
pub struct Made {
    pub kind: u32,
    pub text: String,
}

/// Results that are kept for so long.
#[napi]
pub struct KeptResults(server::Results<Arc<Made>>);

#[napi]
impl KeptResults {
    /// None yet.
    #[napi(constructor)]
    pub fn new(ttl_ms: f64, is_public: bool) -> Result<Self> {
        let results = server::Results::new(duration(ttl_ms)?, scope(is_public));
        Ok(Self(results))
    }

    /// Forgets those of a tool.
    #[napi]
    pub fn forget(&self, tool: String) {
        self.0.forget(&tool);
    }

    /// Forgets those of all tools.
    #[napi]
    pub fn forget_all(&self) {
        self.0.forget_all();
    }

    /// What a call asks, unless its result is not to be kept.
    #[napi]
    pub fn ask(&self, tool: String, arguments: String, who: Option<String>) -> Option<KeptCall> {
        let call = self.0.ask(&tool, &arguments, who.as_deref());
        call.map(KeptCall)
    }
}

/// A call whose result is kept, or may be.
#[napi]
pub struct KeptCall(server::KeptCall<Arc<Made>>);

#[napi]
impl KeptCall {
    /// The result of the same call before.
    #[napi]
    pub fn found(&self) -> Option<Made> {
        let found = self.0.found()?;
        Some(Made::clone(&found))
    }

    /// Keeps its result.
    #[napi]
    pub fn keep(&self, made: Made) {
        let bytes = size_of::<Made>() + made.text.len();
        self.0.keep(Arc::new(made), bytes);
    }
}
