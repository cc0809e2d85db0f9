//! The processor time of the threads of a process, by their names.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Processor time by the name of threads. Linux cuts names after 15 bytes.
pub type ByName = BTreeMap<String, Duration>;

/// Adds the processor time of the threads that a process has now; nothing where the system does not tell.
pub fn add(process: u32, all: &mut ByName) {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    for thread in threads.into_iter().flatten().flatten() {
        let read = |name| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let times = read("schedstat");
        let ran = times.split(' ').next().and_then(|ran| ran.parse().ok());
        if let Some(ran) = ran {
            *all.entry(read("comm").trim_end().to_owned()).or_default() +=
                Duration::from_nanos(ran);
        }
    }
}

/// The time used between two looks, without names that used none.
pub fn between(before: &ByName, after: &ByName) -> ByName {
    let used = after.iter().map(|(name, after)| {
        let before = before.get(name).copied().unwrap_or_default();
        (name.clone(), after.saturating_sub(before))
    });
    used.filter(|(_, used)| !used.is_zero()).collect()
}
