//! The outcome of a call, with assertions.

use std::fmt;

use serde_json::Value;

use crate::client::CallToolResult;
use crate::error::RequestError;

/// The outcome of a call. Each assertion returns it, so that another one can follow.
#[derive(Debug)]
pub struct Called {
    /// The result, or why there is none.
    pub result: Result<CallToolResult, RequestError>,
    /// The tool and its arguments, for failed assertions.
    call: String,
}

impl Called {
    pub(super) fn new(call: String, result: Result<CallToolResult, RequestError>) -> Self {
        Self { result, call }
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
        assert!(came, "{}: expected {expected}, but got {self}", self.call);
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
