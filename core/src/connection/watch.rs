//! Looking at what a request is answered with before it is written, where a server has a policy or
//! speaks a profile. A request that nobody watches pays one look at an empty field.

use std::fmt;

use super::principal::Principal;
use crate::json::reader;
use crate::mcp::ErrorKind;
use crate::mcp::profile::{Failure, Spelt};
use crate::message::RequestId;
use crate::message::encode::{self, ErrorId};

/// Looks at the answer to one request, on the thread that writes it. Dropped at last, with or
/// without an answer.
pub trait Watch: Send + Sync + fmt::Debug {
    /// What the request names: a tool, a prompt, a URI; empty when it names nothing.
    fn about(&self) -> &str;

    /// Who asks, where the request itself has proven it.
    fn principal(&self) -> Option<&Principal> {
        None
    }

    /// A result, a JSON object, that is about to be written.
    fn result(&self, object: &str) -> Verdict;

    /// An error that is about to be written, as it goes out.
    fn error<'a>(&'a self, failure: Failure<'a>) -> Spelt<'a>;

    /// The same for an error of a code of the application's own.
    fn coded<'a>(&'a self, error: Spelt<'a>) -> Spelt<'a>;
}

/// What becomes of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is written as it is.
    Keep,
    /// That object is written instead.
    Replace(String),
    /// The request is answered with an error: its kind, a sentence and the data, JSON.
    Refuse(ErrorKind, String, Option<String>),
}

/// Has `watch` look at the result that was written from `at` on, and writes what it says instead.
pub(super) fn review(out: &mut Vec<u8>, at: usize, id: RequestId<'_>, watch: &dyn Watch) {
    let frame = out.get(at..).and_then(|frame| str::from_utf8(frame).ok());
    let result = frame.and_then(|frame| reader::find(frame, "result"));
    match result.map_or(Verdict::Keep, |result| watch.result(result)) {
        Verdict::Keep => {}
        Verdict::Replace(object) => {
            out.truncate(at);
            encode::response(out, id, &object);
        }
        Verdict::Refuse(kind, why, data) => {
            out.truncate(at);
            let failure = Failure {
                kind,
                about: watch.about(),
                why: &why,
                data: data.as_deref(),
            };
            write(out, ErrorId::Id(id), &watch.error(failure));
        }
    }
}

/// Appends an error.
pub(super) fn write(out: &mut Vec<u8>, id: ErrorId<'_>, error: &Spelt<'_>) {
    encode::error(out, id, error.code, &error.message, error.data.as_deref());
}
