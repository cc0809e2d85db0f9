//! A frame and its record, looked at together.

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
    /// Looks at `frame` through the record that [`decode`](super::decode) made of it.
    ///
    /// With the record of another frame the accessors give nonsense or `None`, nothing worse.
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

    /// What it is.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.record.kind()
    }

    /// Why it is [`Kind::Invalid`].
    #[inline]
    pub fn fault(&self) -> Option<Fault> {
        self.record.fault()
    }

    /// The name of the action, decoded; borrowed unless it is spelled with escapes.
    #[inline]
    pub fn action(&self) -> Option<Cow<'a, str>> {
        self.decoded(Field::Action)
    }

    /// `params` as raw JSON.
    #[inline]
    pub fn params(&self) -> Option<&'a str> {
        self.raw(Field::Params)
    }

    /// The tool that is asked, decoded.
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

    /// `metadata.request_id` as it is spelled: any JSON value (R-ACT-04).
    #[inline]
    pub fn request_id(&self) -> Option<&'a str> {
        self.raw(Field::RequestId)
    }

    /// The version of the dialect that is spoken, decoded (R-ACT-37, R-ACT-39).
    pub fn protocol_version(&self) -> Option<Cow<'a, str>> {
        let own = self.decoded(Field::ProtocolVersion);
        own.or_else(|| self.decoded(Field::Version))
    }

    /// `data` as raw JSON.
    #[inline]
    pub fn data(&self) -> Option<&'a str> {
        self.raw(Field::Data)
    }

    /// The type of an error as it is spelled, decoded.
    #[inline]
    pub fn error_spelling(&self) -> Option<Cow<'a, str>> {
        self.decoded(Field::ErrorType)
    }

    /// The type of an error, when it is one that the dialect names.
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

    /// Any noted member as raw JSON.
    #[inline]
    pub fn raw(&self, field: Field) -> Option<&'a str> {
        scan::text(self.record.span(field).get(self.bytes)?)
    }

    /// Any noted string member, decoded; `None` if it is absent, no string or no Unicode text.
    #[inline]
    pub fn decoded(&self, field: Field) -> Option<Cow<'a, str>> {
        JsonStr::from_token(self.raw(field)?)?.decode().ok()
    }
}
