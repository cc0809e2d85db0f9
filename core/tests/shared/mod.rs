//! Files of others that tests read in place: `$MCPBOLT_SHARED`, or `shared` beside the
//! repository.
#![allow(clippy::print_stdout, reason = "what is skipped is said aloud")]

use std::path::PathBuf;

/// The path below the shared folder, or `None` and a loud line when it is not there.
pub fn path(below: &str) -> Option<PathBuf> {
    let beside = || {
        let repo = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        repo.map(|repo| repo.join("../shared"))
    };
    let root = std::env::var_os("MCPBOLT_SHARED").map(PathBuf::from);
    let path = root.or_else(beside)?.join(below);
    if path.exists() {
        return Some(path);
    }
    println!("SKIPPED: {} is not here", path.display());
    None
}
