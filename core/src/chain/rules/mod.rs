//! Middleware that this crate has, for one server ([`External::with`](super::External::with)) or for a front.

mod approval;
mod breaker;
mod masking;
mod pins;
mod reports;
mod retry;

pub use approval::Approval;
pub use breaker::Breaker;
pub use masking::{MaskedTexts, Masking};
pub use pins::{PinDrift, Pins, tool_pin};
pub use reports::{CallReports, UpstreamCall};
pub use retry::Retry;
