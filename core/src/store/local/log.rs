//! One log: its latest entries, by consecutive ids.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::store::bounds::{LogBounds, MAX_PAGE_BYTES};
use crate::store::verbs::{LogEntry, LogPage};

#[derive(Debug)]
pub struct Log {
    entries: VecDeque<Bytes>,
    /// The id before that of the first entry kept.
    gone: u64,
    bytes: usize,
    fence: u64,
}

impl Log {
    /// A log whose first entry gets the id after `before`.
    pub fn after(before: u64) -> Self {
        Self {
            entries: VecDeque::new(),
            gone: before,
            bytes: 0,
            fence: 0,
        }
    }

    /// The highest fence with which an entry was appended.
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Appends an entry, with a fence that is not lower than the highest. Returns its id.
    pub fn append(&mut self, entry: Bytes, bounds: LogBounds, fence: u64) -> u64 {
        self.fence = fence;
        self.bytes += entry.len();
        self.entries.push_back(entry);
        let id = self.last();
        while self.bytes > bounds.bytes || self.entries.len() > bounds.entries as usize {
            let Some(first) = self.entries.pop_front() else {
                break;
            };
            self.bytes -= first.len();
            self.gone += 1;
        }
        id
    }

    /// The id of the last entry.
    fn last(&self) -> u64 {
        self.gone + self.entries.len() as u64
    }

    /// The bytes of all entries, with what a list takes for each.
    pub fn bytes(&self) -> usize {
        self.bytes + self.entries.len() * size_of::<Bytes>()
    }

    /// The bytes that an entry takes.
    pub fn bytes_for(entry: &[u8]) -> usize {
        entry.len() + size_of::<Bytes>()
    }

    pub fn read(&self, after: Option<u64>, most: usize) -> LogPage {
        let last = self.last();
        let from = after.unwrap_or(self.gone).clamp(self.gone, last);
        let mut bytes = 0;
        let kept = self.entries.iter().skip((from - self.gone) as usize);
        let fits = kept.take(most).take_while(|entry| {
            let is_first = bytes == 0;
            bytes += entry.len();
            is_first || bytes <= MAX_PAGE_BYTES
        });
        let entries = (from + 1..).zip(fits).map(|(id, bytes)| LogEntry {
            id,
            bytes: bytes.clone(),
        });
        LogPage {
            entries: entries.collect(),
            last,
            has_gap: after.is_some_and(|after| after != from),
        }
    }
}
