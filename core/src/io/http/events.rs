//! An answer as a stream of events, driven by who writes it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep};

use super::exchange::Exchange;
use crate::correlate::{CancelToken, Cancelled};

const DATA: &[u8] = b"data: ";
const END: &[u8] = b"\n\n";
/// A comment, which clients ignore (R-HTP-16).
const COMMENT: &[u8] = b":\n\n";

/// Messages, one a line, as events (R-SSE-01). A message may come in several pieces.
#[derive(Debug, Default)]
pub struct Encoder {
    /// A message has begun.
    open: bool,
}

impl Encoder {
    /// The pieces as they are to be written: long ones are not copied.
    pub fn encode(&mut self, pieces: impl Iterator<Item = Bytes>, out: &mut VecDeque<Bytes>) {
        let mut small = Vec::new();
        for piece in pieces {
            let mut rest = piece;
            while !rest.is_empty() {
                if !self.open {
                    small.extend_from_slice(DATA);
                    self.open = true;
                }
                let end = memchr::memchr(b'\n', &rest);
                let part = rest.split_to(end.unwrap_or(rest.len()));
                match part.len() > crate::limits::COPY_IN_BYTES {
                    true => {
                        out.push_back(std::mem::take(&mut small).into());
                        out.push_back(part);
                    }
                    false => small.extend_from_slice(&part),
                }
                if end.is_some() {
                    small.extend_from_slice(END);
                    self.open = false;
                    bytes::Buf::advance(&mut rest, 1);
                }
            }
        }
        out.push_back(small.into());
        out.retain(|piece| !piece.is_empty());
    }
}

/// The body of an answer that comes in several messages.
pub struct Events {
    exchange: Exchange,
    encoder: Encoder,
    ready: VecDeque<Bytes>,
    comment_interval: Duration,
    silence: Pin<Box<Sleep>>,
    stopping: Option<(Cancelled, Duration)>,
}

impl Events {
    /// What is there already is written first. When `stop` is cancelled, the stream ends in good
    /// order within `grace`.
    pub fn new(
        exchange: Exchange,
        comment_interval: Duration,
        (stop, grace): (&CancelToken, Duration),
    ) -> Self {
        Self {
            exchange,
            encoder: Encoder::default(),
            ready: VecDeque::new(),
            comment_interval,
            silence: Box::pin(tokio::time::sleep(comment_interval)),
            stopping: Some((stop.cancelled(), grace)),
        }
    }

    /// The next piece; `None` at the end.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some((stop, grace)) = &mut self.stopping
            && Pin::new(stop).poll(cx).is_ready()
        {
            let grace = *grace;
            self.stopping = None;
            self.exchange.drain(grace);
        }
        if self.ready.is_empty() {
            let moved = self.exchange.poll(cx).is_ready();
            let pieces = self.exchange.take();
            self.encoder.encode(pieces, &mut self.ready);
            if self.ready.is_empty() {
                if moved && self.exchange.is_done() {
                    return Poll::Ready(None);
                }
                std::task::ready!(self.silence.as_mut().poll(cx));
                self.ready.push_back(Bytes::from_static(COMMENT));
            }
        }
        let next = Instant::now() + self.comment_interval;
        self.silence.as_mut().reset(next);
        Poll::Ready(self.ready.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-SSE-01: however the lines are cut, the events are the same.
    #[test]
    fn lines_become_events() {
        let long = format!("{{\"x\":\"{}\"}}", "y".repeat(100_000));
        let lines = format!("{{\"a\":1}}\n{long}\n{{}}\n");
        let whole = Bytes::from(lines.clone());
        let expected = format!("data: {{\"a\":1}}\n\ndata: {long}\n\ndata: {{}}\n\n");
        for cut in [1, 7, 8, 9, 50, 70_000, lines.len() - 1] {
            let (mut encoder, mut out) = (Encoder::default(), VecDeque::new());
            encoder.encode([whole.slice(..cut)].into_iter(), &mut out);
            encoder.encode([whole.slice(cut..)].into_iter(), &mut out);
            assert_eq!(
                out.iter().flatten().copied().collect::<Vec<_>>(),
                expected.as_bytes()
            );
        }
    }
}
