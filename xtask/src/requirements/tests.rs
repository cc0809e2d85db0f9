//! Which tests name which requirements, in all languages.

use std::collections::BTreeMap;

use anyhow::Result;

use super::ids::{self, Id};
use crate::repo;

/// The files that name each requirement in a test.
pub fn by_requirement() -> Result<BTreeMap<Id, Vec<String>>> {
    let mut tests: BTreeMap<Id, Vec<String>> = BTreeMap::new();
    let listed = repo::output(repo::command(
        "git",
        ["ls-files", "-co", "--exclude-standard"],
    ))?;
    for file in listed.lines() {
        let Some(part) = part_of_tests(file) else {
            continue;
        };
        let Ok(text) = std::fs::read_to_string(repo::root().join(file)) else {
            continue;
        };
        for id in ids::all(part(&text)) {
            let files = tests.entry(id).or_default();
            if files.last().is_none_or(|last| last != file) {
                files.push(file.to_owned());
            }
        }
    }
    Ok(tests)
}

/// What of a file is tests: all of one in a folder of tests, of other Rust files what follows
/// `#[cfg(test)]`; `None` when nothing is.
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
