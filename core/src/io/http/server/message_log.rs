//! The messages written on one stream of a session, kept for clients that reconnect (R-SSE-04).

use std::collections::VecDeque;
use std::task::Waker;
#[cfg(feature = "sealing")]
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;

use crate::connection::StreamId;
use crate::io::http::message_bytes::MessageBytes;

/// Bytes of messages that one entry of the store takes, unless the last is longer.
#[cfg(feature = "sealing")]
const ENTRY_BYTES: usize = 64 << 10;

/// The messages of one stream that are unread, or may be requested again.
#[derive(Debug)]
pub struct MessageLog {
    /// The engine's stream, while it may still produce messages.
    pub stream: Option<StreamId>,
    /// A client knows a position in this log, so it may reconnect.
    pub resumable: bool,
    /// The reader is to leave when it has read everything, and may reconnect after this time.
    pub released: Option<Duration>,
    /// The current reader; `None` when the last one has left.
    reader: Option<u64>,
    waker: Option<Waker>,
    /// How many messages were read, by the current reader or the last one.
    read: u64,
    kept: VecDeque<MessageBytes>,
    /// How many messages were forgotten: the position of the first one kept.
    gone: u64,
    bytes: usize,
    /// What goes to the store that processes share, too.
    #[cfg(feature = "sealing")]
    shared: Option<Shared>,
}

/// How far the store is.
#[cfg(feature = "sealing")]
#[derive(Debug, Default)]
struct Shared {
    /// How many messages it has.
    stored: u64,
    /// The task that writes to it.
    waker: Option<Waker>,
}

/// The messages of a log that the store lacks, or the first of them.
#[cfg(feature = "sealing")]
#[derive(Debug, Default)]
pub struct Unstored {
    /// How many messages come before.
    pub before: u64,
    pub messages: Vec<MessageBytes>,
    pub rest: Rest,
}

#[cfg(feature = "sealing")]
impl Unstored {
    /// Nothing any more.
    pub fn lost() -> Self {
        Self {
            rest: Rest::IsLost,
            ..Self::default()
        }
    }
}

/// What comes after some messages of a log.
#[cfg(feature = "sealing")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    #[default]
    Follows = 0,
    Ends = 1,
    /// Messages that were forgotten before they were stored.
    IsLost = 2,
}

/// The messages of a log that may be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Messages that were read.
    Read,
    /// Also unread messages of logs without a reader, except the last one of a log that a client may
    /// reconnect to: that one is usually the answer.
    Unread,
    /// Also that last message.
    Owed,
}

impl MessageLog {
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
            #[cfg(feature = "sealing")]
            shared: None,
        }
    }

    pub fn push(&mut self, message: MessageBytes) {
        self.bytes += len(&message);
        self.kept.push_back(message);
        #[cfg(feature = "sealing")]
        self.wake_writer();
    }

    /// Has the messages of this log written to the store, from the first kept, by a task that polls
    /// [`poll_unstored`](Self::poll_unstored). From now on a client may reconnect.
    #[cfg(feature = "sealing")]
    pub fn share(&mut self) {
        self.resumable = true;
        self.shared = Some(Shared {
            stored: self.gone,
            waker: None,
        });
    }

    /// The messages that the store lacks, as far as one entry takes them; at least one.
    #[cfg(feature = "sealing")]
    pub fn poll_unstored(&mut self, cx: &Context<'_>) -> Poll<Unstored> {
        let over = self.stream.is_none();
        let mut unstored = Unstored::lost();
        let Some(shared) = &mut self.shared else {
            return Poll::Ready(unstored);
        };
        unstored.before = shared.stored;
        let Some(skipped) = shared.stored.checked_sub(self.gone) else {
            return Poll::Ready(unstored);
        };
        let (skipped, mut bytes) = (skipped as usize, 0);
        let lacking = self.kept.iter().skip(skipped).take_while(|message| {
            let fits = bytes < ENTRY_BYTES;
            bytes += len(message);
            fits
        });
        unstored.messages.extend(lacking.cloned());
        let is_all = skipped + unstored.messages.len() == self.kept.len();
        unstored.rest = if over && is_all {
            Rest::Ends
        } else {
            Rest::Follows
        };
        if unstored.messages.is_empty() && unstored.rest == Rest::Follows {
            shared.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(unstored)
    }

    /// Notes how many messages the store has; `None` if it takes no more.
    #[cfg(feature = "sealing")]
    pub fn stored(&mut self, count: Option<u64>) {
        self.shared = count.map(|stored| Shared {
            stored,
            waker: None,
        });
    }

    #[cfg(feature = "sealing")]
    fn wake_writer(&mut self) {
        if let Some(waker) = self.shared.as_mut().and_then(|shared| shared.waker.take()) {
            waker.wake();
        }
    }

    fn is_stored(&self) -> bool {
        #[cfg(feature = "sealing")]
        return self.shared.is_none();
        #[cfg(not(feature = "sealing"))]
        true
    }

    /// Attaches `reader` after `behind` messages, or where the last reader stopped, and displaces the
    /// current reader. Returns `false` and changes nothing when some of the messages that follow are
    /// gone.
    pub fn begin(&mut self, reader: u64, behind: Option<u64>) -> bool {
        let read = behind.unwrap_or(self.read.max(self.gone));
        if !self.keeps(read) {
            return false;
        }
        self.read = read;
        self.reader = Some(reader);
        self.released = None;
        self.wake();
        true
    }

    /// Whether all messages after the first `read` are kept or still to come.
    pub fn keeps(&self, read: u64) -> bool {
        (self.gone..=self.len()).contains(&read)
    }

    pub fn is_read(&self) -> bool {
        self.reader.is_some()
    }

    pub fn is_read_by(&self, reader: u64) -> bool {
        self.reader == Some(reader)
    }

    /// Detaches the reader.
    pub fn leave(&mut self) {
        self.reader = None;
        self.waker = None;
    }

    /// How many messages have been read.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// The next message for the reader, and the number of messages read after it.
    pub fn next(&mut self) -> Option<(u64, MessageBytes)> {
        let index = usize::try_from(self.read.checked_sub(self.gone)?).ok()?;
        let message = self.kept.get(index)?.clone();
        self.read += 1;
        Some((self.read, message))
    }

    /// The messages that the reader has not read, if there are any. For a log of which nothing was read.
    pub fn unread(&mut self) -> Option<&mut [MessageBytes]> {
        (!self.kept.is_empty()).then(|| self.kept.make_contiguous())
    }

    /// Registers the reader's waker.
    pub fn watch(&mut self, waker: &Waker) {
        match &mut self.waker {
            Some(kept) => kept.clone_from(waker),
            None => self.waker = Some(waker.clone()),
        }
    }

    /// Forgets the reader's waker.
    pub fn unwatch(&mut self) {
        self.waker = None;
    }

    /// Wakes the reader: there is more to read, or nothing more will come.
    pub fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        #[cfg(feature = "sealing")]
        self.wake_writer();
    }

    /// Whether the log takes more messages: its reader has read everything, or there is no reader.
    pub fn has_room(&self) -> bool {
        self.reader.is_none() || self.read == self.len()
    }

    /// Whether everything was read and nothing more will come.
    pub fn is_at_end(&self) -> bool {
        self.stream.is_none() && self.read == self.len()
    }

    fn len(&self) -> u64 {
        self.gone + self.kept.len() as u64
    }

    /// Whether at most one message is kept.
    pub fn is_last(&self) -> bool {
        self.kept.len() <= 1
    }

    /// Bytes kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets the oldest message if `which` covers it, and returns its size in bytes. An unread
    /// message stays as long as the log has a reader.
    pub fn forget(&mut self, which: Which) -> Option<usize> {
        let is_read = self.gone < self.read;
        let is_last = self.resumable && self.kept.len() == 1;
        let goes = is_read
            || self.reader.is_none()
                && match which {
                    Which::Read => false,
                    Which::Unread => !is_last,
                    Which::Owed => true,
                };
        if !goes {
            return None;
        }
        let len = len(&self.kept.pop_front()?);
        self.bytes -= len;
        self.gone += 1;
        Some(len)
    }

    /// Whether the log is of no use any more: it has ended, has no reader, and keeps nothing to resume
    /// from or to store.
    pub fn is_over(&self) -> bool {
        let kept = self.resumable && self.bytes > 0 || !self.is_stored();
        self.stream.is_none() && self.reader.is_none() && !kept
    }
}

/// The memory that a message costs, in bytes; an empty message costs some as well.
fn len(message: &MessageBytes) -> usize {
    size_of::<MessageBytes>() + message.iter().map(Bytes::len).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &'static str) -> MessageBytes {
        MessageBytes::from_iter([Bytes::from_static(text.as_bytes())])
    }

    /// R-SSE-05, R-SSE-10.
    #[test]
    fn a_log_is_read_from_anywhere_that_is_still_kept() {
        let mut log = MessageLog::of(StreamId::FIRST);
        for each in ["a", "b", "c"] {
            log.push(text(each));
        }
        assert!(log.begin(1, None) && !log.has_room());
        assert_eq!(log.forget(Which::Unread), None, "it is still to be read");
        assert_eq!(log.next(), Some((1, text("a"))));
        assert!(log.forget(Which::Read).is_some());
        assert_eq!(log.forget(Which::Unread), None);
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
        while log.forget(Which::Read).is_some() {}
        assert_eq!(log.len() - log.gone, 2, "what was not read stays longest");
        while log.forget(Which::Unread).is_some() {}
        assert!(!log.is_over(), "the last is owed to the client");
        assert!(log.begin(3, Some(4)));
        assert_eq!(log.next(), Some((5, text("e"))));
        log.leave();
        while log.forget(Which::Read).is_some() {}
        assert!(log.is_over() && log.bytes() == 0);
    }
}
