//! Splits a child's stderr into lines.

use crate::panics::contain;
use memchr::memchr;

/// Longest line that is passed on whole, in bytes; a longer one arrives in pieces of this length.
pub const MAX_LINE_BYTES: usize = 16 << 10;

/// Splits bytes at newlines and passes the lines on as text. Bytes that are not UTF-8 become U+FFFD.
pub(super) struct Lines {
    partial: Vec<u8>,
    sink: Box<dyn FnMut(&str) + Send>,
}

impl Lines {
    pub(super) fn new(sink: Box<dyn FnMut(&str) + Send>) -> Self {
        Self {
            partial: Vec::new(),
            sink,
        }
    }

    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = MAX_LINE_BYTES - self.partial.len();
            let reach = &bytes[..bytes.len().min(room)];
            let (taken, whole) = match memchr(b'\n', reach) {
                Some(at) => (at + 1, true),
                None => (reach.len(), reach.len() == room),
            };
            let (piece, rest) = bytes.split_at(taken);
            bytes = rest;
            if !whole {
                self.partial.extend_from_slice(piece);
            } else if self.partial.is_empty() {
                emit(&mut self.sink, piece);
            } else {
                self.partial.extend_from_slice(piece);
                self.end();
            }
        }
    }

    /// Passes on the text after the last newline as a line.
    pub(super) fn end(&mut self) {
        if !self.partial.is_empty() {
            emit(&mut self.sink, &self.partial);
            self.partial.clear();
        }
    }
}

fn emit(sink: &mut (dyn FnMut(&str) + Send), line: &[u8]) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // A panic of the sink is contained.
    contain("a receiver of lines", || {
        sink(&String::from_utf8_lossy(line))
    });
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn lines_of(chunks: &[&[u8]]) -> Vec<String> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let into = seen.clone();
        let mut lines = Lines::new(Box::new(move |line| {
            into.lock().unwrap().push(line.to_owned())
        }));
        for chunk in chunks {
            lines.push(chunk);
        }
        lines.end();
        seen.lock().unwrap().clone()
    }

    #[test]
    fn lines_do_not_depend_on_how_the_bytes_arrive() {
        let text = b"one\r\n\ntwo \xff\nlast";
        let expected = ["one", "", "two \u{fffd}", "last"];
        assert_eq!(lines_of(&[text]), expected);
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(lines_of(&bytes), expected);
    }

    #[test]
    fn a_sink_that_panics_gets_the_next_line() {
        let seen = Arc::new(Mutex::new(0));
        let into = seen.clone();
        let mut lines = Lines::new(Box::new(move |_| {
            *into
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner) += 1;
            panic!("a sink");
        }));
        lines.push(b"one\ntwo\n");
        assert_eq!(*seen.lock().unwrap(), 2);
    }

    #[test]
    fn an_endless_line_comes_in_pieces_and_is_not_kept() {
        let piece = [b'x'; 5000];
        let lines = lines_of(&[&piece[..]; 100]);
        assert_eq!(lines.iter().map(String::len).sum::<usize>(), 500_000);
        assert!(lines.iter().all(|line| line.len() <= MAX_LINE_BYTES));
        assert_eq!(lines[0].len(), MAX_LINE_BYTES);
    }
}
