//! A frame viewed through its record.

use std::borrow::Cow;

use super::envelope::{Dialect, Envelope, Field, Kind};
use super::fault::Fault;
use super::frame::Frame;
use super::id::RequestId;
use super::owned::Message;
use crate::json::JsonStr;
use crate::scan;

/// A borrowed message: the frame's bytes, and the record of where its members lie.
#[derive(Clone, Copy, Debug)]
pub struct MessageRef<'a> {
    bytes: &'a [u8],
    envelope: &'a Envelope,
}

impl<'a> MessageRef<'a> {
    /// Views `frame` through the record that [`decode`](super::decode) made of it.
    ///
    /// With the record of another frame, the accessors return nonsense or `None`, but never panic.
    #[inline]
    pub fn new(frame: Frame<'a>, envelope: &'a Envelope) -> Self {
        Self::from_bytes(frame.bytes(), envelope)
    }

    #[inline]
    pub(super) fn from_bytes(bytes: &'a [u8], envelope: &'a Envelope) -> Self {
        Self { bytes, envelope }
    }

    /// The whole message.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The record.
    #[inline]
    pub fn envelope(&self) -> &'a Envelope {
        self.envelope
    }

    /// The kind of message.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.envelope.kind()
    }

    /// Why the message is [`Kind::Invalid`].
    #[inline]
    pub fn fault(&self) -> Option<Fault> {
        self.envelope.fault()
    }

    /// The id; present also in an invalid message if the id itself is valid. An action's may be any
    /// value.
    #[inline]
    pub fn id(&self) -> Option<RequestId<'a>> {
        self.raw(Field::Id).map(RequestId::from_decoded)
    }

    /// The protocol that the message must be answered in.
    #[inline]
    pub fn dialect(&self) -> Dialect {
        self.envelope.dialect()
    }

    /// The id that the answer echoes: `RequestId::NONE` for an action without an id, `None` for a
    /// JSON-RPC message without one.
    #[inline]
    pub fn echo(&self) -> Option<RequestId<'a>> {
        match self.dialect() {
            Dialect::Rpc => self.id(),
            _ => Some(self.id().unwrap_or(RequestId::NONE)),
        }
    }

    /// The method, decoded; borrowed unless it contains escapes. `None` if it is absent, not a
    /// string or not valid Unicode.
    #[inline]
    pub fn method(&self) -> Option<Cow<'a, str>> {
        self.decoded(Field::Method)
    }

    /// `params` as raw JSON; those of an action are its [`arguments`](Self::arguments).
    #[inline]
    pub fn params(&self) -> Option<&'a str> {
        self.raw(Field::Params)
    }

    /// `result` as raw JSON; the `data` of an action's answer.
    #[inline]
    pub fn result(&self) -> Option<&'a str> {
        self.raw(Field::Result)
    }

    /// `error` as raw JSON.
    #[inline]
    pub fn error(&self) -> Option<&'a str> {
        self.raw(Field::Error)
    }

    /// `params.name`, decoded; `None` if it is absent or not a string.
    #[inline]
    pub fn name(&self) -> Option<Cow<'a, str>> {
        self.decoded(Field::Name)
    }

    /// `params.uri`, decoded; `None` if it is absent or not a string.
    #[inline]
    pub fn uri(&self) -> Option<Cow<'a, str>> {
        self.decoded(Field::Uri)
    }

    /// `params.arguments` as raw JSON.
    #[inline]
    pub fn arguments(&self) -> Option<&'a str> {
        self.raw(Field::Arguments)
    }

    /// `params.cursor`, decoded; `None` if it is absent or not a string.
    #[inline]
    pub fn cursor(&self) -> Option<Cow<'a, str>> {
        self.decoded(Field::Cursor)
    }

    /// `params.requestId`, if it is a valid id.
    #[inline]
    pub fn request_id(&self) -> Option<RequestId<'a>> {
        self.token(Field::RequestId)
    }

    /// `params._meta.progressToken` of a request, if it is a string or an integer.
    #[inline]
    pub fn progress_token(&self) -> Option<RequestId<'a>> {
        self.token(Field::ProgressToken)
    }

    /// `params.progressToken` of a progress notification, if it is a string or an integer.
    #[inline]
    pub fn progress(&self) -> Option<RequestId<'a>> {
        self.token(Field::Progress)
    }

    /// `params._meta["io.modelcontextprotocol/subscriptionId"]`, if it is a valid id.
    #[inline]
    pub fn subscription_id(&self) -> Option<RequestId<'a>> {
        self.token(Field::SubscriptionId)
    }

    /// The protocol revision of this request's `_meta`.
    #[inline]
    pub fn protocol_version(&self) -> Option<Cow<'a, str>> {
        self.decoded(Field::ProtocolVersion)
    }

    /// The client capabilities of this request's `_meta`, as raw JSON.
    #[inline]
    pub fn client_capabilities(&self) -> Option<&'a str> {
        self.raw(Field::ClientCapabilities)
    }

    /// `result.resultType`, decoded; `None` if it is absent or not a string.
    #[inline]
    pub fn result_type(&self) -> Option<Cow<'a, str>> {
        self.decoded(Field::ResultType)
    }

    /// Any recorded member, as raw JSON.
    #[inline]
    pub fn raw(&self, field: Field) -> Option<&'a str> {
        scan::text(self.raw_bytes(field)?)
    }

    /// Any recorded member, as bytes; for members that are only passed on.
    #[inline]
    pub fn raw_bytes(&self, field: Field) -> Option<&'a [u8]> {
        self.envelope.span(field).get(self.bytes)
    }

    /// Any recorded string member, still escaped.
    #[inline]
    pub fn string(&self, field: Field) -> Option<JsonStr<'a>> {
        JsonStr::from_token(self.raw(field)?)
    }

    /// Any recorded string member, decoded.
    #[inline]
    pub fn decoded(&self, field: Field) -> Option<Cow<'a, str>> {
        self.string(field)?.decode().ok()
    }

    fn token(&self, field: Field) -> Option<RequestId<'a>> {
        RequestId::from_token(self.raw(field)?)
    }

    /// Copies the bytes into an owned message; does not parse them again.
    pub fn detach(&self) -> Message {
        Message::copy(self.bytes, self.envelope)
    }
}
