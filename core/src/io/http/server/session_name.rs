//! Names of sessions, and of the streams of actions. Each can be guessed by nobody (R-SES-02), and ends with the number of
//! the worker that has it, where several processes serve.

use std::sync::Arc;

use crate::unguessable;

/// A new name; `None` when the system provides no randomness.
pub fn name(worker: Option<u64>) -> Option<Arc<str>> {
    Some(of_worker(&unguessable::name()?, worker))
}

/// A name without hyphens, as that of something that a worker has.
pub fn of_worker(name: &str, worker: Option<u64>) -> Arc<str> {
    match worker {
        Some(worker) => format!("{name}-{worker}").into(),
        None => name.into(),
    }
}

/// A name without its worker.
#[cfg(any(unix, feature = "sealing"))]
pub fn without_worker(name: &str) -> &str {
    name.split_once('-').map_or(name, |(name, _)| name)
}

/// The name that a worker has for what another one has named. `None` if neither a worker nor nothing follows the name.
#[cfg(feature = "sealing")]
pub fn at_worker(name: &str, worker: Option<u64>) -> Option<Arc<str>> {
    let bare = without_worker(name);
    let is_name = name.len() == bare.len() || worker_number(&name[bare.len() + 1..]).is_some();
    is_name.then(|| of_worker(bare, worker))
}

/// The worker in a name.
#[cfg(unix)]
pub fn worker_of(name: &str) -> Option<u64> {
    worker_number(name.rsplit_once('-')?.1)
}

#[cfg(any(unix, feature = "sealing"))]
fn worker_number(number: &str) -> Option<u64> {
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_number)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_worker() {
        assert_eq!(worker_of(&name(Some(3)).unwrap()), Some(3));
        assert_eq!(worker_of(&name(None).unwrap()), None);
        for wrong in ["", "abc", "abc-", "abc-x", "abc-../1", "abc-+1", "abc--1x"] {
            assert_eq!(worker_of(wrong), None, "{wrong}");
        }
    }

    #[cfg(feature = "sealing")]
    #[test]
    fn a_worker_has_one_name_for_what_others_have_named() {
        for name in ["abc", "abc-1", "abc-7", "abc-07"] {
            assert_eq!(at_worker(name, Some(7)).as_deref(), Some("abc-7"));
            assert_eq!(at_worker(name, None).as_deref(), Some("abc"));
        }
        for wrong in ["abc-", "abc-x", "abc-1-2", "abc-+1"] {
            assert_eq!(at_worker(wrong, Some(7)), None, "{wrong}");
        }
    }
}
