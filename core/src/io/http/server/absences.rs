//! When a process is dead whose streams are followed here.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::sync::lock;

/// How long a process is taken for alive after it has said so.
pub const ALIVE: Duration = Duration::from_secs(6);

/// Processes whose marks are absent. A store that was restarted, or that only the process cannot reach, lacks the mark of a
/// process that lives: so the mark must be absent for a while, in which the store is seen to work.
#[derive(Debug, Default)]
pub struct Absences(Mutex<HashMap<u64, Absence>>);

#[derive(Debug)]
struct Absence {
    since: Instant,
    seen: Instant,
}

impl Absences {
    /// Notes a look for the mark of a process. Returns whether the process is dead.
    pub fn note(&self, process: u64, is_absent: bool, now: Instant) -> bool {
        let mut all = lock(&self.0);
        // The process may have lived since a look that is too old.
        all.retain(|_, absence| now.duration_since(absence.seen) < 2 * ALIVE);
        if !is_absent {
            all.remove(&process);
            return false;
        }
        let absence = all.entry(process).or_insert(Absence {
            since: now,
            seen: now,
        });
        absence.seen = now;
        now.duration_since(absence.since) >= ALIVE
    }

    /// Forgets all looks, since the store does not work.
    pub fn forget(&self) {
        lock(&self.0).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_dead_when_its_mark_stays_absent_while_the_store_works() {
        let begin = Instant::now();
        let (absences, at) = (Absences::default(), |seconds| {
            begin + Duration::from_secs(seconds)
        });
        assert!(!absences.note(1, true, at(0)) && !absences.note(1, true, at(5)));
        assert!(!absences.note(2, true, at(5)) && absences.note(1, true, at(6)));
        // Seen alive.
        assert!(!absences.note(1, false, at(7)) && !absences.note(1, true, at(8)));
        // The store did not work in between.
        absences.forget();
        assert!(!absences.note(1, true, at(14)) && absences.note(1, true, at(20)));
        // Nobody has looked in between.
        assert!(!absences.note(1, true, at(60)));
    }
}
