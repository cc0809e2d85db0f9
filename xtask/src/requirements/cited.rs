//! Finds which files cite which requirements.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::PAGE;
use super::ids::{self, Id};
use crate::repo;

/// Folders with build output and installed packages.
const BUILT: [&str; 4] = [".cache", ".git", "node_modules", "target"];

/// The files of the repository that cite requirements, with their texts. The page of requirements and its readers,
/// whose ids are examples, are left out.
pub fn files() -> Result<Vec<(String, String)>> {
    let mut paths = Vec::new();
    walk(repo::root(), &mut paths)?;
    paths.sort();
    let own = |path: &String| path == PAGE || path.starts_with("xtask/src/requirements/");
    let read = |path: String| {
        let text = fs::read_to_string(repo::root().join(&path)).ok()?;
        text.contains("R-").then_some((path, text))
    };
    Ok(paths
        .into_iter()
        .filter(|path| !own(path))
        .filter_map(read)
        .collect())
}

/// The files that cite each id.
pub fn by_id(files: &[(String, String)]) -> BTreeMap<Id, Vec<String>> {
    let mut cited: BTreeMap<Id, Vec<String>> = BTreeMap::new();
    for (path, text) in files {
        for id in ids::all(text) {
            let paths = cited.entry(id).or_default();
            if paths.last() != Some(path) {
                paths.push(path.clone());
            }
        }
    }
    cited
}

/// A file at or below `path` that contains `text`.
///
/// # Errors
///
/// There is nothing at `path`.
pub fn find(text: &str, path: &str) -> Result<Option<String>> {
    let whole = repo::root().join(path);
    let mut paths = Vec::new();
    if whole.is_dir() {
        walk(&whole, &mut paths)?;
    } else {
        paths.push(path.to_owned());
    }
    for path in paths {
        let bytes =
            fs::read(repo::root().join(&path)).with_context(|| format!("reading {path}"))?;
        if memchr::memmem::find(&bytes, text.as_bytes()).is_some() {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Collects the files below a folder, by their paths from the root, without [`BUILT`] folders.
fn walk(folder: &Path, files: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if !entry.file_type()?.is_dir() {
            let path = path.strip_prefix(repo::root())?;
            files.push(path.to_string_lossy().into_owned());
        } else if !BUILT.iter().any(|built| name == *built) {
            walk(&path, files)?;
        }
    }
    Ok(())
}
