//! Values that a protocol has only texts for: arguments of prompts, variables of URIs, results of tools.

use serde::de::value::Error;
use serde::de::{Deserializer, Error as _, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

/// A text that is deserialised as the type that is asked for: `"7"` is a number where a number is expected.
/// Lists and objects are JSON in the text.
pub(crate) struct TextValue<'a>(pub &'a str);

macro_rules! parsed {
    ($($method:ident $visit:ident $expected:literal)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0.parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(Error::invalid_value(Unexpected::Str(self.0), &$expected)),
            }
        }
    )+};
}

macro_rules! as_json {
    ($($method:ident ($($name:ident: $type:ty),*))+) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, Error> {
            let mut json = serde_json::Deserializer::from_str(self.0);
            let value = json.$method($($name,)* visitor).map_err(Error::custom)?;
            json.end().map_err(Error::custom)?;
            Ok(value)
        }
    )+};
}

impl<'de> Deserializer<'de> for TextValue<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.0.into_deserializer())
    }

    parsed! {
        deserialize_bool visit_bool "true or false"
        deserialize_i8 visit_i8 "a whole number from -128 to 127"
        deserialize_i16 visit_i16 "a whole number of 16 bits"
        deserialize_i32 visit_i32 "a whole number of 32 bits"
        deserialize_i64 visit_i64 "a whole number of 64 bits"
        deserialize_i128 visit_i128 "a whole number of 128 bits"
        deserialize_u8 visit_u8 "a whole number from 0 to 255"
        deserialize_u16 visit_u16 "a whole number from 0 to 65535"
        deserialize_u32 visit_u32 "a whole number of 32 bits, not negative"
        deserialize_u64 visit_u64 "a whole number of 64 bits, not negative"
        deserialize_u128 visit_u128 "a whole number of 128 bits, not negative"
        deserialize_f32 visit_f32 "a number"
        deserialize_f64 visit_f64 "a number"
    }

    as_json! {
        deserialize_seq()
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_map()
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct identifier ignored_any
    }
}
