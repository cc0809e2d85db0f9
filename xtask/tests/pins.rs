//! Checks that all lists of Python packages pin a package to one version, so that every test and every
//! measurement is made beside the same release.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const LISTS: [&str; 6] = [
    "core/tests/store/requirements.txt",
    "bindings-python/benches/requirements.txt",
    "bindings-python/requirements-dev.txt",
    "bindings-python/requirements-interpreters.txt",
    "interop/requirements.txt",
    "xtask/peers/python/requirements.txt",
];

#[test]
fn a_package_is_pinned_to_one_version() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut versions = BTreeMap::<String, BTreeSet<String>>::new();
    for list in LISTS {
        let text = fs::read_to_string(root.join(list)).expect(list);
        for (name, version) in text.lines().filter_map(|line| line.split_once("==")) {
            let name = name.to_lowercase().replace('_', "-");
            versions.entry(name).or_default().insert(version.to_owned());
        }
    }
    assert!(versions.len() > 50, "{versions:?}");
    versions.retain(|_, them| them.len() > 1);
    assert!(
        versions.is_empty(),
        "pinned to several versions: {versions:?}"
    );
}
