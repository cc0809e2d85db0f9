//! The outcome of a call, with assertions.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::client::{CallError, CallToolResult, read_value};
use crate::error::RequestError;

/// The outcome of a call. Each assertion returns it, so that another one can follow.
#[derive(Debug)]
pub struct Called {
    /// The result, or why there is none.
    pub result: Result<CallToolResult, RequestError>,
    tool: String,
    arguments: Value,
}

impl Called {
    pub(super) fn new(
        tool: &str,
        arguments: Value,
        result: Result<CallToolResult, RequestError>,
    ) -> Self {
        Self {
            result,
            tool: tool.to_owned(),
            arguments,
        }
    }

    fn call(&self) -> String {
        format!("the call of {} with {}", self.tool, self.arguments)
    }

    /// Asserts that the tool succeeded with this text.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn expect_text(&self, text: &str) -> &Self {
        let is_text = |result: &CallToolResult| !result.is_error && result.text() == text;
        self.expect(
            self.result.as_ref().is_ok_and(is_text),
            &format!("the text {text:?}"),
        )
    }

    /// Asserts that the tool succeeded with this structured content.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn expect_structured(&self, content: &Value) -> &Self {
        let is_content = |result: &CallToolResult| {
            !result.is_error && result.structured_content.as_ref() == Some(content)
        };
        let is_content = self.result.as_ref().is_ok_and(is_content);
        self.expect(is_content, &format!("the content {content}"))
    }

    /// Asserts that the tool succeeded, and returns its value as [`Client::call`](crate::client::Client::call) reads it.
    ///
    /// # Panics
    /// When it did not, or the result is not a `T`.
    #[track_caller]
    pub fn expect_value<T: DeserializeOwned>(&self) -> T {
        let value = match &self.result {
            Ok(result) => {
                let json = serde_json::to_string(result).unwrap_or_default();
                read_value(self.tool.as_str().into(), &json)
            }
            Err(error) => Err(CallError::Request {
                tool: self.tool.as_str().into(),
                error: error.clone(),
            }),
        };
        value.unwrap_or_else(|error| panic!("{}: {error}", self.call()))
    }

    /// Asserts that the tool failed with an error for the model, whose text contains `part`.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn expect_error(&self, part: &str) -> &Self {
        let is_error = |result: &CallToolResult| result.is_error && result.text().contains(part);
        let is_error = self.result.as_ref().is_ok_and(is_error);
        self.expect(is_error, &format!("a tool error with {part:?}"))
    }

    /// Asserts that the call failed with a protocol error of this code.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn expect_protocol_error(&self, code: i64) -> &Self {
        let is_error = matches!(&self.result, Err(RequestError::Peer(error)) if error.code == code);
        self.expect(is_error, &format!("the protocol error {code}"))
    }

    #[track_caller]
    fn expect(&self, came: bool, expected: &str) -> &Self {
        let call = self.call();
        assert!(came, "{call}: expected {expected}, but got {self}");
        self
    }
}

/// Describes the outcome for a failed assertion.
impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.result {
            Ok(result) if result.is_error => write!(f, "the tool error {:?}", result.text()),
            Ok(result) => match &result.structured_content {
                Some(content) => write!(f, "the content {content}"),
                None => write!(f, "the text {:?}", result.text()),
            },
            Err(RequestError::Peer(error)) => {
                write!(f, "the protocol error {}: {}", error.code, error.message)
            }
            Err(error) => write!(f, "no answer: {error}"),
        }
    }
}
