//! The value whose methods handle calls: one for all calls, or one for each session.

use std::fmt;
use std::sync::Arc;

use super::given::Received;
use crate::handler::HandlerError;

/// The value whose type has `#[mcpbolt::tools]`.
pub enum Owner<T> {
    /// One value for all calls.
    Shared(Arc<T>),
    /// Makes the value of a session.
    OfSession(Arc<dyn Fn() -> T + Send + Sync>),
}

impl<T: Send + Sync + 'static> Owner<T> {
    /// Returns the value that handles this call.
    ///
    /// # Errors
    /// When the call has no session: it is of an inline tool.
    pub fn of(&self, call: &Received<'_>) -> Result<Arc<T>, HandlerError> {
        match self {
            Self::Shared(value) => Ok(value.clone()),
            Self::OfSession(make) => {
                let values = call.context()?.session_values();
                let missing = || HandlerError::new("the call has no session");
                Ok(values.ok_or_else(missing)?.get_or_make(&**make))
            }
        }
    }
}

impl<T> Clone for Owner<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Shared(value) => Self::Shared(value.clone()),
            Self::OfSession(make) => Self::OfSession(make.clone()),
        }
    }
}

impl<T> fmt::Debug for Owner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared(_) => "Shared",
            Self::OfSession(_) => "OfSession",
        })
    }
}
