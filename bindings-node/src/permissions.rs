//! Permissions on their own, for programs that check names and URIs themselves.

use mcpbolt::policy;
use napi_derive::napi;

use crate::error::{Result, misuse};

/// The engine's part of a `PermissionManager`.
#[napi]
pub struct Permissions(policy::Permissions);

#[napi]
impl Permissions {
    /// Reads permissions from JSON.
    #[napi(constructor, catch_unwind)]
    pub fn new(json: String) -> Result<Self> {
        let read = serde_json::from_str(&json);
        read.map(Self)
            .map_err(|why: serde_json::Error| misuse(format!("permissions: {why}")))
    }

    /// Whether a resource may be read.
    #[napi(catch_unwind)]
    pub fn may_read(&self, uri: String) -> bool {
        self.0.may_read(&uri)
    }

    /// Whether a tool may be called.
    #[napi(catch_unwind)]
    pub fn may_call(&self, tool: String) -> bool {
        self.0.may_call(&tool)
    }
}
