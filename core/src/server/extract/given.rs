//! The parameters of one call, and their conversion to the types of arguments.

use std::borrow::Cow;

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;
use smallvec::{SmallVec, smallvec};

use crate::handler::HandlerError;
use crate::json::reader;
use crate::mcp::ErrorKind;
use crate::model::text_value::TextValue;
use crate::server::call::Context;

/// A parameter as a call gives it.
#[derive(Clone, Debug)]
pub(super) enum Given<'a> {
    /// JSON, validated.
    Json(&'a str),
    /// Text that stands for a value of any type: prompts and URIs have only texts.
    Text(Cow<'a, str>),
    Missing,
}

impl Given<'_> {
    /// Converts to the type of an argument.
    ///
    /// # Errors
    /// A phrase that says what was expected.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, String> {
        match self {
            Self::Json(json) => serde_json::from_str(json).map_err(|error| {
                let text = error.to_string();
                // The position within one parameter helps nobody.
                let end = text.rfind(" at line ").unwrap_or(text.len());
                text[..end].to_owned()
            }),
            Self::Text(text) => T::deserialize(TextValue(text)).map_err(|error| error.to_string()),
            Self::Missing => T::deserialize(Absent).map_err(|error| error.to_string()),
        }
    }
}

/// Returns whether the value of a missing parameter of type `T` is `None`.
pub(super) fn may_be_missing<T: DeserializeOwned>() -> bool {
    T::deserialize(Absent).is_ok()
}

/// The parts of a call: its parameters and its [`Context`].
#[derive(Debug)]
pub struct Received<'a> {
    names: &'a [&'static str],
    values: SmallVec<[Given<'a>; 8]>,
    /// All parameters, a JSON object.
    all: &'a str,
    /// `None` for inline tools, which take only parameters.
    context: Option<&'a Context>,
    /// The kind of error that a wrong parameter is.
    fault: ErrorKind,
}

impl<'a> Received<'a> {
    /// The arguments of a tool, a validated JSON object. The last of several members with one name counts, as
    /// in the check against the schema.
    pub(in crate::server) fn json(
        names: &'a [&'static str],
        arguments: &'a str,
        context: Option<&'a Context>,
    ) -> Self {
        let mut received = Self::nothing(names, context, ErrorKind::InvalidParams);
        received.all = arguments;
        for (key, value) in reader::members(arguments) {
            let at = names.iter().position(|name| key == **name);
            received.put(at, Given::Json(value));
        }
        received
    }

    /// The arguments of a prompt, which are texts.
    pub(in crate::server) fn prompt(
        names: &'a [&'static str],
        arguments: &'a str,
        context: &'a Context,
    ) -> Self {
        let mut received = Self::json(names, arguments, Some(context));
        for value in &mut received.values {
            if let Given::Json(json) = value
                && let Some(text) = reader::as_str(json)
            {
                *value = Given::Text(text);
            }
        }
        received
    }

    /// Texts by name. A wrong one is an error of the kind `fault`.
    pub(in crate::server) fn texts(
        names: &'a [&'static str],
        texts: impl Iterator<Item = (&'a str, &'a str)>,
        context: &'a Context,
        fault: ErrorKind,
    ) -> Self {
        let mut received = Self::nothing(names, Some(context), fault);
        for (name, text) in texts {
            let at = names.iter().position(|own| *own == name);
            received.put(at, Given::Text(text.into()));
        }
        received
    }

    fn nothing(names: &'a [&'static str], context: Option<&'a Context>, fault: ErrorKind) -> Self {
        Self {
            names,
            values: smallvec![Given::Missing; names.len()],
            all: "{}",
            context,
            fault,
        }
    }

    fn put(&mut self, at: Option<usize>, value: Given<'a>) {
        if let Some(place) = at.and_then(|at| self.values.get_mut(at)) {
            *place = value;
        }
    }

    /// Converts the parameter at this position, or its default if the call has none.
    pub(super) fn parameter<T: DeserializeOwned>(
        &self,
        at: usize,
        default: Option<&str>,
    ) -> Result<T, HandlerError> {
        let given = self.values.get(at).unwrap_or(&Given::Missing);
        let parsed = match (given, default) {
            (Given::Missing, Some(default)) => Given::Json(default).parse(),
            _ => given.parse(),
        };
        parsed.map_err(|why| {
            let name = self.names.get(at).unwrap_or(&"?");
            HandlerError::of(
                self.fault,
                format!("invalid arguments: parameter {name:?}: {why}"),
            )
        })
    }

    /// Converts all parameters together.
    pub(super) fn all<T: DeserializeOwned>(&self) -> Result<T, HandlerError> {
        let parsed = Given::Json(self.all).parse();
        parsed.map_err(|why| HandlerError::of(self.fault, format!("invalid arguments: {why}")))
    }

    /// The call's context.
    pub(super) fn context(&self) -> Result<&'a Context, HandlerError> {
        let missing = || HandlerError::new("an inline tool takes only parameters");
        self.context.ok_or_else(missing)
    }
}

/// A missing parameter: `None`, or an error where the type is no `Option`.
struct Absent;

impl<'de> Deserializer<'de> for Absent {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("missing"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_none()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Binding {
        Paperback,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Number(Option<u8>);

    fn text<T: DeserializeOwned>(text: &str) -> Result<T, String> {
        Given::Text(text.into()).parse()
    }

    #[test]
    fn a_text_is_of_the_type_that_is_asked_for() {
        assert_eq!(text("7"), Ok(7u8));
        assert_eq!(text("-0.5"), Ok(-0.5));
        assert_eq!(text("true"), Ok(true));
        assert_eq!(text("7"), Ok("7".to_owned()));
        assert_eq!(text("é"), Ok('é'));
        assert_eq!(text("7"), Ok(Some(7)));
        assert_eq!(text("7"), Ok(Number(Some(7))));
        assert_eq!(text("paperback"), Ok(Binding::Paperback));
        assert_eq!(text("[1, 2]"), Ok(vec![1, 2]));
        assert_eq!(
            text(r#"{"a": 1}"#),
            Ok(BTreeMap::from([("a".to_owned(), 1)]))
        );
        let error = text::<u8>("300").unwrap_err();
        assert_eq!(
            error,
            "invalid value: string \"300\", expected a whole number from 0 to 255"
        );
        assert!(text::<Vec<u8>>("1, 2").is_err());
    }

    #[test]
    fn only_an_option_may_be_missing() {
        assert!(may_be_missing::<Option<String>>());
        assert!(may_be_missing::<Number>());
        assert!(!may_be_missing::<String>());
        assert!(!may_be_missing::<Vec<String>>());
        assert_eq!(Given::Missing.parse(), Ok(None::<u8>));
        assert_eq!(Given::Missing.parse::<u8>(), Err("missing".to_owned()));
    }

    #[test]
    fn the_last_of_several_members_counts_and_an_error_names_its_parameter() {
        let names = ["a", "b"];
        let received = Received::json(&names, r#"{"\u0061":1,"c":[],"a":2,"b":"x"}"#, None);
        assert_eq!(received.parameter::<u8>(0, None), Ok(2));
        let error = received.parameter::<u8>(1, None).unwrap_err().to_string();
        let expected =
            "invalid arguments: parameter \"b\": invalid type: string \"x\", expected u8";
        assert_eq!(error, expected);
        let received = Received::json(&names, "{}", None);
        assert_eq!(received.parameter::<u8>(1, Some("7")), Ok(7));
    }
}
