//! Pins the server to one core and its client to another, if there are two, so that neither affects the
//! other's cache or waits for it.

use std::sync::OnceLock;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Runs `f` with this thread, and all processes that it starts, on the server's core.
pub fn as_server<T>(f: impl FnOnce() -> T) -> T {
    on(0, f)
}

/// The server's core, if there is another one for its client.
pub fn of_server() -> Option<usize> {
    all().first().copied().filter(|_| all().len() > 1)
}

/// Runs `f` with this thread on the client's core.
pub fn as_client<T>(f: impl FnOnce() -> T) -> T {
    on(1, f)
}

/// If the core is not available, the thread stays where it is.
fn on<T>(index: usize, f: impl FnOnce() -> T) -> T {
    let me = Pid::from_raw(0);
    let before = sched_getaffinity(me);
    if let (Some(core), true) = (all().get(index), all().len() > 1) {
        let mut set = CpuSet::new();
        let _ = set.set(*core).and_then(|()| sched_setaffinity(me, &set));
    }
    let result = f();
    if let Ok(before) = before {
        let _ = sched_setaffinity(me, &before);
    }
    result
}

/// The cores that this process may use.
fn all() -> &'static [usize] {
    static ALL: OnceLock<Vec<usize>> = OnceLock::new();
    ALL.get_or_init(|| {
        let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
            return Vec::new();
        };
        (0..CpuSet::count())
            .filter(|&core| set.is_set(core).unwrap_or(false))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_sides_are_apart_and_the_thread_comes_back() {
        let here = || {
            let set = sched_getaffinity(Pid::from_raw(0)).unwrap();
            (0..CpuSet::count())
                .filter(|&core| set.is_set(core).unwrap())
                .collect::<Vec<_>>()
        };
        let before = here();
        let (client, server) = as_client(|| (here(), as_server(here)));
        assert_eq!(here(), before);
        if before.len() > 1 {
            assert_eq!((client.len(), server.len()), (1, 1));
            assert_ne!(client, server);
        }
    }
}
