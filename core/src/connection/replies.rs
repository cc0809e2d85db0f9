//! Answers, progress and log messages, written on any thread and handed to the driver together.

use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;

use super::call::ReplyTo;
use super::observer::RequestOutcome;
use super::options::Progress;
use super::queue::{FrameKind, Submission};
use super::reply::{self, Encoder, Frame};
use super::result_writer::ResultWriter;
use super::scratch;
use super::shared::{Shared, Wake};
use super::submitted_frame::{FramePlace, is_long};
use super::trace::mask;
use crate::json::{string, writer};
use crate::mcp::profile::{Failure, Spelt};
use crate::mcp::{ErrorKind, LogLevel, Method};
#[cfg(all(feature = "server", feature = "client"))]
use crate::message::RequestId;
use crate::message::{Dialect, encode};

/// A batch of answers and notifications for calls. Nothing is sent before [`submit`](Self::submit);
/// dropping the batch submits it.
///
/// Order is kept: progress written before an answer is sent before it. The driver discards what belongs
/// to a request that is already answered or cancelled.
#[derive(Debug)]
pub struct Replies {
    shared: Arc<Shared>,
    bytes: Vec<u8>,
    items: SmallVec<[Item; 2]>,
}

/// One frame of the batch.
struct Item {
    len: usize,
    kind: FrameKind,
}

impl Replies {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
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

    /// Adds a frame; `write` appends it and returns its kind, or `None` for no frame.
    fn push(&mut self, write: impl FnOnce(&mut Vec<u8>, &Shared) -> Option<FrameKind>) {
        let part = Part {
            start: self.bytes.len(),
            bytes: &mut self.bytes,
        };
        if let Some(kind) = write(part.bytes, &self.shared) {
            let len = part.bytes.len() - part.start;
            std::mem::forget(part);
            self.items.push(Item { len, kind });
        }
    }

    fn answer(
        &mut self,
        to: &ReplyTo,
        encode: impl FnOnce(&Encoder<'_>, &mut Vec<u8>) -> RequestOutcome,
    ) {
        self.push(|out, shared| {
            let encoder = Encoder {
                id: to.id(),
                dialect: to.dialect,
                frame: if to.is_member {
                    Frame::Bare
                } else {
                    Frame::Open
                },
                revision: to.revision,
                config: &shared.config,
                interceptor: to.interceptor.as_deref(),
                #[cfg(feature = "server")]
                referring: (!to.is_member)
                    .then(|| to.principal().or_else(|| shared.principal.get())),
            };
            let outcome = encode(&encoder, out);
            Some(FrameKind::Answer {
                key: to.key,
                outcome,
            })
        });
    }

    /// Answers with a result object.
    pub fn result(&mut self, to: &ReplyTo, write: impl FnOnce(&mut ResultWriter<'_>)) {
        self.answer(to, |encoder, out| encoder.result(out, write));
    }

    /// Answers with a complete result, a JSON object to which nothing is added.
    pub fn whole_result(&mut self, to: &ReplyTo, object: &str) {
        self.answer(to, |encoder, out| encoder.whole_result(out, object));
    }

    /// Answers with an error of a kind, whose code depends on the revision and the profile.
    pub fn error(&mut self, to: &ReplyTo, kind: ErrorKind, message: &str, data: Option<&str>) {
        let failure = Failure {
            kind,
            about: "",
            why: message,
            data,
        };
        self.answer(to, |encoder, out| encoder.failure(out, failure));
    }

    /// Answers with an error under a code that the application chose.
    pub fn error_code(&mut self, to: &ReplyTo, code: i64, message: &str, data: Option<&str>) {
        let error = Spelt {
            code,
            message: message.into(),
            data: data.map(Into::into),
        };
        self.answer(to, |encoder, out| encoder.error_code(out, error));
    }

    /// Reports progress, if the peer requested it. Under back-pressure only the newest report is kept
    /// (R-PRG-05). Reports are dropped while more bytes than the output's cap are queued for the peer.
    pub fn progress(&mut self, to: &ReplyTo, progress: Progress<'_>) {
        // JSON has no form for infinities and NaN.
        if to.wants_progress() && progress.progress.is_finite() && !self.shared.is_backed_up() {
            self.push(|out, _| {
                reply::progress(out, to, progress).then_some(FrameKind::Progress(to.key))
            });
        }
    }

    /// Passes on a report of progress that arrived on another connection, if the peer requested reports: `write` appends
    /// the notification's params with the peer's token. Under back-pressure like [`progress`](Self::progress).
    #[cfg(all(feature = "server", feature = "client"))]
    pub(crate) fn pass_progress(
        &mut self,
        to: &ReplyTo,
        write: impl FnOnce(&mut Vec<u8>, RequestId<'_>),
    ) {
        let Some(token) = to.progress_token().filter(|_| to.dialect == Dialect::Rpc) else {
            return;
        };
        if !self.shared.is_backed_up() {
            self.push(|out, _| {
                encode::notification(out, Method::Progress.name(), None);
                out.pop();
                out.extend_from_slice(b",\"params\":");
                write(out, token);
                out.push(b'}');
                Some(FrameKind::Progress(to.key))
            });
        }
    }

    /// Sends a part of the answer to an action that is answered as a stream; does nothing for other
    /// calls, which get the whole answer. `data` is JSON. If the peer has stopped reading and the
    /// output is at its cap, the connection ends instead (R-ACT-24).
    pub fn partial(&mut self, to: &ReplyTo, data: &str) {
        self.push(|out, _| reply::partial(out, to, data).then_some(FrameKind::Event(to.key)));
    }

    /// Sends a notification on behalf of a call that is not answered yet; `params` is a JSON object. If
    /// the peer has stopped reading and the output is at its cap, the connection ends instead.
    pub(crate) fn notification(&mut self, to: &ReplyTo, method: Method, params: &str) {
        self.notify(to, method.name(), Some(params));
    }

    /// Sends a notification of any method on behalf of a call that is not answered yet; does nothing
    /// for an action. `params` is a JSON object on one line, which is not validated. If the peer has
    /// stopped reading and the output is at its cap, the connection ends instead.
    pub fn notify(&mut self, to: &ReplyTo, method: &str, params: Option<&str>) {
        if to.dialect == Dialect::Rpc {
            self.push(|out, _| {
                encode::notification(out, method, params);
                Some(FrameKind::Event(to.key))
            });
        }
    }

    /// Sends a log message on behalf of a call, if the peer wants messages of that level. `data` is
    /// JSON; the values of members whose names suggest secrets are masked (R-LOG-05). Dropped under
    /// back-pressure.
    pub fn log(&mut self, to: &ReplyTo, level: LogLevel, logger: Option<&str>, data: &str) {
        let least = to
            .log_level
            .unwrap_or_else(|| Some(self.shared.log_level()));
        let least = least.filter(|_| to.dialect == Dialect::Rpc);
        if least.is_some_and(|least| level >= least) && !self.shared.is_backed_up() {
            self.push(|out, _| {
                log_message(out, level, logger, &mask(data));
                Some(FrameKind::Log(to.key))
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
        let shared = &self.shared;
        let items = self.items.drain(..);
        if is_long(self.bytes.len()) {
            let mut block = Bytes::from(std::mem::take(&mut self.bytes));
            let frames = items.map(|Item { len, kind }| Submission::Frame {
                frame: FramePlace::Own(block.split_to(len)),
                kind,
            });
            shared.submit_frames(&[], |all| all.extend(frames), wake_with);
        } else {
            let frames = items.map(|Item { len, kind }| Submission::Frame {
                frame: FramePlace::Next(len),
                kind,
            });
            shared.submit_frames(&self.bytes, |all| all.extend(frames), wake_with);
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
