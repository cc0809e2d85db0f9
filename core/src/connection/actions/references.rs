//! Data of actions that are too long for one answer: they are kept for a while, and the answer refers to
//! them (R-ACT-29). A client has them in parts, by `mcp.get_data`.
//!
//! ```text
//!   {"status":"success","data":{"mcp.reference":{"id":"…","bytes":9000000,"expires_in_seconds":60}}}
//!   mcp.get_data {"reference":"…","offset":0} ─▶ {"part":"{\"rows\":[…","bytes":9000000,"next_offset":500000}
//! ```

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::action::REFERENCE;
use crate::action::encode;
use crate::json::{number, string};
use crate::limits::{MAX_REFERENCES, MAX_REFERRED_BYTES, later};
use crate::message::Dialect;
use crate::unguessable;

/// Shortest part of data, in bytes: less than that is always answered whole.
const LEAST: usize = 1024;

/// What answers refer to, for all connections of a server.
pub(crate) struct References {
    /// Longest data that an answer holds itself.
    max_bytes: usize,
    ttl: Duration,
    kept: Mutex<Kept>,
}

/// As much as may be; the oldest gives way.
#[derive(Default)]
struct Kept {
    all: HashMap<Arc<str>, Referred>,
    order: VecDeque<(Instant, Arc<str>)>,
    bytes: usize,
}

struct Referred {
    data: Arc<str>,
    /// Who asked, where that is known.
    whose: Option<Box<str>>,
}

/// Without the data.
impl fmt::Debug for References {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("References")
            .field("max_bytes", &self.max_bytes)
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}

impl Kept {
    fn drop_oldest(&mut self) {
        if let Some((_, id)) = self.order.pop_front()
            && let Some(gone) = self.all.remove(&id)
        {
            self.bytes -= gone.data.len();
        }
    }

    fn forget_expired(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(until, _)| *until <= now) {
            self.drop_oldest();
        }
    }
}

impl References {
    pub fn new(max_bytes: usize, ttl: Duration) -> Self {
        Self {
            max_bytes: max_bytes.max(LEAST),
            ttl,
            kept: Mutex::default(),
        }
    }

    fn kept(&self, now: Instant) -> MutexGuard<'_, Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.forget_expired(now);
        kept
    }

    /// Keeps data, and says what refers to them; `None` when there is no room for so much, or no name
    /// for it.
    fn keep(&self, data: &str, whose: Option<&str>, now: Instant) -> Option<String> {
        if data.len() > MAX_REFERRED_BYTES {
            return None;
        }
        let id = unguessable::name()?;
        let mut kept = self.kept(now);
        while kept.all.len() >= MAX_REFERENCES || kept.bytes + data.len() > MAX_REFERRED_BYTES {
            kept.drop_oldest();
        }
        kept.bytes += data.len();
        kept.order.push_back((later(now, self.ttl), id.clone()));
        let referred = Referred {
            data: data.into(),
            whose: whose.map(Into::into),
        };
        kept.all.insert(id.clone(), referred);
        let (bytes, seconds) = (data.len(), self.ttl.as_secs());
        Some(format!(
            "{{\"{REFERENCE}\":{{\"id\":\"{id}\",\"bytes\":{bytes},\"expires_in_seconds\":{seconds}}}}}"
        ))
    }

    /// What `mcp.get_data` answers; `None` when there is nothing of that name for who asks, or nothing
    /// behind `offset`.
    pub fn part(&self, id: &str, offset: usize, whose: Option<&str>) -> Option<String> {
        let data = {
            let kept = self.kept(Instant::now());
            let found = kept.all.get(id)?;
            let own = found.whose.as_deref();
            (own == whose).then(|| found.data.clone())?
        };
        let rest = data.get(offset..).filter(|rest| !rest.is_empty())?;
        // As a string of JSON it is longer, at most twice as long.
        let end = rest.floor_char_boundary(self.max_bytes / 2);
        let mut out = b"{\"part\":".to_vec();
        string::append(&mut out, rest.get(..end)?);
        out.extend_from_slice(b",\"bytes\":");
        number::append(&mut out, data.len() as u64);
        if end < rest.len() {
            out.extend_from_slice(b",\"next_offset\":");
            number::append(&mut out, (offset + end) as u64);
        }
        out.push(b'}');
        String::from_utf8(out).ok()
    }

    /// Refers to the data of the answer that was appended from `at` on, where they are too long for it.
    /// Operations of a batch have theirs.
    pub fn refer(&self, out: &mut Vec<u8>, at: usize, dialect: Dialect, whose: Option<&str>) {
        let streamed = match dialect {
            Dialect::Action => false,
            Dialect::ActionStream => true,
            _ => return,
        };
        if out.len() - at <= self.max_bytes {
            return;
        }
        let mut head = Vec::new();
        encode::open_success(&mut head, streamed, Some(""));
        let data = out
            .get(at..)
            .and_then(|answer| answer.strip_prefix(&head[..]));
        let data = data.and_then(|data| std::str::from_utf8(data).ok());
        if let Some(reference) = data.and_then(|data| self.keep(data, whose, Instant::now())) {
            out.truncate(at);
            encode::open_success(out, streamed, Some(&reference));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(reference: &str) -> String {
        let value: serde_json::Value = serde_json::from_str(reference).unwrap();
        value[REFERENCE]["id"].as_str().unwrap().to_owned()
    }

    /// R-ACT-29: what is referred to is there for who asked, until its time is over.
    #[test]
    fn what_is_referred_to_is_there_for_a_while() {
        let references = References::new(2048, Duration::from_secs(5));
        let (data, now) = ("\"é\"".repeat(1000), Instant::now());
        let kept = id(&references.keep(&data, Some("alice"), now).unwrap());
        let (mut whole, mut next) = (String::new(), Some(0));
        while let Some(offset) = next {
            let part = references.part(&kept, offset, Some("alice")).unwrap();
            assert!(part.len() <= 2048 + 64, "{}", part.len());
            let part: serde_json::Value = serde_json::from_str(&part).unwrap();
            whole += part["part"].as_str().unwrap();
            assert_eq!(part["bytes"], data.len());
            next = part["next_offset"].as_u64().map(|next| next as usize);
        }
        assert_eq!(whole, data);
        for (id, offset, whose) in [
            (&*kept, 0, None),
            (&*kept, 0, Some("bob")),
            (&*kept, data.len(), Some("alice")),
            (&*kept, usize::MAX, Some("alice")),
            (&*kept, 2, Some("alice")), // within a character
            ("x", 0, Some("alice")),
        ] {
            assert_eq!(
                references.part(id, offset, whose),
                None,
                "{id} {offset} {whose:?}"
            );
        }
        drop(references.kept(now + Duration::from_secs(5)));
        assert_eq!(references.part(&kept, 0, Some("alice")), None);
        assert_eq!(references.kept(now).bytes, 0);
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        let references = References::new(0, Duration::from_secs(60));
        let (now, data) = (Instant::now(), "x".repeat(MAX_REFERRED_BYTES / 4));
        let first = id(&references.keep(&data, None, now).unwrap());
        for _ in 0..4 {
            references.keep(&data, None, now).unwrap();
            assert!(references.kept(now).bytes <= MAX_REFERRED_BYTES);
        }
        assert_eq!(references.part(&first, 0, None), None);
        let too_much = "x".repeat(MAX_REFERRED_BYTES + 1);
        assert_eq!(references.keep(&too_much, None, now), None);
        for _ in 0..MAX_REFERENCES + 5 {
            references.keep("x", None, now).unwrap();
        }
        let kept = references.kept(now);
        assert_eq!(
            (kept.all.len(), kept.order.len()),
            (MAX_REFERENCES, MAX_REFERENCES)
        );
    }
}
