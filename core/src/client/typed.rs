//! Results of tools as values of the program's own types.

use std::any::type_name;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

use serde::de::DeserializeOwned;

use super::call::CallTool;
use super::core::{parse, result};
use super::results::CallToolResult;
use crate::error::RequestError;
use crate::json::reader;
use crate::model::Content;
use crate::model::text_value::TextValue;
use crate::sync::block_on;

/// A tool call whose result is read as a `T`, to be awaited: see [`Client::call`](super::Client::call).
/// Dropping the future cancels the call.
#[must_use = "a call is sent when it is awaited"]
pub struct TypedCall<T> {
    call: CallTool,
    result: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for TypedCall<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}

impl<T: DeserializeOwned> TypedCall<T> {
    pub(super) fn new(call: CallTool) -> Self {
        let result = PhantomData;
        Self { call, result }
    }

    /// Sends the call and blocks this thread until the result arrives.
    ///
    /// # Errors
    /// The same as awaiting the call.
    pub fn wait(self) -> Result<T, CallError> {
        block_on(self)
    }
}

impl<T: DeserializeOwned> IntoFuture for TypedCall<T> {
    type Output = Result<T, CallError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let tool: Box<str> = self.call.tool().into();
            let answer = match self.call.answer().await {
                Ok(answer) => answer,
                Err(error) => return Err(CallError::Request { tool, error }),
            };
            read(tool, result(&answer))
        })
    }
}

/// Why a call has no value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallError {
    /// There is no result, or none that the protocol and the tool's output schema allow.
    Request {
        /// The tool.
        tool: Box<str>,
        /// The reason.
        error: RequestError,
    },
    /// The tool failed.
    Failed {
        /// The tool.
        tool: Box<str>,
        /// The result, whose text says why.
        result: Box<CallToolResult>,
    },
    /// The result is not a value of the type that was asked for.
    Unreadable {
        /// The tool.
        tool: Box<str>,
        /// The type, the place in the result and the reason.
        why: Box<str>,
    },
}

impl CallError {
    /// The tool that was called.
    pub fn tool(&self) -> &str {
        match self {
            Self::Request { tool, .. }
            | Self::Failed { tool, .. }
            | Self::Unreadable { tool, .. } => tool,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { tool, error } => write!(f, "tool {tool:?}: {error}"),
            Self::Failed { tool, result } => write!(f, "tool {tool:?} failed: {}", result.text()),
            Self::Unreadable { tool, why } => write!(f, "tool {tool:?}: {why}"),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Request { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Reads the value of a raw result.
pub(crate) fn read<T: DeserializeOwned>(tool: Box<str>, result: &str) -> Result<T, CallError> {
    let whole = || parse::<CallToolResult>(result);
    let value = match reader::find(result, "structuredContent") {
        _ if reader::find(result, "isError") == Some("true") => {
            return Err(match whole() {
                Ok(result) => CallError::Failed {
                    tool,
                    result: Box::new(result),
                },
                Err(error) => CallError::Request { tool, error },
            });
        }
        Some(json) if json != "null" => of_structured(json),
        _ => match whole() {
            Ok(result) => of_text(&result),
            Err(error) => return Err(CallError::Request { tool, error }),
        },
    };
    value.map_err(|why| CallError::Unreadable {
        tool,
        why: format!("the result is not a `{}`: {why}", type_name::<T>()).into(),
    })
}

fn of_structured<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    if let Ok(value) = serde_json::from_str(json) {
        return Ok(value);
    }
    let mut members = reader::members(json);
    match (members.next(), members.next()) {
        (Some((name, value)), None) if name == "result" => {
            serde_json::from_str(value).map_err(|_| misfit::<T>("structuredContent.result", value))
        }
        _ => Err(misfit::<T>("structuredContent", json)),
    }
}

fn of_text<T: DeserializeOwned>(result: &CallToolResult) -> Result<T, String> {
    let has_text = result
        .content
        .iter()
        .any(|block| matches!(block, Content::Text { .. }));
    if !has_text && let Ok(nothing) = serde_json::from_str("null") {
        return Ok(nothing);
    }
    let text = result.text();
    let of_json = || serde_json::from_str(&text).ok();
    let of_text = || T::deserialize(TextValue(&text));
    if text.starts_with(['{', '[']) {
        let value = of_json().map_or_else(of_text, Ok);
        return value.map_err(|_| misfit::<T>("text", &text));
    }
    match of_text() {
        Ok(value) => Ok(value),
        Err(_) if let Some(value) = of_json() => Ok(value),
        Err(_) if !has_text => Err("it has neither structured content nor text".to_owned()),
        Err(error) => Err(format!("text: {error}")),
    }
}

/// Where a JSON value is not a `T`, and why.
fn misfit<T: DeserializeOwned>(place: &str, json: &str) -> String {
    let mut reader = serde_json::Deserializer::from_str(json);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut reader) else {
        return format!("{place}: it goes on after the value");
    };
    let path = error.path().to_string();
    let text = error.inner().to_string();
    // The position in a message that nobody sees.
    let end = text.rfind(" at line ").unwrap_or(text.len());
    match path.as_str() {
        "." => format!("{place}: {}", &text[..end]),
        path if path.starts_with('[') => format!("{place}{path}: {}", &text[..end]),
        path => format!("{place}.{path}: {}", &text[..end]),
    }
}
