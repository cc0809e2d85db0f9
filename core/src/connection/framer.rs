//! Frames the output of one stream.

use bytes::Bytes;

use super::submitted_frame::Encoded;
use super::trace::{Direction, Trace};
use crate::buffer::Output;
use crate::frame::{Framing, length, websocket};

/// The framing of one stream's output, and the callback that sees it.
#[derive(Debug)]
pub(crate) struct Framer {
    /// The framing that the peer uses.
    pub framing: Framing,
    trace: Option<Trace>,
}

impl Framer {
    pub fn new(framing: Framing, trace: Option<Trace>) -> Self {
        Self { framing, trace }
    }

    /// Appends one message, which `write` writes, with its framing.
    pub fn append(&self, output: &mut Output, write: impl FnOnce(&mut Vec<u8>)) {
        output.append_with(|out| {
            let begin = out.len();
            match self.framing {
                Framing::Length => out.extend_from_slice(&[0; length::PREFIX_LEN]),
                Framing::WebSocket { .. } => websocket::reserve_head(out),
                Framing::Line | Framing::Detect | Framing::Whole => {}
            }
            let at = out.len();
            write(out);
            if let Some(trace) = &self.trace {
                trace.note(Direction::Out, &out[at..]);
            }
            match self.framing {
                Framing::Length => drop(length::fill_prefix(out, begin)),
                Framing::WebSocket { masked } => websocket::finish_message(out, begin, masked),
                Framing::Line | Framing::Detect | Framing::Whole => out.push(b'\n'),
            }
        });
    }

    /// Appends a submitted frame that `end` completes; a long one without a copy.
    pub fn append_frame(
        &self,
        output: &mut Output,
        frame: Encoded<'_>,
        end: Option<impl FnOnce(&mut Vec<u8>)>,
    ) {
        match (frame, end) {
            (Encoded::Own(frame), None) => self.push(output, frame),
            (Encoded::Own(frame), Some(end)) => {
                let mut whole = Vec::from(frame);
                end(&mut whole);
                self.push(output, whole.into());
            }
            (Encoded::Copied(frame), end) => self.append(output, |out| {
                out.reserve(frame.len() + if end.is_some() { 128 } else { 1 });
                out.extend_from_slice(frame);
                if let Some(end) = end {
                    end(out);
                }
            }),
        }
    }

    /// Queues one encoded message; a long one without a copy.
    fn push(&self, output: &mut Output, frame: Bytes) {
        if let Some(trace) = &self.trace {
            trace.note(Direction::Out, &frame);
        }
        match self.framing {
            Framing::Line | Framing::Detect | Framing::Whole => {
                output.push(frame);
                output.append(b"\n");
            }
            Framing::Length => {
                if output.append_with(|out| length::append_prefix(out, frame.len())) {
                    output.push(frame);
                }
            }
            Framing::WebSocket { masked: false } => {
                output.append_with(|out| websocket::append_head(out, frame.len()));
                output.push(frame);
            }
            Framing::WebSocket { masked: true } => output.append_with(|out| {
                let begin = out.len();
                websocket::reserve_head(out);
                out.extend_from_slice(&frame);
                websocket::finish_message(out, begin, true);
            }),
        }
    }
}
