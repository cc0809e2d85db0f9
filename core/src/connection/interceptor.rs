//! Inspection of answers before they are written, for a server with a policy or a profile. A request
//! without an interceptor pays for one check of an empty field.

use std::fmt;

use super::principal::Principal;
use crate::mcp::ErrorKind;
use crate::mcp::profile::{Failure, Spelt};

/// Inspects the answer to one request, on the thread that writes it. Dropped when the request is over,
/// whether it was answered or not.
pub trait Interceptor: Send + Sync + fmt::Debug {
    /// The name in the request: of a tool or a prompt, or a URI; empty if there is none.
    fn about(&self) -> &str;

    /// The sender of the request, if the request itself carried proof of it.
    fn principal(&self) -> Option<&Principal> {
        None
    }

    /// Inspects a result, a JSON object, before it is written.
    fn result(&self, object: &str) -> Verdict;

    /// Inspects an error before it is written; returns its code, message and data as they are sent.
    fn error<'a>(&'a self, failure: Failure<'a>) -> Spelt<'a>;

    /// Inspects an error under a code that the application chose; returns it as it is sent.
    fn coded<'a>(&'a self, error: Spelt<'a>) -> Spelt<'a>;
}

/// The decision about a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Write it unchanged.
    Keep,
    /// Write this object instead.
    Replace(String),
    /// Answer with an error: its kind, a message, and data as JSON.
    Refuse(ErrorKind, String, Option<String>),
}
