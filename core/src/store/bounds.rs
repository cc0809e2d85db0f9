//! The bounds of every argument, checked alike by every store.

use std::time::Duration;

use super::error::{StoreError, StoreFault};
use super::verbs::Bucket;
use crate::limits::{Quota, SLOWEST_REFILL};

/// Longest name of a blob, a log, a topic, a lease, a bucket, a quota or a mark, in bytes. Names are not empty and contain
/// no braces.
pub const MAX_NAME_BYTES: usize = 256;

/// Most calls of a quota: a double counts them exactly.
pub const MAX_CALLS: u64 = 1 << 53;

/// Longest blob, and longest entry of a log, in bytes.
pub const MAX_VALUE_BYTES: usize = 4 << 20;

/// Longest note of a lease, in bytes.
pub const MAX_NOTE_BYTES: usize = 256;

/// Longest time for which anything is kept.
pub const MAX_KEEP: Duration = SLOWEST_REFILL;

/// Most entries of a log.
pub const MAX_LOG_ENTRIES: u32 = 65_536;

/// Most bytes of all entries of a log.
pub const MAX_LOG_BYTES: usize = 64 << 20;

/// Most bytes that [`read`](super::SharedStore::read) returns at a time, unless the first entry is longer.
pub const MAX_PAGE_BYTES: usize = 1 << 20;

/// What a log keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBounds {
    /// Most entries, from 1 to [`MAX_LOG_ENTRIES`].
    pub entries: u32,
    /// Most bytes of all entries, from 1 to [`MAX_LOG_BYTES`]. A longer entry is [`StoreFault::Misuse`].
    pub bytes: usize,
    /// How long the log is kept after its last entry.
    pub keep: Duration,
}

fn misuse(why: String) -> Result<(), StoreError> {
    Err(StoreError::new(StoreFault::Misuse, why))
}

pub fn check_name(name: &str) -> Result<(), StoreError> {
    match name.len() {
        0 => misuse("a name in the store is empty".into()),
        len if len > MAX_NAME_BYTES => misuse(format!(
            "a name in the store has {len} bytes; at most {MAX_NAME_BYTES} are possible"
        )),
        _ if name.contains(['{', '}']) => {
            misuse(format!("the name {name:?} in the store contains a brace"))
        }
        _ => Ok(()),
    }
}

pub fn check_keep(keep: Duration) -> Result<(), StoreError> {
    match keep {
        keep if keep < Duration::from_millis(1) => misuse(format!(
            "{keep:?} is too short to keep anything; the least is 1 ms"
        )),
        keep if keep > MAX_KEEP => misuse(format!(
            "{keep:?} is too long to keep anything; the most is {MAX_KEEP:?}"
        )),
        _ => Ok(()),
    }
}

pub fn check_value(value: &[u8]) -> Result<(), StoreError> {
    check_len("a value", value.len(), MAX_VALUE_BYTES)
}

pub fn check_note(note: &[u8]) -> Result<(), StoreError> {
    check_len("a note", note.len(), MAX_NOTE_BYTES)
}

fn check_len(what: &str, len: usize, most: usize) -> Result<(), StoreError> {
    if len > most {
        return misuse(format!(
            "{what} has {len} bytes; at most {most} are possible"
        ));
    }
    Ok(())
}

/// Checks an entry and the bounds of its log.
pub fn check_log(entry: &[u8], bounds: LogBounds) -> Result<(), StoreError> {
    check_keep(bounds.keep)?;
    check_value(entry)?;
    if !(1..=MAX_LOG_ENTRIES).contains(&bounds.entries) {
        return misuse(format!(
            "a log of {} entries: possible are 1 to {MAX_LOG_ENTRIES}",
            bounds.entries
        ));
    }
    if !(1..=MAX_LOG_BYTES).contains(&bounds.bytes) {
        return misuse(format!(
            "a log of {} bytes: possible are 1 to {MAX_LOG_BYTES}",
            bounds.bytes
        ));
    }
    check_len("an entry of this log", entry.len(), bounds.bytes)
}

pub fn check_spend(quota: Quota, calls: u64) -> Result<(), StoreError> {
    check_keep(quota.period)?;
    if !(1..=MAX_CALLS).contains(&quota.calls) {
        return misuse(format!(
            "a quota of {} calls: possible are 1 to {MAX_CALLS}",
            quota.calls
        ));
    }
    if calls > quota.calls {
        return misuse(format!("{calls} calls of a quota of {}", quota.calls));
    }
    Ok(())
}

pub fn check_take(bucket: Bucket, tokens: u32) -> Result<(), StoreError> {
    if bucket.interval < Duration::from_micros(1) {
        return misuse(format!(
            "a token in each {:?} is too fast; the least is 1 µs",
            bucket.interval
        ));
    }
    if tokens > bucket.burst {
        return misuse(format!(
            "{tokens} tokens of a bucket that holds {}",
            bucket.burst
        ));
    }
    let full = bucket.interval.checked_mul(bucket.burst);
    match full.filter(|full| *full <= MAX_KEEP) {
        Some(_) => Ok(()),
        None => misuse(format!(
            "a bucket of {} tokens, one in each {:?}, takes longer than {MAX_KEEP:?} to fill",
            bucket.burst, bucket.interval
        )),
    }
}
