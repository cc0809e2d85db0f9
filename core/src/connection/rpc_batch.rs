//! Batches in JSON-RPC (`batch/execute`): all elements begin at once, and the answers are listed in the
//! order of the elements.

use std::time::Duration;

use super::batches::{BatchMembers, MemberAnswer, NewBatch};
use super::call::Call;
use super::handle::Handle;
use super::queue::Submission;
use super::reply;
use crate::json::reader;
use crate::mcp::profile::{Failure, Profile, Spelt};
use crate::mcp::{ErrorKind, Method, Revision, code};
use crate::message::Message;

/// The method whose requests are batches.
pub(crate) const BATCH: &str = "batch/execute";

#[derive(Debug)]
struct Elements {
    elements: Vec<Element>,
    /// Errors are listed bare instead of inside a response (R-B3X-02).
    bare_errors: bool,
    max_depth: usize,
    profile: Profile,
    revision: Revision,
}

#[derive(Debug)]
struct Element {
    /// `jsonrpc` and `id` as they were sent, to be repeated in the response: members, each with a
    /// comma.
    head: String,
    /// The request to serve.
    ///
    /// # Errors
    /// Why the element is refused.
    request: Result<String, &'static str>,
}

impl Handle {
    /// Serves the requests in a call whose params hold `requests`, a raw JSON array, and answers the
    /// call. With `bare_errors`, errors are listed in the answer without a response around them.
    /// Requests not answered within `limit` get an error.
    pub fn serve_batch(
        &self,
        call: &Call,
        requests: &str,
        bare_errors: bool,
        limit: Option<Duration>,
    ) {
        let elements = Elements {
            elements: reader::elements(requests).map(Element::read).collect(),
            bare_errors,
            max_depth: self.config().limits.max_depth,
            profile: self.config().profile,
            revision: call.reply.revision,
        };
        let members = Box::new(elements);
        self.submit(Submission::Batch {
            key: call.reply.key,
            batch: Box::new(NewBatch { members, limit }),
        });
    }
}

impl BatchMembers for Elements {
    fn len(&self) -> usize {
        self.elements.len()
    }

    fn one_by_one(&self) -> Option<bool> {
        None
    }

    fn request(&self, index: usize) -> Result<Message, MemberAnswer> {
        let request = self.elements[index].request.as_ref();
        let request = request.map_err(|why| refused_with(why))?;
        let parsed = Message::parse(request.as_bytes(), self.max_depth);
        parsed.map_err(|error| refused_with(&error.to_string()))
    }

    /// R-B3X-04
    fn overdue(&self) -> MemberAnswer {
        let failure = Failure {
            kind: ErrorKind::TimedOut,
            about: BATCH,
            why: "the batch took too long",
            data: None,
        };
        failed(&self.profile.spell(self.revision, failure))
    }

    fn join(&self, answers: &[Option<MemberAnswer>]) -> String {
        let mut out = String::from("{\"responses\":[");
        for (i, (element, answer)) in self.elements.iter().zip(answers).enumerate() {
            if i > 0 {
                out.push(',');
            }
            let Some(MemberAnswer { is_error, json }) = answer else {
                out.push_str("null");
                continue;
            };
            let json = str::from_utf8(json).unwrap_or("null");
            if *is_error && self.bare_errors {
                out.push_str(json);
                continue;
            }
            let member = if *is_error { "error" } else { "result" };
            out.push_str(&format!("{{{}\"{member}\":{json}}}", element.head));
        }
        out.push_str("]}");
        out
    }
}

impl Element {
    fn read(raw: &str) -> Self {
        let mut head = String::new();
        for name in ["jsonrpc", "id"] {
            if let Some(value) = reader::find(raw, name) {
                head.push_str(&format!("\"{name}\":{value},"));
            }
        }
        let method = reader::find(raw, "method").filter(|method| method.starts_with('"'));
        let name = method.and_then(reader::as_str);
        let params = reader::find(raw, "params");
        let request = match (method, name.as_deref().map(refused)) {
            (Some(method), Some(None)) => {
                let params = params.map_or(String::new(), |params| format!(",\"params\":{params}"));
                Ok(format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":{method}{params}}}"
                ))
            }
            (_, refused) => {
                let usual = "an element is an object with a method";
                Err(refused.flatten().unwrap_or(usual))
            }
        };
        Self { head, request }
    }
}

/// Why a method may not be an element of a batch; `None` if it may (R-B3X-03).
fn refused(method: &str) -> Option<&'static str> {
    match Method::parse(method) {
        Some(Method::Initialize) => Some("initialize stands alone"),
        Some(Method::Listen) => Some("a stream stands alone"),
        Some(known) if !known.is_request() => Some("a notification has no response"),
        None if method == BATCH => Some("a batch within a batch"),
        None if method.starts_with("notifications/") => Some("a notification has no response"),
        _ => None,
    }
}

fn refused_with(why: &str) -> MemberAnswer {
    failed(&Spelt {
        code: code::INVALID_REQUEST,
        message: why.into(),
        data: None,
    })
}

fn failed(error: &Spelt<'_>) -> MemberAnswer {
    let mut json = Vec::new();
    reply::error_object(&mut json, error);
    MemberAnswer {
        is_error: true,
        json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-B3X-03
    #[test]
    fn what_has_no_business_in_a_batch_is_refused() {
        for (element, served) in [
            (r#"{"method":"tools/list"}"#, true),
            (r#"{"method":"com.example/x","params":{"a":"b\nc"}}"#, true),
            (r#"{"method":"initialize"}"#, false),
            (r#"{"method":"batch/execute"}"#, false),
            (r#"{"method":"initialized"}"#, false),
            (r#"{"method":"notifications/any"}"#, false),
            (r#"{"method":"subscriptions/listen"}"#, false),
            (r#"{"method":1}"#, false),
            ("[]", false),
            ("1", false),
        ] {
            let read = Element::read(element);
            assert_eq!(read.request.is_ok(), served, "{element}");
        }
        let named = Element::read(r#"{"id":0,"jsonrpc":"2.0","method":"ping"}"#);
        assert_eq!(named.head, r#""jsonrpc":"2.0","id":0,"#);
    }
}
