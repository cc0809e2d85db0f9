//! Classification of a decoded object: its kind, or the reason why it is not a message.

use super::{Id, Pass, field_bit};
use crate::json::DecodeError;
use crate::message::envelope::{Envelope, Field, Kind, Span};
use crate::message::fault::Fault;

impl<'a> Pass<'a, '_> {
    /// Determines the kind of a well-formed object.
    #[inline]
    pub(super) fn classify(&mut self) {
        const SHAPE: u32 = field_bit(Field::Version)
            | field_bit(Field::Method)
            | field_bit(Field::Result)
            | field_bit(Field::Error);
        const METHOD: u32 = field_bit(Field::Version) | field_bit(Field::Method);
        const RESULT: u32 = field_bit(Field::Version) | field_bit(Field::Result);
        const ERROR: u32 = field_bit(Field::Version) | field_bit(Field::Error);
        self.out.id_member |= self.id != Id::Absent;
        if !matches!(self.id, Id::Valid | Id::Absent) {
            self.out.set(Field::Id, Span::ABSENT);
        }
        let kind = match (self.seen & SHAPE, self.fault) {
            (_, Some(fault)) => Err(fault),
            (METHOD, None) => self.request_kind(),
            (RESULT, None) => self.result_kind(),
            (ERROR, None) => self.error_kind(),
            (shape, None) => Err(self.other_shape(shape)),
        };
        match kind {
            Ok(kind) => self.out.kind = kind,
            Err(fault) => self.out.fault = Some(fault),
        }
    }

    #[cold]
    fn other_shape(&self, shape: u32) -> Fault {
        let has = |field| shape & field_bit(field) != 0;
        if !has(Field::Version) {
            return Fault::VersionMissing;
        }
        match (has(Field::Method), has(Field::Result), self.id) {
            (_, _, Id::Null | Id::Bad) => Fault::IdType,
            (true, ..) => Fault::RequestAndResponse,
            (false, true, _) => Fault::ResultAndError,
            (false, false, Id::Valid) => Fault::NoContent,
            (false, false, Id::Absent) => Fault::UnknownShape,
        }
    }

    #[inline]
    fn request_kind(&self) -> Result<Kind, Fault> {
        let kind = match self.id {
            Id::Valid => Kind::Request,
            Id::Absent => Kind::Notification,
            Id::Null | Id::Bad => return Err(Fault::IdType),
        };
        if self.first_byte(Field::Method) != b'"' {
            return Err(Fault::MethodType);
        }
        if self.seen & field_bit(Field::Params) != 0 && self.first_byte(Field::Params) != b'{' {
            return Err(Fault::ParamsType);
        }
        Ok(kind)
    }

    #[inline]
    fn result_kind(&self) -> Result<Kind, Fault> {
        match self.id {
            Id::Valid if self.first_byte(Field::Result) == b'{' => Ok(Kind::Response),
            Id::Valid => Err(Fault::ResultType),
            Id::Absent => Err(Fault::ResultWithoutId),
            Id::Null | Id::Bad => Err(Fault::IdType),
        }
    }

    /// An error may carry `id: null`: the answer to a request whose id could not be read
    /// (R-RPC-21).
    fn error_kind(&self) -> Result<Kind, Fault> {
        if self.id == Id::Bad {
            return Err(Fault::IdType);
        }
        let message = self.first_byte(Field::ErrorMessage);
        match self.code_is_integer && message == b'"' {
            true => Ok(Kind::Error),
            false => Err(Fault::ErrorShape),
        }
    }

    /// The frame up to `end`, if those bytes are UTF-8.
    fn before(&self, end: usize) -> Option<&'a str> {
        std::str::from_utf8(self.bytes.get(..end)?).ok()
    }

    #[inline(always)]
    fn first_byte(&self, field: Field) -> u8 {
        self.walker.byte(self.out.span(field).start())
    }

    /// After a syntax fault: clears the record but for an id that can be trusted.
    pub(super) fn salvage(&mut self) -> DecodeError {
        let span = self.out.span(Field::Id);
        let rest = self.bytes.get(span.end()..).unwrap_or_default();
        let kept = matches!(rest.trim_ascii_start(), [b',' | b'}', ..])
            && self.id == Id::Valid
            && self.fault != Some(Fault::DuplicateMember)
            && self.before(span.end()).is_some();
        *self.out = Envelope {
            id_member: self.id != Id::Absent,
            answer: self.out.answer && self.out.span(Field::Method).is_none(),
            ..Envelope::default()
        };
        if kept {
            self.out.set(Field::Id, span);
        }
        self.walker.error()
    }
}
