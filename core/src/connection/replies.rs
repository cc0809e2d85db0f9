//! Answers, progress and log messages, written on any thread and handed to the driver together.

use bytes::Bytes;
use smallvec::SmallVec;

use super::actions::words;
use super::answer::{self, ResultWriter};
use super::handle::{Handle, Progress};
use super::host::ReplyTo;
use super::interceptor;
#[cfg(feature = "server")]
use super::principal::Principal;
use super::queue::{FrameKind, Place, Submission, is_long};
use super::scratch;
use super::shared::Wake;
use super::trace::mask;
use crate::action::{self, encode::AnswerMetadata};
use crate::json::{number, string, writer};
use crate::mcp::profile::{Failure, Spelt};
use crate::mcp::{ErrorKind, LogLevel, Method};
use crate::message::Dialect;
use crate::message::encode::{self, ErrorId};

/// A batch of answers and notifications for calls. Nothing is sent before [`submit`](Self::submit);
/// dropping the batch submits it.
///
/// Order is kept: progress written before an answer is sent before it. The driver discards what belongs
/// to a request that is already answered or cancelled.
#[derive(Debug)]
pub struct Replies {
    handle: Handle,
    bytes: Vec<u8>,
    items: SmallVec<[Item; 2]>,
}

/// One frame of the batch.
struct Item {
    len: usize,
    kind: FrameKind,
}

impl Replies {
    pub(super) fn new(handle: Handle) -> Self {
        Self {
            handle,
            bytes: scratch::take(),
            items: SmallVec::new(),
        }
    }

    /// Number of bytes not submitted yet.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is nothing to submit.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn push(&mut self, kind: FrameKind, write: impl FnOnce(&mut Vec<u8>, &Handle)) {
        let part = Part {
            start: self.bytes.len(),
            bytes: &mut self.bytes,
        };
        write(part.bytes, &self.handle);
        let len = part.bytes.len() - part.start;
        std::mem::forget(part);
        self.items.push(Item { len, kind });
    }

    /// Answers with a result object.
    pub fn result(&mut self, to: &ReplyTo, write: impl FnOnce(&mut ResultWriter<'_>)) {
        self.push(FrameKind::Answer(to.key), |out, handle| {
            let at = out.len();
            match to.dialect {
                Dialect::Rpc => {
                    answer::result(out, to.id(), to.revision, handle.config(), write);
                    reviewed(out, at, to);
                }
                dialect => {
                    words::result(out, dialect, to.revision, to.interceptor.as_deref(), write);
                    referred(out, at, to, handle);
                }
            }
        });
    }

    /// Answers with a complete result, a JSON object to which nothing is added.
    pub fn whole_result(&mut self, to: &ReplyTo, object: &str) {
        if to.dialect != Dialect::Rpc {
            return self.push(FrameKind::Answer(to.key), |out, handle| {
                let at = out.len();
                words::whole_result(out, to.dialect, to.interceptor.as_deref(), object);
                referred(out, at, to, handle);
            });
        }
        self.push(FrameKind::Answer(to.key), |out, _| {
            let at = out.len();
            out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            out.extend_from_slice(to.id().raw().as_bytes());
            out.extend_from_slice(b",\"result\":");
            writer::append_compact(out, object);
            out.push(b'}');
            reviewed(out, at, to);
        });
    }

    /// Answers with an error of a kind, whose code depends on the revision and the profile.
    pub fn error(&mut self, to: &ReplyTo, kind: ErrorKind, message: &str, data: Option<&str>) {
        let failure = Failure {
            kind,
            about: to
                .interceptor
                .as_ref()
                .map_or("", |interceptor| interceptor.about()),
            why: message,
            data,
        };
        let spelt = match &to.interceptor {
            None => self.handle.config().profile.spell(to.revision, failure),
            Some(interceptor) => interceptor.error(failure),
        };
        if to.dialect != Dialect::Rpc {
            return self.push(FrameKind::Answer(to.key), |out, _| {
                words::error(out, to.dialect, kind, &spelt.message, spelt.data.as_deref());
            });
        }
        self.spelt(to, &spelt);
    }

    /// Answers with an error under a code that the application chose.
    pub fn error_code(&mut self, to: &ReplyTo, code: i64, message: &str, data: Option<&str>) {
        let spelt = Spelt {
            code,
            message: message.into(),
            data: data.map(Into::into),
        };
        match &to.interceptor {
            None => self.spelt(to, &spelt),
            Some(interceptor) => self.spelt(to, &interceptor.coded(spelt)),
        }
    }

    fn spelt(&mut self, to: &ReplyTo, error: &Spelt<'_>) {
        self.push(FrameKind::Answer(to.key), |out, _| match to.dialect {
            Dialect::Rpc => interceptor::write(out, ErrorId::Id(to.id()), error),
            dialect => {
                let (message, data) = (&error.message, error.data.as_deref());
                words::error_code(out, dialect, error.code, message, data);
            }
        });
    }

    /// Reports progress, if the peer requested it. Under back-pressure only the newest report is kept
    /// (R-PRG-05). Reports are dropped while more bytes than the output's cap are queued for the peer.
    pub fn progress(&mut self, to: &ReplyTo, progress: Progress<'_>) {
        let Some(token) = &to.progress_token else {
            return;
        };
        // JSON has no form for infinities and NaN.
        if self.handle.shared.is_backed_up() || !progress.progress.is_finite() {
            return;
        }
        if to.dialect != Dialect::Rpc {
            return self.push(FrameKind::Progress(to.key), |out, _| {
                let mut data = b"{\"progress\":".to_vec();
                append_f64(&mut data, progress.progress);
                if let Some(total) = progress.total.filter(|total| total.is_finite()) {
                    data.extend_from_slice(b",\"total\":");
                    append_f64(&mut data, total);
                }
                if let Some(message) = progress.message {
                    data.extend_from_slice(b",\"message\":");
                    string::append(&mut data, message);
                }
                data.push(b'}');
                let data = String::from_utf8(data).unwrap_or_default();
                action::encode::partial(out, &data, part_of(to));
            });
        }
        self.push(FrameKind::Progress(to.key), |out, _| {
            out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":");
            out.extend_from_slice(token.as_ref().raw().as_bytes());
            out.extend_from_slice(b",\"progress\":");
            append_f64(out, progress.progress);
            if let Some(total) = progress.total.filter(|total| total.is_finite()) {
                out.extend_from_slice(b",\"total\":");
                append_f64(out, total);
            }
            if let Some(message) = progress.message.filter(|_| to.revision.rules().progress_message) {
                out.extend_from_slice(b",\"message\":");
                string::append(out, message);
            }
            out.extend_from_slice(b"}}");
        });
    }

    /// Sends a part of the answer to an action that is answered as a stream; does nothing for other
    /// calls, which get the whole answer. `data` is JSON. If the peer has stopped reading and the
    /// output is at its cap, the connection ends instead (R-ACT-24).
    pub fn partial(&mut self, to: &ReplyTo, data: &str) {
        if to.dialect == Dialect::ActionStream {
            self.push(FrameKind::Event(to.key), |out, _| {
                action::encode::partial(out, data, part_of(to));
            });
        }
    }

    /// Sends a notification on behalf of a call that is not answered yet; `params` is a JSON object. If
    /// the peer has stopped reading and the output is at its cap, the connection ends instead.
    #[cfg(feature = "server")]
    pub(crate) fn notification(&mut self, to: &ReplyTo, method: Method, params: &str) {
        self.notify(to, method.name(), Some(params));
    }

    /// Sends a notification of any method on behalf of a call that is not answered yet; does nothing
    /// for an action. `params` is a JSON object on one line, which is not validated. If the peer has
    /// stopped reading and the output is at its cap, the connection ends instead.
    pub fn notify(&mut self, to: &ReplyTo, method: &str, params: Option<&str>) {
        if to.dialect == Dialect::Rpc {
            self.push(FrameKind::Event(to.key), |out, _| {
                encode::notification(out, method, params);
            });
        }
    }

    /// Sends a log message on behalf of a call, if the peer wants messages of that level. `data` is
    /// JSON; the values of members whose names suggest secrets are masked (R-LOG-05). Dropped under
    /// back-pressure.
    pub fn log(&mut self, to: &ReplyTo, level: LogLevel, logger: Option<&str>, data: &str) {
        let least = to
            .log_level
            .unwrap_or_else(|| Some(self.handle.log_level()));
        let least = least.filter(|_| to.dialect == Dialect::Rpc);
        if least.is_some_and(|least| level >= least) && !self.handle.shared.is_backed_up() {
            self.push(FrameKind::Log(Some(to.key)), |out, _| {
                log_message(out, level, logger, &mask(data))
            });
        }
    }

    /// Hands all frames to the driver.
    pub fn submit(&mut self) {
        self.hand_over(|wake| wake.wake());
    }

    /// Like [`submit`](Self::submit), as the last act of a handler: see [`Wake::wake_soon`].
    pub fn submit_last(&mut self) {
        self.hand_over(|wake| wake.wake_soon());
    }

    fn hand_over(&mut self, wake_with: fn(&dyn Wake)) {
        if self.items.is_empty() {
            return;
        }
        let shared = &self.handle.shared;
        let items = self.items.drain(..);
        if is_long(self.bytes.len()) {
            let mut block = Bytes::from(std::mem::take(&mut self.bytes));
            let frames = items.map(|Item { len, kind }| Submission::Frame {
                frame: Place::Own(block.split_to(len)),
                kind,
            });
            shared.submit_frames(&[], frames, wake_with);
        } else {
            let frames = items.map(|Item { len, kind }| Submission::Frame {
                frame: Place::Next(len),
                kind,
            });
            shared.submit_frames(&self.bytes, frames, wake_with);
            self.bytes.clear();
        }
    }
}

/// A frame being written. If its writer panics, the drop removes the incomplete frame.
struct Part<'a> {
    bytes: &'a mut Vec<u8>,
    start: usize,
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.bytes.truncate(self.start);
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        self.submit();
        scratch::put(std::mem::take(&mut self.bytes));
    }
}

/// The metadata of a part of a streamed answer.
fn part_of(to: &ReplyTo) -> AnswerMetadata<'_> {
    AnswerMetadata {
        request_id: Some(to.id().raw()).filter(|id| !id.is_empty()),
        ..AnswerMetadata::default()
    }
}

/// Passes the result that begins at `at` to the call's interceptor, if there is one.
fn reviewed(out: &mut Vec<u8>, at: usize, to: &ReplyTo) {
    if let Some(interceptor) = &to.interceptor {
        interceptor::review(out, at, to.id(), interceptor.as_ref());
    }
}

/// Replaces the data of an action's answer, which begins at `at`, by a reference if they are too long.
fn referred(out: &mut Vec<u8>, at: usize, to: &ReplyTo, handle: &Handle) {
    #[cfg(feature = "server")]
    if let Some(references) = &handle.config().references {
        let whose = to.principal().or_else(|| handle.verified());
        let asked = (to.dialect, whose.map(Principal::as_str));
        references.refer(out, at, asked, &handle.config().budget);
    }
    #[cfg(not(feature = "server"))]
    let _ = (out, at, to, handle);
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

fn log_message(out: &mut Vec<u8>, level: LogLevel, logger: Option<&str>, data: &str) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":\"");
    out.extend_from_slice(Method::LogMessage.name().as_bytes());
    out.extend_from_slice(b"\",\"params\":{\"level\":");
    string::append(out, level.name());
    if let Some(logger) = logger {
        out.extend_from_slice(b",\"logger\":");
        string::append(out, logger);
    }
    out.extend_from_slice(b",\"data\":");
    writer::append_compact(out, data);
    out.extend_from_slice(b"}}");
}

impl std::fmt::Debug for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Item")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
