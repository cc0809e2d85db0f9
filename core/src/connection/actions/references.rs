//! Stores data of actions that are too long for one answer. The answer then refers to the data for a
//! while (R-ACT-29), and the client fetches them in parts with `mcp.get_data`.
//!
//! ```text
//!   {"status":"success","data":{"mcp.reference":{"id":"…","bytes":9000000,"expires_in_seconds":60}}}
//!   mcp.get_data {"reference":"…","offset":0}
//!     ─▶ {"part":"{\"rows\":[…","bytes":9000000,"next_offset":500000}
//! ```

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::action::REFERENCE;
use crate::connection::{Budget, Held};
use crate::json::{number, string};
use crate::limits::{MAX_REFERENCES, MAX_REFERRED_BYTES, later};
use crate::unguessable;

/// Lower bound of `max_bytes`: shorter answers are always sent whole.
const LEAST: usize = 1024;

/// The stored data of all connections of a server.
pub(crate) struct References {
    /// Longest answer that is sent whole, in bytes.
    max_bytes: usize,
    ttl: Duration,
    kept: Mutex<Kept>,
}

/// Stored data within their limits; the oldest are dropped first.
#[derive(Default)]
struct Kept {
    all: HashMap<Arc<str>, Referred>,
    order: VecDeque<(Instant, Arc<str>)>,
    bytes: usize,
    /// The same bytes in the server's budget, once something was stored.
    held: Option<Held>,
}

struct Referred {
    data: Arc<str>,
    /// The principal that the answer went to, if known.
    whose: Option<Box<str>>,
}

/// Omits the data.
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
            self.count();
        }
    }

    /// Makes room for so many bytes by dropping the oldest data; returns whether there is room.
    fn make_room(&mut self, bytes: usize, budget: &Arc<Budget>) -> bool {
        while self.all.len() >= MAX_REFERENCES || self.bytes + bytes > MAX_REFERRED_BYTES {
            self.drop_oldest();
        }
        loop {
            let held = self.held.get_or_insert_with(|| Held::of(budget));
            if held.try_keep(self.bytes + bytes) {
                return true;
            }
            if self.order.is_empty() {
                return false;
            }
            self.drop_oldest();
        }
    }

    fn count(&mut self) {
        if let Some(held) = &mut self.held {
            held.keep(self.bytes);
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

    /// Stores data and returns the reference to them; `None` if there is no room, or no random id for
    /// them.
    fn keep(
        &self,
        data: &str,
        whose: Option<&str>,
        now: Instant,
        budget: &Arc<Budget>,
    ) -> Option<String> {
        if data.len() > MAX_REFERRED_BYTES {
            return None;
        }
        let id = unguessable::name()?;
        let mut kept = self.kept(now);
        if !kept.make_room(data.len(), budget) {
            return None;
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

    /// The answer to `mcp.get_data`; `None` if `whose` has no data under this id, or there are none
    /// from `offset` on.
    pub fn part(&self, id: &str, offset: usize, whose: Option<&str>) -> Option<String> {
        let data = {
            let kept = self.kept(Instant::now());
            let found = kept.all.get(id)?;
            let own = found.whose.as_deref();
            (own == whose).then(|| found.data.clone())?
        };
        let rest = data.get(offset..).filter(|rest| !rest.is_empty())?;
        // As a JSON string the part becomes longer, at most twice as long.
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

    /// Stores data that are too long for one answer, and returns the reference to send instead; `None` if
    /// the data are to be sent.
    pub fn refer(&self, data: &str, whose: Option<&str>, budget: &Arc<Budget>) -> Option<String> {
        (data.len() > self.max_bytes)
            .then(|| self.keep(data, whose, Instant::now(), budget))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(reference: &str) -> String {
        let value: serde_json::Value = serde_json::from_str(reference).unwrap();
        value[REFERENCE]["id"].as_str().unwrap().to_owned()
    }

    /// R-ACT-29: stored data are available to the client that asked until they expire.
    #[test]
    fn what_is_referred_to_is_there_for_a_while() {
        let budget = Arc::default();
        let references = References::new(2048, Duration::from_secs(5));
        let (data, now) = ("\"é\"".repeat(1000), Instant::now());
        let kept = id(&references.keep(&data, Some("alice"), now, &budget).unwrap());
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
        let budget = Arc::default();
        let references = References::new(0, Duration::from_secs(60));
        let (now, data) = (Instant::now(), "x".repeat(MAX_REFERRED_BYTES / 4));
        let first = id(&references.keep(&data, None, now, &budget).unwrap());
        for _ in 0..4 {
            references.keep(&data, None, now, &budget).unwrap();
            assert!(references.kept(now).bytes <= MAX_REFERRED_BYTES);
        }
        assert_eq!(references.part(&first, 0, None), None);
        let too_much = "x".repeat(MAX_REFERRED_BYTES + 1);
        assert_eq!(references.keep(&too_much, None, now, &budget), None);
        for _ in 0..MAX_REFERENCES + 5 {
            references.keep("x", None, now, &budget).unwrap();
        }
        let kept = references.kept(now);
        assert_eq!(
            (kept.all.len(), kept.order.len()),
            (MAX_REFERENCES, MAX_REFERENCES)
        );
    }
}
