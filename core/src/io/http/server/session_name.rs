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
#[cfg(feature = "sealing")]
pub fn without_worker(name: &str) -> &str {
    name.split_once('-').map_or(name, |(name, _)| name)
}

/// The worker in a name.
#[cfg(unix)]
pub fn worker_of(name: &str) -> Option<u64> {
    let (_, number) = name.rsplit_once('-')?;
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
}
