//! The task of every contender: validate the message and find the members that a router needs.

use std::borrow::Cow;

use mcpbolt::action;
use mcpbolt::message::{Envelope, Field, Frame, Kind, MessageRef, decode};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The engine's decode.
#[inline]
pub fn engine(frame: Frame<'_>, envelope: &mut Envelope) -> bool {
    decode(frame, 512, envelope).is_ok()
}

/// The top level as raw values.
#[derive(Deserialize)]
pub struct Raw<'a> {
    /// `jsonrpc`
    #[serde(borrow)]
    pub jsonrpc: Cow<'a, str>,
    /// `id`
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    /// `method`
    #[serde(borrow)]
    pub method: Option<Cow<'a, str>>,
    /// `params`
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    /// `result`
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
    /// `error`
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
}

/// The members of `params` that a router needs.
#[derive(Deserialize)]
pub struct Routes<'a> {
    /// `name`
    #[serde(borrow)]
    pub name: Option<&'a RawValue>,
    /// `uri`
    #[serde(borrow)]
    pub uri: Option<&'a RawValue>,
    /// `requestId`
    #[serde(borrow, rename = "requestId")]
    pub request_id: Option<&'a RawValue>,
    /// `progressToken`
    #[serde(borrow, rename = "progressToken")]
    pub progress_token: Option<&'a RawValue>,
    /// `_meta`
    #[serde(borrow, rename = "_meta")]
    pub meta: Option<MetaRoutes<'a>>,
}

/// The members of `_meta` that a router needs.
#[derive(Deserialize)]
pub struct MetaRoutes<'a> {
    /// `progressToken`
    #[serde(borrow, rename = "progressToken")]
    pub progress_token: Option<&'a RawValue>,
    /// The protocol revision.
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    pub protocol_version: Option<&'a RawValue>,
}

/// serde_json over raw values, top level only.
pub fn raw(bytes: &[u8]) -> Raw<'_> {
    serde_json::from_slice(bytes).expect("valid")
}

/// serde_json over raw values with the routing members.
pub fn raw_routes(bytes: &[u8]) -> (Raw<'_>, Option<Routes<'_>>) {
    let raw = raw(bytes);
    let routes = raw
        .params
        .and_then(|params| serde_json::from_str(params.get()).ok());
    (raw, routes)
}

/// Whether the engine and serde_json find the same members in a message; checked before timing.
pub fn agree(frame: Frame<'_>) -> bool {
    use mcpbolt::message::{Field, MessageRef};
    let mut envelope = Envelope::new();
    if !engine(frame, &mut envelope) || envelope.fault().is_some() {
        return false;
    }
    let view = MessageRef::new(frame, &envelope);
    let (raw, routes) = raw_routes(frame.bytes());
    let mut same = view.id().map(|id| id.raw()) == raw.id.map(RawValue::get)
        && view.method() == raw.method
        && view.params() == raw.params.map(RawValue::get)
        && view.result() == raw.result.map(RawValue::get)
        && view.error() == raw.error.map(RawValue::get);
    if let Some(routes) = routes {
        let meta = routes.meta.as_ref();
        let pairs = [
            (Field::Name, routes.name),
            (Field::Uri, routes.uri),
            (Field::RequestId, routes.request_id),
            (Field::Progress, routes.progress_token),
            (
                Field::ProgressToken,
                meta.and_then(|meta| meta.progress_token),
            ),
            (
                Field::ProtocolVersion,
                meta.and_then(|meta| meta.protocol_version),
            ),
        ];
        same &= pairs
            .iter()
            .all(|(field, value)| view.raw(*field) == value.map(RawValue::get));
    }
    same
}

/// The engine's decode of an action.
#[inline]
pub fn engine_of_actions(frame: Frame<'_>, envelope: &mut Envelope) -> bool {
    action::decode(frame, 512, envelope).is_ok()
}

/// A request of the action dialect as raw values.
#[derive(Deserialize)]
pub struct RawAction<'a> {
    /// `action`
    #[serde(borrow)]
    pub action: Option<&'a RawValue>,
    /// `params`
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    /// `tool`
    #[serde(borrow)]
    pub tool: Option<&'a RawValue>,
    /// `context`
    #[serde(borrow)]
    pub context: Option<&'a RawValue>,
    /// `metadata`
    #[serde(borrow)]
    pub metadata: Option<&'a RawValue>,
}

/// The members of `metadata` that a router needs.
#[derive(Deserialize)]
pub struct MetadataRoutes<'a> {
    /// `request_id`
    #[serde(borrow)]
    pub request_id: Option<&'a RawValue>,
    /// `client_id`
    #[serde(borrow)]
    pub client_id: Option<&'a RawValue>,
    /// `protocol_version`
    #[serde(borrow)]
    pub protocol_version: Option<&'a RawValue>,
    /// `auth`
    #[serde(borrow)]
    pub auth: Option<&'a RawValue>,
}

/// serde_json over raw values with the routing members of an action.
pub fn raw_action(bytes: &[u8]) -> (RawAction<'_>, Option<MetadataRoutes<'_>>) {
    let raw: RawAction<'_> = serde_json::from_slice(bytes).expect("valid");
    let routes = raw
        .metadata
        .and_then(|metadata| serde_json::from_str(metadata.get()).ok());
    (raw, routes)
}

/// Whether the engine and serde_json find the same members in an action.
pub fn agree_on_action(frame: Frame<'_>) -> bool {
    let mut envelope = Envelope::new();
    if !engine_of_actions(frame, &mut envelope) || envelope.kind() != Kind::Request {
        return false;
    }
    let view = MessageRef::new(frame, &envelope);
    let (raw, routes) = raw_action(frame.bytes());
    let routes = routes.expect("there is metadata");
    [
        (Field::Name, raw.action),
        (Field::Arguments, raw.params),
        (action::TOOL, raw.tool),
        (action::CONTEXT, raw.context),
        (Field::Meta, raw.metadata),
        (Field::Id, routes.request_id),
        (Field::ProtocolVersion, routes.protocol_version),
    ]
    .iter()
    .all(|(field, value)| view.raw(*field) == value.map(RawValue::get))
}
