//! Middleware that this crate has, for one server ([`External::with`](super::External::with)) or for a front.

use super::middleware::{ChainRequest, RelayDirection};
use crate::mcp::Method;

mod approval;
mod breaker;
mod listed;
mod masking;
mod pins;
mod reports;
mod retry;

pub use approval::Approval;
pub use breaker::Breaker;
#[cfg(feature = "settings")]
pub(crate) use breaker::MAX_FAILURES;
pub use masking::{MaskedTexts, Masking};
pub use pins::{PinDrift, Pins, tool_pin};
pub use reports::{CallReports, UpstreamCall};
#[cfg(feature = "settings")]
pub(crate) use retry::MAX_REPEATS;
pub use retry::Retry;

/// Whether a request is one to the server that it answers: neither a question to the client, nor a stream that stays open.
fn expects_answer(request: &ChainRequest) -> bool {
    request.direction() == RelayDirection::ToServer
        && request.known_method() != Some(Method::Listen)
}
