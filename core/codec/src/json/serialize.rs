//! Serializes serde values to compact JSON: the same bytes as serde_json's, but strings are escaped
//! with SIMD.

use serde::ser::{self, Error as _, Serialize};
use serde_json::{Error, Result};

use super::{number, string, writer};

/// Appends `value` as JSON on one line, with exactly the bytes that `serde_json::to_writer` writes.
///
/// ```
/// let mut out = Vec::new();
/// mcpbolt_codec::json::append_value(&mut out, &("a\"b", 1.5, [true])).unwrap();
/// assert_eq!(out, br#"["a\"b",1.5,[true]]"#);
/// ```
///
/// # Errors
/// The value fails to serialize, or a map key is not a string, number, boolean or unit variant.
/// `out` then ends with a part of the value.
pub fn append_value<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<()> {
    value.serialize(Writer { out })
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

/// An object or array being written, or the wrapper that serde_json's `RawValue` puts around its
/// text.
struct Compound<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
    raw: bool,
    /// The closing bracket; none around raw text.
    close: Option<u8>,
    /// Whether an enum variant's object around this one is closed as well.
    variant: bool,
}

/// The struct name by which serializers recognize `serde_json::value::RawValue`.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

impl<'a> Writer<'a> {
    #[inline]
    fn open(self, open: u8, close: u8) -> Compound<'a> {
        self.out.push(open);
        Compound {
            out: self.out,
            first: true,
            raw: false,
            close: Some(close),
            variant: false,
        }
    }

    /// Opens an object with one member, whose value is still to be written.
    fn variant(self, name: &str) -> Self {
        self.out.push(b'{');
        string::append(self.out, name);
        self.out.push(b':');
        self
    }
}

macro_rules! numbers {
    ($($method:ident: $type:ty),*) => {$(
        fn $method(self, value: $type) -> Result<()> {
            number::append(self.out, value);
            Ok(())
        }
    )*};
}

impl<'a> ser::Serializer for Writer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Compound<'a>;
    type SerializeTuple = Compound<'a>;
    type SerializeTupleStruct = Compound<'a>;
    type SerializeTupleVariant = Compound<'a>;
    type SerializeMap = Compound<'a>;
    type SerializeStruct = Compound<'a>;
    type SerializeStructVariant = Compound<'a>;

    numbers!(
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32,
        serialize_u64: u64, serialize_u128: u128
    );

    fn serialize_bool(self, value: bool) -> Result<()> {
        self.out
            .extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<()> {
        serde_json::to_writer(self.out, &value)
    }

    fn serialize_f64(self, value: f64) -> Result<()> {
        serde_json::to_writer(self.out, &value)
    }

    fn serialize_char(self, value: char) -> Result<()> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<()> {
        string::append(self.out, value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<()> {
        serde_json::to_writer(self.out, value)
    }

    fn serialize_none(self) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<()> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<()> {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        let Self { out } = self.variant(name);
        value.serialize(Writer { out })?;
        out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'a>> {
        Ok(self.open(b'[', b']'))
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'a>> {
        Ok(self.open(b'[', b']'))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'a>> {
        Ok(self.open(b'[', b']'))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Compound<'a>> {
        let mut array = self.variant(name).open(b'[', b']');
        array.variant = true;
        Ok(array)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'a>> {
        Ok(self.open(b'{', b'}'))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Compound<'a>> {
        if name == RAW_VALUE {
            return Ok(Compound {
                out: self.out,
                first: true,
                raw: true,
                close: None,
                variant: false,
            });
        }
        Ok(self.open(b'{', b'}'))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Compound<'a>> {
        let mut object = self.variant(name).open(b'{', b'}');
        object.variant = true;
        Ok(object)
    }
}

impl Compound<'_> {
    fn comma(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.comma();
        value.serialize(Writer { out: self.out })
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        if self.raw {
            let text = serde_json::to_value(value)?;
            writer::append_compact(self.out, text.as_str().unwrap_or("null"));
            return Ok(());
        }
        self.comma();
        string::append(self.out, name);
        self.out.push(b':');
        value.serialize(Writer { out: self.out })
    }

    fn finish(self) -> Result<()> {
        self.out.extend(self.close);
        self.out.extend(self.variant.then_some(b'}'));
        Ok(())
    }
}

impl ser::SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = Error;

    /// Quotes a key that is a number or a boolean.
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.comma();
        let start = self.out.len();
        key.serialize(Writer { out: self.out })?;
        match self.out.get(start) {
            Some(b'"') => {}
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
                self.out.insert(start, b'"');
                self.out.push(b'"');
            }
            _ => return Err(Error::custom("key must be a string")),
        }
        self.out.push(b':');
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        value.serialize(Writer { out: self.out })
    }

    fn end(self) -> Result<()> {
        self.finish()
    }
}

macro_rules! compounds {
    ($($trait:ident $method:ident $with:ident($($name:ident)?)),*) => {$(
        impl ser::$trait for Compound<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($name: &'static str,)?
                value: &T,
            ) -> Result<()> {
                self.$with($($name,)? value)
            }

            fn end(self) -> Result<()> {
                self.finish()
            }
        }
    )*};
}
compounds!(
    SerializeSeq serialize_element element(),
    SerializeTuple serialize_element element(),
    SerializeTupleStruct serialize_field element(),
    SerializeTupleVariant serialize_field element(),
    SerializeStruct serialize_field member(name),
    SerializeStructVariant serialize_field member(name)
);

#[cfg(test)]
mod tests;
