//! The logs of one session, and the memory that they take.

use super::message_log::{MessageLog, Which};
use crate::connection::{Held, StreamId};
use crate::limits::UNCOUNTED_BYTES;

/// The number of the log for messages that belong to no request.
pub const SESSION_LOG: u64 = 0;
/// The memory that a session takes without its logs, approximately, in bytes: with the stream that its
/// client reads.
const SESSION_BYTES: usize = 10 << 10;

/// The logs of a session. A `Vec` sorted by number, since an idle session has one log, and the first node
/// of a `BTreeMap` would have room for eleven.
pub struct SessionLogs {
    logs: Vec<(u64, MessageLog)>,
    /// The number of the next log, and of the next reader.
    next: u64,
    replay_bytes: usize,
    /// Maximum of bytes kept of the last unread messages, which clients may reconnect for.
    owed_bytes: usize,
    /// Accounts for the logs and for the session itself in the memory budget.
    held: Held,
}

/// One reader of one log.
#[derive(Clone, Copy, Debug)]
pub struct LogReader {
    pub stream: u64,
    pub number: u64,
}

impl SessionLogs {
    /// The logs of a session whose messages that belong to no request are written on `first`.
    pub fn new(first: StreamId, replay_bytes: usize, owed_bytes: usize, mut held: Held) -> Self {
        held.keep(with_logs(0));
        Self {
            logs: vec![(SESSION_LOG, MessageLog::of(first))],
            next: SESSION_LOG + 1,
            replay_bytes,
            owed_bytes,
            held,
        }
    }

    /// A number for a reader.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Opens a log for a stream, with its first reader.
    pub fn open(&mut self, engine_stream: StreamId, reader: u64) -> LogReader {
        let stream = self.number();
        let mut log = MessageLog::of(engine_stream);
        log.begin(reader, None);
        if self.logs.len() == self.logs.capacity() {
            self.logs.reserve_exact(self.logs.len().max(1));
        }
        // The number is greater than all others.
        self.logs.push((stream, log));
        LogReader {
            stream,
            number: reader,
        }
    }

    /// Attaches a new reader to a log after `behind` messages, or where the last one stopped, if the
    /// messages that follow are still kept.
    pub fn read(&mut self, stream: u64, behind: Option<u64>) -> Option<LogReader> {
        let number = self.number();
        let log = self.get_mut(stream)?;
        let has_begun = log.begin(number, behind);
        has_begun.then_some(LogReader { stream, number })
    }

    /// The log of a reader, unless the reader was displaced.
    pub fn of(&mut self, reader: LogReader) -> Option<&mut MessageLog> {
        let log = self.get_mut(reader.stream);
        log.filter(|log| log.is_read_by(reader.number))
    }

    fn place(&self, stream: u64) -> Option<usize> {
        self.logs
            .binary_search_by_key(&stream, |(own, _)| *own)
            .ok()
    }

    pub fn get_mut(&mut self, stream: u64) -> Option<&mut MessageLog> {
        let place = self.place(stream)?;
        self.logs.get_mut(place).map(|(_, log)| log)
    }

    pub fn iter(&self) -> impl Iterator<Item = &MessageLog> {
        self.logs.iter().map(|(_, log)| log)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut MessageLog> {
        self.logs.iter_mut().map(|(_, log)| log)
    }

    pub fn remove(&mut self, stream: u64) {
        if let Some(place) = self.place(stream) {
            self.logs.remove(place);
            self.count();
        }
    }

    /// Accounts for what the logs keep.
    pub fn count(&mut self) {
        self.held.keep(with_logs(self.bytes()));
    }

    fn bytes(&self) -> usize {
        self.iter().map(MessageLog::bytes).sum()
    }

    /// Forgets logs that are over, and kept messages beyond the limit: first those that were read, then
    /// those of logs without a reader (R-SSE-10). Frees more than needed, so that not every new message causes
    /// another pass. If the memory budget of all connections is exceeded, keeps nothing for clients that
    /// may reconnect.
    pub fn forget(&mut self) {
        self.logs.retain(|(_, log)| !log.is_over());
        // Gives memory back when few logs are left of many.
        if self.logs.capacity() / 8 > self.logs.len() {
            self.logs.shrink_to(self.logs.len() * 2);
        }
        let mut kept = self.bytes();
        if kept > self.replay_bytes {
            let enough = self.replay_bytes / 8 * 7;
            self.shed(&mut kept, Which::Read, enough);
            self.shed(&mut kept, Which::Unread, enough);
            self.shed(&mut kept, Which::Owed, self.owed_bytes);
        }
        if !self.held.try_keep(with_logs(kept)) {
            for which in [Which::Read, Which::Unread, Which::Owed] {
                self.shed(&mut kept, which, 0);
            }
            self.held.keep(with_logs(kept));
        }
    }

    /// Forgets the oldest messages of that kind until no more than `enough` bytes are kept.
    fn shed(&mut self, kept: &mut usize, which: Which, enough: usize) {
        for log in self.iter_mut() {
            while *kept > enough
                && let Some(len) = log.forget(which)
            {
                *kept -= len;
            }
        }
    }
}

/// The bytes that the budget counts for a session with that many bytes in its logs. Rounds up, so that the
/// accounting changes only now and then.
fn with_logs(bytes: usize) -> usize {
    SESSION_BYTES + bytes.next_multiple_of(UNCOUNTED_BYTES)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::connection::Budget;

    #[test]
    fn logs_are_found_by_number_and_take_no_more_room_than_they_need() {
        let held = Held::of(&Arc::<Budget>::default());
        let mut logs = SessionLogs::new(StreamId::FIRST, 1 << 20, 1 << 20, held);
        let readers: Vec<_> = (0..100)
            .map(|_| {
                let reader = logs.number();
                logs.open(StreamId::FIRST, reader)
            })
            .collect();
        for reader in &readers {
            assert!(logs.of(*reader).is_some(), "{reader:?}");
            assert!(logs.get_mut(reader.number).is_none(), "{reader:?}");
        }
        for reader in &readers[1..] {
            if let Some(log) = logs.of(*reader) {
                (log.stream, _) = (None, log.leave());
            }
        }
        logs.forget();
        assert_eq!(logs.iter().count(), 2);
        assert!(logs.get_mut(SESSION_LOG).is_some() && logs.of(readers[0]).is_some());
        assert!(logs.logs.capacity() <= 8, "{}", logs.logs.capacity());
    }
}
