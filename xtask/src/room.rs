//! Checks disk space: a run with too little of it fails late, and in any stage.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Result;
use nix::sys::statvfs::statvfs;

use crate::repo;

/// The size of `target` and `.cache` after a complete run on a fresh clone, in bytes, as measured on Linux. Others may need
/// less, so too little space is only a warning.
const NEEDED: u64 = 12 << 30;

/// Prints a warning if free space and existing build output together may be too small for a complete run.
pub fn check() -> Result<()> {
    let free = free(repo::root())?;
    let made = taken(&repo::target()) + taken(&repo::cache());
    if free + made < NEEDED {
        println!("warning: {}", too_little(free, made));
    }
    Ok(())
}

fn too_little(free: u64, made: u64) -> String {
    let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
    format!(
        "all stages together may take {} in target and .cache: {} are taken there already, and {} are free; run some of the stages (--only), or make room",
        gib(NEEDED),
        gib(made),
        gib(free)
    )
}

#[allow(
    clippy::useless_conversion,
    reason = "the numbers are narrower on other systems"
)]
fn free(folder: &Path) -> Result<u64> {
    let system = statvfs(folder)?;
    Ok(u64::from(system.blocks_available()) * u64::from(system.fragment_size()))
}

/// The bytes that a folder occupies on the disk; 0 if it does not exist.
fn taken(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let each = entries.map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => taken(&entry.path()),
        // A file with several hard links counts a fraction for each.
        Ok(data) => data.blocks() * 512 / data.nlink().max(1),
        Err(_) => 0,
    });
    each.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_that_of_the_system() {
        let folder = repo::target();
        assert!(taken(&folder) > 1 << 20 && free(&folder).unwrap() > 0);
        assert_eq!(taken(&folder.join("nothing of that name")), 0);
    }

    #[test]
    fn what_is_told_names_what_is_needed_and_what_is_there() {
        let told = too_little(1 << 30, 3 << 29);
        assert!(
            told.contains("1.0 GiB are free") && told.contains("1.5 GiB are taken"),
            "{told}"
        );
    }
}
