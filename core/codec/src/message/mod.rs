//! JSON-RPC messages: decoding in one validating pass, encoding by appending bytes.
//!
//! This module knows JSON-RPC but no MCP. It also records where the members lie that gateways route
//! by (`params.name`, `_meta`, …), without interpreting them.

mod batch;
mod decode;
pub mod encode;
mod envelope;
mod fault;
mod frame;
#[cfg(feature = "tokio-util")]
pub mod framed;
mod id;
mod key;
mod owned;
mod owned_id;
pub(crate) mod pass;
mod view;

pub use batch::batch;
pub use decode::{decode, decode_unpadded};
pub use envelope::{Dialect, Envelope, Field, Kind, Span};
pub use fault::Fault;
pub use frame::Frame;
pub use id::{IdKind, RequestId, WriteId};
pub use owned::Message;
pub use owned_id::OwnedId;
pub use view::MessageRef;
