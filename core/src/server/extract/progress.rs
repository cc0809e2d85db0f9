//! How far a call has come, as an argument of its handler.

use super::FromCall;
use crate::handler::HandlerError;
use crate::server::call::Context;

/// Reports how far the call has come.
///
/// ```
/// # #[cfg(feature = "macros")] {
/// use mcpbolt::prelude::*;
///
/// /// Copies files.
/// #[tool]
/// async fn copy(files: Vec<String>, progress: ProgressReporter) {
///     let total = files.len() as f64;
///     for (index, file) in files.iter().enumerate() {
///         progress.report(index as f64, Some(total), Some(file));
///     }
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ProgressReporter(Context);

impl ProgressReporter {
    /// As [`Context::progress`].
    pub fn report(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.0.progress(progress, total, message);
    }
}

impl FromCall for ProgressReporter {
    fn from_call(context: &Context) -> Result<Self, HandlerError> {
        Ok(Self(context.clone()))
    }
}
