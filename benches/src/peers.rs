//! Decoding by other libraries; each function returns whether it succeeded, or the decoded value.

/// simd-json's tape, on a copy because it changes its input.
pub fn simd_json_tape(bytes: &[u8], copy: &mut Vec<u8>) -> bool {
    copy.clear();
    copy.extend_from_slice(bytes);
    simd_json::to_tape(copy).is_ok()
}

/// simd-json's borrowed value, on a copy.
pub fn simd_json_borrowed(bytes: &[u8], copy: &mut Vec<u8>) -> bool {
    copy.clear();
    copy.extend_from_slice(bytes);
    simd_json::to_borrowed_value(copy).is_ok()
}

/// The top level as sonic-rs' lazy values (checked).
#[derive(serde::Deserialize)]
pub struct Lazy<'a> {
    /// `id`
    #[serde(borrow)]
    pub id: Option<sonic_rs::LazyValue<'a>>,
    /// `method`
    #[serde(borrow)]
    pub method: Option<sonic_rs::LazyValue<'a>>,
    /// `params`
    #[serde(borrow)]
    pub params: Option<sonic_rs::LazyValue<'a>>,
    /// `result`
    #[serde(borrow)]
    pub result: Option<sonic_rs::LazyValue<'a>>,
    /// `error`
    #[serde(borrow)]
    pub error: Option<sonic_rs::LazyValue<'a>>,
}

/// sonic-rs with checked lazy values.
pub fn sonic_lazy(bytes: &[u8]) -> Option<Lazy<'_>> {
    sonic_rs::from_slice(bytes).ok()
}

/// rmcp's type for a message that a server receives.
pub type RmcpAtServer = rmcp::service::RxJsonRpcMessage<rmcp::RoleServer>;
/// rmcp's type for a message that a client receives.
pub type RmcpAtClient = rmcp::service::RxJsonRpcMessage<rmcp::RoleClient>;

/// rmcp's decode, on the side that receives such a message.
pub fn rmcp(bytes: &[u8], at_server: bool) -> bool {
    if at_server {
        serde_json::from_slice::<RmcpAtServer>(bytes).is_ok()
    } else {
        serde_json::from_slice::<RmcpAtClient>(bytes).is_ok()
    }
}

/// jsonrpsee's decode, given the kind of message to expect.
pub fn jsonrpsee(bytes: &[u8], kind: mcpbolt::message::Kind) -> bool {
    use jsonrpsee_types::{Notification, Request, Response};
    use mcpbolt::message::Kind;
    use serde_json::value::RawValue;
    match kind {
        Kind::Request => serde_json::from_slice::<Request<'_>>(bytes).is_ok(),
        Kind::Notification => {
            serde_json::from_slice::<Notification<'_, Option<&RawValue>>>(bytes).is_ok()
        }
        _ => serde_json::from_slice::<Response<'_, &RawValue>>(bytes).is_ok(),
    }
}
