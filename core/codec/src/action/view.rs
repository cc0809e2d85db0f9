//! A frame viewed through its record.

use std::borrow::Cow;

use super::error_type::ErrorType;
use super::fault::Fault;
use super::record::{Field, Kind, Record};
use crate::json::{JsonStr, number};
use crate::message::Frame;
use crate::scan;

/// A borrowed message of the action dialect.
#[derive(Clone, Copy, Debug)]
pub struct ActionRef<'a> {
    bytes: &'a [u8],
    record: &'a Record,
}

impl<'a> ActionRef<'a> {
    /// Views `frame` through the record that [`decode`](super::decode) made of it.
    ///
    /// With the record of another frame, the accessors return nonsense or `None`, but never panic.
    #[inline]
    pub fn new(frame: Frame<'a>, record: &'a Record) -> Self {
        let bytes = frame.bytes();
        Self { bytes, record }
    }

    /// The whole message.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The kind of message.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.record.kind()
    }

    /// Why the message is [`Kind::Invalid`].
    #[inline]
    pub fn fault(&self) -> Option<Fault> {
        self.record.fault()
    }

    /// The name of the action, decoded; borrowed unless it contains escapes.
    #[inline]
    pub fn action(&self) -> Option<Cow<'a, str>> {
        self.decoded(Field::Action)
    }

    /// `params` as raw JSON.
    #[inline]
    pub fn params(&self) -> Option<&'a str> {
        self.raw(Field::Params)
    }

    /// The name of the tool that is asked, decoded.
    #[inline]
    pub fn tool(&self) -> Option<Cow<'a, str>> {
        self.decoded(Field::Tool)
    }

    /// The process or state that the request belongs to, decoded.
    #[inline]
    pub fn context(&self) -> Option<Cow<'a, str>> {
        self.decoded(Field::Context)
    }

    /// `metadata` as raw JSON.
    #[inline]
    pub fn metadata(&self) -> Option<&'a str> {
        self.raw(Field::Metadata)
    }

    /// `metadata.request_id` as raw JSON: any value (R-ACT-04).
    #[inline]
    pub fn request_id(&self) -> Option<&'a str> {
        self.raw(Field::RequestId)
    }

    /// The version of the dialect in use, decoded (R-ACT-37, R-ACT-39).
    pub fn protocol_version(&self) -> Option<Cow<'a, str>> {
        let own = self.decoded(Field::ProtocolVersion);
        own.or_else(|| self.decoded(Field::Version))
    }

    /// `data` as raw JSON.
    #[inline]
    pub fn data(&self) -> Option<&'a str> {
        self.raw(Field::Data)
    }

    /// The type of an error, decoded, in the sender's spelling.
    #[inline]
    pub fn error_spelling(&self) -> Option<Cow<'a, str>> {
        self.decoded(Field::ErrorType)
    }

    /// The type of an error, if the dialect defines it.
    pub fn error_type(&self) -> Option<ErrorType> {
        ErrorType::parse(&self.error_spelling()?)
    }

    /// The message of an error, decoded; absent in some items of batches (R-ACT-05).
    pub fn error_message(&self) -> Option<Cow<'a, str>> {
        self.decoded(Field::ErrorMessage)
    }

    /// The `code` of an error, if it is an integer.
    pub fn error_code(&self) -> Option<i64> {
        self.raw(Field::ErrorCode).and_then(number::as_i64)
    }

    /// Any recorded member, as raw JSON.
    #[inline]
    pub fn raw(&self, field: Field) -> Option<&'a str> {
        scan::text(self.record.span(field).get(self.bytes)?)
    }

    /// Any recorded string member, decoded; `None` if it is absent, not a string or not valid
    /// Unicode.
    #[inline]
    pub fn decoded(&self, field: Field) -> Option<Cow<'a, str>> {
        JsonStr::from_token(self.raw(field)?)?.decode().ok()
    }
}
