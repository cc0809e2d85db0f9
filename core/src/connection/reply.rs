//! Encodes what this side says about a request of the peer, in the dialect of the request: the only place
//! that knows how the dialects differ in replies.

use super::actions::mapping::ActionReply;
use super::call::ReplyTo;
use super::config::Config;
use super::interceptor::{Interceptor, Verdict};
use super::observer::RequestOutcome;
use super::options::Progress;
#[cfg(feature = "server")]
use super::principal::Principal;
use super::result_writer::{self, ResultWriter};
use crate::action::encode::{self as action, ActionError, AnswerMetadata};
use crate::json::{number, string, writer};
use crate::mcp::profile::{Failure, Spelt};
use crate::mcp::{ErrorKind, Revision};
use crate::message::encode::{self, ErrorId};
use crate::message::{Dialect, RequestId};

/// The members around an answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Frame {
    /// The whole message.
    Whole(Closing),
    /// The whole message, but the answer to an action lacks its end: see [`close`].
    Open,
    /// Nothing: the answer is a member of a batch.
    Bare,
}

/// The members at the end of an answer to an action.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Closing {
    /// The agreed version of the dialect.
    pub version: Option<&'static str>,
    pub elapsed_ms: Option<u32>,
}

/// How one request is answered.
pub(super) struct Encoder<'a> {
    pub id: RequestId<'a>,
    pub dialect: Dialect,
    pub frame: Frame,
    pub revision: Revision,
    pub config: &'a Config,
    pub interceptor: Option<&'a dyn Interceptor>,
    /// The verified peer, who may fetch data that are too long for one answer; `None` if they are sent
    /// whole.
    #[cfg(feature = "server")]
    pub referring: Option<Option<&'a Principal>>,
}

/// Methods that answer append the answer, and return what it is. Whether a result reports a failure of a tool is looked up only
/// if somebody observes the requests.
impl Encoder<'_> {
    /// Answers with a result object.
    pub fn result(
        &self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut ResultWriter<'_>),
    ) -> RequestOutcome {
        match self.dialect {
            Dialect::Rpc => self.rpc_result(out, |out| {
                result_writer::append(out, self.revision, Some(self.config), None, write);
            }),
            _ => {
                let failed = self.action().result(out, self.revision, write);
                self.close(out, of_action(failed))
            }
        }
    }

    /// Answers with a complete result, a JSON object to which nothing is added.
    pub fn whole_result(&self, out: &mut Vec<u8>, object: &str) -> RequestOutcome {
        match self.dialect {
            Dialect::Rpc => self.rpc_result(out, |out| writer::append_compact(out, object)),
            _ => {
                let failed = self.action().whole_result(out, object);
                self.close(out, of_action(failed))
            }
        }
    }

    /// Answers with an error of a kind, whose code depends on the revision and the profile.
    pub fn failure(&self, out: &mut Vec<u8>, failure: Failure<'_>) -> RequestOutcome {
        let kind = failure.kind;
        let spelt = match self.interceptor {
            None => self.config.profile.spell(self.revision, failure),
            Some(interceptor) => interceptor.error(Failure {
                about: match failure.about {
                    "" => interceptor.about(),
                    about => about,
                },
                ..failure
            }),
        };
        match self.dialect {
            Dialect::Rpc => self.rpc_error(out, &spelt, Some(kind)),
            _ => {
                self.action()
                    .error(out, kind, &spelt.message, spelt.data.as_deref());
                self.close(out, RequestOutcome::Failed(spelt.code, Some(kind)))
            }
        }
    }

    /// Answers with an error under a code that the application chose.
    pub fn error_code(&self, out: &mut Vec<u8>, error: Spelt<'_>) -> RequestOutcome {
        let spelt = self.intercepted(error);
        match self.dialect {
            Dialect::Rpc => self.rpc_error(out, &spelt, None),
            _ => {
                let (message, data) = (&spelt.message, spelt.data.as_deref());
                self.action().error_code(out, spelt.code, message, data);
                self.close(out, RequestOutcome::Failed(spelt.code, None))
            }
        }
    }

    /// Answers an action with an error of its dialect.
    pub fn action_error(&self, out: &mut Vec<u8>, error: &ActionError<'_>) -> RequestOutcome {
        let spelt = self.intercepted(Spelt {
            code: error.code.map_or(0, i64::from),
            message: error.message.into(),
            data: error.details.map(Into::into),
        });
        let error = ActionError {
            message: &spelt.message,
            details: spelt.data.as_deref(),
            ..*error
        };
        action::open_error(out, self.is_streamed(), &error);
        self.close(out, RequestOutcome::Failed(spelt.code, None))
    }

    /// Answers an action with `data`, a JSON object, which nothing changes.
    pub fn action_data(&self, out: &mut Vec<u8>, data: &str) -> RequestOutcome {
        if let Some(interceptor) = self.interceptor {
            // It only records the answer.
            let _ = interceptor.result(data);
        }
        action::open_success(out, self.is_streamed(), Some(data));
        self.close(out, RequestOutcome::Done)
    }

    fn intercepted<'e>(&'e self, error: Spelt<'e>) -> Spelt<'e> {
        match self.interceptor {
            None => error,
            Some(interceptor) => interceptor.coded(error),
        }
    }

    fn rpc_result(&self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> RequestOutcome {
        let at = out.len();
        let is_bare = matches!(self.frame, Frame::Bare);
        if !is_bare {
            out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            out.extend_from_slice(self.id.raw().as_bytes());
            out.extend_from_slice(b",\"result\":");
        }
        let begin = out.len();
        write(out);
        if let Some(interceptor) = self.interceptor {
            let object = out.get(begin..).and_then(|it| str::from_utf8(it).ok());
            match object.map_or(Verdict::Keep, |object| interceptor.result(object)) {
                Verdict::Keep => {}
                Verdict::Replace(object) => {
                    out.truncate(begin);
                    writer::append_compact(out, &object);
                }
                Verdict::Refuse(kind, why, data) => {
                    out.truncate(at);
                    let (about, why, data) = (interceptor.about(), &*why, data.as_deref());
                    let failure = Failure {
                        kind,
                        about,
                        why,
                        data,
                    };
                    return self.rpc_error(out, &interceptor.error(failure), Some(kind));
                }
            }
        }
        let outcome = match self.config.observer {
            None => RequestOutcome::Done,
            Some(_) => RequestOutcome::of_result(out.get(begin..).unwrap_or_default()),
        };
        if !is_bare {
            out.push(b'}');
        }
        outcome
    }

    fn rpc_error(
        &self,
        out: &mut Vec<u8>,
        error: &Spelt<'_>,
        kind: Option<ErrorKind>,
    ) -> RequestOutcome {
        match self.frame {
            Frame::Bare => error_object(out, error),
            _ => error_frame(out, ErrorId::Id(self.id), error),
        }
        RequestOutcome::Failed(error.code, kind)
    }

    fn is_streamed(&self) -> bool {
        self.dialect == Dialect::ActionStream
    }

    fn action(&self) -> ActionReply<'_> {
        ActionReply {
            streamed: self.is_streamed(),
            interceptor: self.interceptor,
            #[cfg(feature = "server")]
            referring: self.referring.and_then(|whose| {
                let references = self.config.references.as_deref()?;
                let whose = whose.map(Principal::as_str);
                Some((references, whose, &self.config.budget))
            }),
        }
    }

    fn close(&self, out: &mut Vec<u8>, outcome: RequestOutcome) -> RequestOutcome {
        match self.frame {
            Frame::Whole(closing) => close(out, self.id, self.config, closing),
            Frame::Bare => out.push(b'}'),
            Frame::Open => {}
        }
        outcome
    }
}

/// The outcome of an action that has a result, by whether its tool failed.
fn of_action(failed: bool) -> RequestOutcome {
    match failed {
        true => RequestOutcome::ToolFailed,
        false => RequestOutcome::Done,
    }
}

/// Appends the end of the answer to an action.
pub(super) fn close(out: &mut Vec<u8>, id: RequestId<'_>, config: &Config, closing: Closing) {
    let metadata = AnswerMetadata {
        request_id: Some(id.raw()).filter(|id| !id.is_empty()),
        server_id: config.implementation.name(),
        execution_time_ms: closing.elapsed_ms.map(u64::from),
        protocol_version: closing.version,
    };
    action::close(out, metadata);
}

/// Appends the whole answer to a batch: `result` is a JSON object. `action` has the dialect and the end of
/// an answer to actions; `None` for JSON-RPC.
pub(super) fn batch(
    out: &mut Vec<u8>,
    id: RequestId<'_>,
    config: &Config,
    action: Option<(Dialect, Closing)>,
    result: &str,
) {
    match action {
        None => encode::response(out, id, result),
        Some((dialect, closing)) => {
            action::open_success(out, dialect == Dialect::ActionStream, Some(result));
            close(out, id, config, closing);
        }
    }
}

/// Appends a whole error message of JSON-RPC.
pub(super) fn error_frame(out: &mut Vec<u8>, id: ErrorId<'_>, error: &Spelt<'_>) {
    encode::error(out, id, error.code, &error.message, error.data.as_deref());
}

/// Appends the error object of JSON-RPC alone.
pub(super) fn error_object(out: &mut Vec<u8>, error: &Spelt<'_>) {
    encode::error_object(out, error.code, &error.message, error.data.as_deref());
}

/// Appends a report of progress on the call; returns whether the peer wants one.
pub(super) fn progress(out: &mut Vec<u8>, to: &ReplyTo, progress: Progress<'_>) -> bool {
    let Some(token) = &to.progress_token else {
        return false;
    };
    let is_rpc = to.dialect == Dialect::Rpc;
    let members = |out: &mut Vec<u8>| {
        out.extend_from_slice(b"\"progress\":");
        append_f64(out, progress.progress);
        // JSON has no form for infinities and NaN.
        if let Some(total) = progress.total.filter(|total| total.is_finite()) {
            out.extend_from_slice(b",\"total\":");
            append_f64(out, total);
        }
        let has_message = !is_rpc || to.revision.rules().progress_message;
        if let Some(message) = progress.message.filter(|_| has_message) {
            out.extend_from_slice(b",\"message\":");
            string::append(out, message);
        }
        out.push(b'}');
    };
    if is_rpc {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":");
        out.extend_from_slice(token.as_ref().raw().as_bytes());
        out.push(b',');
        members(out);
        out.push(b'}');
    } else {
        let mut data = b"{".to_vec();
        members(&mut data);
        part(out, to, &String::from_utf8(data).unwrap_or_default());
    }
    true
}

/// Appends a part of the answer to an action that is answered as a stream; returns whether it is.
pub(super) fn partial(out: &mut Vec<u8>, to: &ReplyTo, data: &str) -> bool {
    let is_streamed = to.dialect == Dialect::ActionStream;
    if is_streamed {
        part(out, to, data);
    }
    is_streamed
}

fn part(out: &mut Vec<u8>, to: &ReplyTo, data: &str) {
    let metadata = AnswerMetadata {
        request_id: Some(to.id().raw()).filter(|id| !id.is_empty()),
        ..AnswerMetadata::default()
    };
    action::partial(out, data, metadata);
}

/// Appends a number; whole numbers without a fraction.
fn append_f64(out: &mut Vec<u8>, value: f64) {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        number::append(out, value as i64);
    } else {
        // Writing to a vector cannot fail; NaN becomes `null`.
        let _ = serde_json::to_writer(out, &value);
    }
}
