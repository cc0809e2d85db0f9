//! Finds which files and tests cite which requirements, in all languages.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::ids::{self, Id};
use super::{REASONS, TABLE};
use crate::repo;

/// Folders with build output and installed packages.
const BUILT: [&str; 4] = [".cache", ".git", "node_modules", "target"];

/// The files that cite each requirement.
#[derive(Default)]
pub struct Cited {
    /// Anywhere: code, tests, documents.
    pub anywhere: BTreeMap<Id, Vec<String>>,
    /// In a test.
    pub tests: BTreeMap<Id, Vec<String>>,
}

/// Searches every file of the repository except the table and its readers.
pub fn cited() -> Result<Cited> {
    let mut cited = Cited::default();
    let mut files = Vec::new();
    walk(repo::root(), &mut files)?;
    files.sort();
    let own = |file: &&String| {
        ![TABLE, REASONS].contains(&&***file) && !file.starts_with("xtask/src/requirements/")
    };
    for file in files.iter().filter(own) {
        let Ok(text) = fs::read_to_string(repo::root().join(file)) else {
            continue;
        };
        note(&mut cited.anywhere, file, &text);
        if let Some(part) = part_of_tests(file) {
            note(&mut cited.tests, file, part(&text));
        }
    }
    Ok(cited)
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

fn note(named: &mut BTreeMap<Id, Vec<String>>, file: &str, text: &str) {
    for id in ids::all(text) {
        let files = named.entry(id).or_default();
        if files.last().is_none_or(|last| last != file) {
            files.push(file.to_owned());
        }
    }
}

/// Returns a function that selects the part of a file with tests: the whole file in a test folder, the
/// part after `#[cfg(test)]` in other Rust files; `None` for files without tests.
fn part_of_tests(file: &str) -> Option<fn(&str) -> &str> {
    let folders = ["corpus/", "interop/"];
    let is_test = |folder: &str| folder == "tests" || folder == "test";
    if file.starts_with("xtask/src/") {
        None
    } else if file.split('/').any(is_test) || folders.iter().any(|f| file.starts_with(f)) {
        Some(|text| text)
    } else if file.ends_with(".rs") {
        Some(|text| {
            let at = text.find("#[cfg(test)]\nmod tests");
            at.and_then(|at| text.get(at..)).unwrap_or_default()
        })
    } else {
        None
    }
}
