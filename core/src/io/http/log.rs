//! What was written on one stream of a session, kept for who comes back for it (R-SSE-04).

use std::collections::VecDeque;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;

use super::events::Message;
use crate::connection::StreamId;
use crate::json::number;

/// The messages of one stream that were not yet read, or may be asked for again.
#[derive(Debug)]
pub struct Log {
    /// The engine's stream, while something may still come.
    pub stream: Option<StreamId>,
    /// A client knows a position in it.
    pub resumable: bool,
    /// Its reader is to go when it has read what there is, and may come back so soon.
    pub released: Option<Duration>,
    /// Which of the session's readers reads it; none when the last has left.
    reader: Option<u64>,
    waker: Option<Waker>,
    /// How many messages were read, by the reader there is or by the last.
    read: u64,
    kept: VecDeque<Message>,
    /// How many were before those that are kept.
    gone: u64,
    bytes: usize,
}

/// Where in a session a reader is: the stream, and how many of its messages are behind it
/// (R-SSE-03).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub stream: u64,
    pub read: u64,
}

impl Position {
    pub fn parse(id: &str) -> Option<Self> {
        let (stream, read) = id.split_once('_')?;
        let number = |text: &str| -> Option<u64> {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| digits)
        };
        Some(Self {
            stream: number(stream)?,
            read: number(read)?,
        })
    }

    pub fn append(self, out: &mut Vec<u8>) {
        number::append(out, self.stream);
        out.push(b'_');
        number::append(out, self.read);
    }
}

impl Log {
    pub fn of(stream: StreamId) -> Self {
        Self {
            stream: Some(stream),
            resumable: false,
            released: None,
            reader: None,
            waker: None,
            read: 0,
            kept: VecDeque::new(),
            gone: 0,
            bytes: 0,
        }
    }

    pub fn push(&mut self, message: Message) {
        self.bytes += len(&message);
        self.kept.push_back(message);
    }

    /// `reader` goes on behind so many messages, or where the last one left; that one is sent
    /// away. Nothing changes, and it is `false`, when some of what follows is gone.
    pub fn begin(&mut self, reader: u64, behind: Option<u64>) -> bool {
        let read = behind.unwrap_or(self.read.max(self.gone));
        if !(self.gone..=self.len()).contains(&read) {
            return false;
        }
        self.read = read;
        self.reader = Some(reader);
        self.released = None;
        self.wake();
        true
    }

    pub fn is_read(&self) -> bool {
        self.reader.is_some()
    }

    pub fn is_read_by(&self, reader: u64) -> bool {
        self.reader == Some(reader)
    }

    /// Nobody reads it any more.
    pub fn leave(&mut self) {
        self.reader = None;
        self.waker = None;
    }

    /// How many messages are read.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// The next message for its reader, and how many are read then.
    pub fn next(&mut self) -> Option<(u64, Message)> {
        let index = usize::try_from(self.read.checked_sub(self.gone)?).ok()?;
        let message = self.kept.get(index)?.clone();
        self.read += 1;
        Some((self.read, message))
    }

    /// Its reader is to be woken when there is more.
    pub fn watch(&mut self, waker: &Waker) {
        match &mut self.waker {
            Some(kept) => kept.clone_from(waker),
            None => self.waker = Some(waker.clone()),
        }
    }

    /// There is more, or nothing more will come.
    pub fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Whether it takes more: its reader has read everything, or nobody reads.
    pub fn has_room(&self) -> bool {
        self.reader.is_none() || self.read == self.len()
    }

    /// Whether nothing is left to be read, and nothing more will come.
    pub fn is_at_end(&self) -> bool {
        self.stream.is_none() && self.read == self.len()
    }

    fn len(&self) -> u64 {
        self.gone + self.kept.len() as u64
    }

    /// Whether no more than one message is kept.
    pub fn is_last(&self) -> bool {
        self.kept.len() <= 1
    }

    /// Bytes kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets the oldest message if it was read, or nobody reads and `unread` ones may go, too;
    /// gives its bytes. The last that a client may come back for stays: most often that is its answer.
    pub fn forget(&mut self, unread: bool) -> Option<usize> {
        let owed = self.resumable && self.kept.len() == 1;
        if self.gone >= self.read && (self.reader.is_some() || !unread || owed) {
            return None;
        }
        let len = len(&self.kept.pop_front()?);
        self.bytes -= len;
        self.gone += 1;
        Some(len)
    }

    /// Whether nobody can have anything of it any more.
    pub fn is_over(&self) -> bool {
        let kept = self.resumable && self.bytes > 0;
        self.stream.is_none() && self.reader.is_none() && !kept
    }
}

/// What a message costs: also an empty one does.
fn len(message: &Message) -> usize {
    size_of::<Message>() + message.iter().map(Bytes::len).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &'static str) -> Message {
        Message::from_iter([Bytes::from_static(text.as_bytes())])
    }

    /// R-SSE-03: what is written is read.
    #[test]
    fn positions_are_read_as_they_are_written() {
        for (stream, read) in [(0, 0), (7, 12), (u64::MAX, u64::MAX)] {
            let position = Position { stream, read };
            let mut id = Vec::new();
            position.append(&mut id);
            let id = String::from_utf8(id).unwrap();
            assert_eq!(Position::parse(&id), Some(position), "{id}");
        }
        for wrong in [
            "",
            "1",
            "_",
            "1_",
            "_1",
            "+1_2",
            "1_2_3",
            "1_18446744073709551616",
        ] {
            assert_eq!(Position::parse(wrong), None, "{wrong}");
        }
    }

    /// R-SSE-05, R-SSE-10.
    #[test]
    fn a_log_is_read_from_anywhere_that_is_still_kept() {
        let mut log = Log::of(StreamId::FIRST);
        for each in ["a", "b", "c"] {
            log.push(text(each));
        }
        assert!(log.begin(1, None) && !log.has_room());
        assert_eq!(log.forget(true), None, "it is still to be read");
        assert_eq!(log.next(), Some((1, text("a"))));
        assert!(log.forget(false).is_some());
        assert_eq!(log.forget(true), None);
        assert!(!log.begin(2, Some(0)) && !log.begin(2, Some(4)) && log.is_read_by(1));
        assert!(log.begin(2, Some(1)) && !log.is_read_by(1));
        assert_eq!(log.next(), Some((2, text("b"))));
        assert_eq!(log.next(), Some((3, text("c"))));
        assert!(log.next().is_none() && log.has_room());
        log.push(text("d"));
        log.push(text("e"));
        log.leave();
        log.resumable = true;
        log.stream = None;
        while log.forget(false).is_some() {}
        assert_eq!(log.len() - log.gone, 2, "what was not read stays longest");
        while log.forget(true).is_some() {}
        assert!(!log.is_over(), "the last is owed to the client");
        assert!(log.begin(3, Some(4)));
        assert_eq!(log.next(), Some((5, text("e"))));
        log.leave();
        while log.forget(false).is_some() {}
        assert!(log.is_over() && log.bytes() == 0);
    }
}
