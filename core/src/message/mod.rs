//! Frames as JSON-RPC messages: one validated pass in, appended bytes out.
//!
//! This room knows JSON-RPC and no MCP; that it also notes where a gateway's routing members
//! lie (`params.name`, `_meta`, …) is data, not meaning.

mod batch;
mod decode;
pub mod encode;
mod envelope;
mod fault;
mod frame;
#[cfg(feature = "codec")]
pub mod framed;
mod id;
mod keys;
mod owned;
mod owned_id;
mod view;

pub use batch::{Elements, batch};
pub use decode::{decode, decode_unpadded};
pub use envelope::{Dialect, Envelope, Field, Kind, Span};
pub use fault::Fault;
pub use frame::Frame;
pub use id::{IdKind, RequestId, WriteId};
pub use owned::Message;
pub use owned_id::OwnedId;
pub use view::MessageRef;
