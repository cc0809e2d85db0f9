//! Checks the structure of the repository: file lengths, where `unsafe` is allowed, the README's features.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use std::fs;
use std::path::{Path, PathBuf};

/// The longest source file, in lines, without its tests.
const LONGEST: usize = 600;

/// Where `unsafe` is allowed, as listed in `core/ARCHITECTURE.md`.
const FENCED: [&str; 5] = [
    "core/codec/src/scan/",
    "core/src/io/net/trim.rs",
    "bindings-node/src/drain.rs",
    "bindings-node/src/utf16.rs",
    "bindings-python/src/attached.rs",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The path from the root and the text of every Rust file in the workspace.
fn sources() -> Vec<(String, String)> {
    let root = root();
    let members = [
        "core",
        "bindings-python",
        "bindings-node",
        "benches",
        "fuzz",
        "cli",
        "xtask",
    ];
    let mut files = Vec::new();
    for member in members {
        walk(&root.join(member), &mut files);
    }
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        (name, fs::read_to_string(&path).unwrap())
    };
    files.into_iter().map(read).collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["target", "node_modules"].contains(&name) && !name.starts_with('.') {
            walk(&path, files);
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
}

fn is_test(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("/tests.rs")
}

/// The lines of a source before its tests, each without its comment.
fn code(source: &str) -> impl Iterator<Item = &str> {
    source
        .lines()
        .take_while(|line| line.trim() != "#[cfg(test)]")
        .map(|line| line.split("//").next().unwrap_or(""))
}

#[test]
fn no_file_outgrows_its_idea() {
    let sources = sources();
    assert!(sources.len() > 10, "is this the root?");
    for (name, source) in sources {
        if is_test(&name) {
            continue;
        }
        let lines = source
            .lines()
            .take_while(|line| line.trim() != "#[cfg(test)]")
            .count();
        assert!(
            lines <= LONGEST,
            "{name} has {lines} lines without its tests"
        );
    }
}

#[test]
fn unsafe_stays_in_its_rooms() {
    for (name, source) in sources() {
        // A test may need `unsafe`, for example to count allocations.
        if is_test(&name) || FENCED.iter().any(|room| name.starts_with(room)) {
            continue;
        }
        for (index, line) in code(&source).enumerate() {
            let found = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"]
                .iter()
                .any(|form| line.contains(form) && !line.contains('"'));
            assert!(!found, "{name}:{}: unsafe outside its rooms", index + 1);
        }
    }
}

#[test]
fn the_readme_tells_every_feature_of_the_crate() {
    let root = root();
    let manifest = fs::read_to_string(root.join("core/Cargo.toml")).unwrap();
    let features = manifest.split("[features]\n").nth(1).unwrap();
    let features = features.split("\n[").next().unwrap();
    let names: Vec<&str> = features
        .lines()
        .filter_map(|line| line.split_once(" = ["))
        .map(|(name, _)| name)
        .filter(|name| *name != "default" && !name.starts_with('#'))
        .collect();
    assert!(!names.is_empty(), "no features in core/Cargo.toml");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    for name in names {
        assert!(
            readme.contains(&format!("\n| `{name}` | ")),
            "the README's table lacks the feature {name}"
        );
    }
}

/// Words in backticks of the documents for developers that look like a path from the root exist.
#[test]
fn documents_name_paths_that_exist() {
    let tops = [
        "core/",
        "cli/",
        "corpus/",
        "fuzz/",
        "benches/",
        "xtask/",
        "interop/",
        "bindings-",
    ];
    let mut found = 0;
    for document in ["CONTRIBUTING.md", "core/ARCHITECTURE.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        for word in text.split('`').skip(1).step_by(2) {
            let is_path =
                tops.iter().any(|top| word.starts_with(top)) && !word.contains(['*', ' ']);
            if is_path && word.contains('/') {
                found += 1;
                assert!(
                    root().join(word).exists(),
                    "{document} names {word}, which does not exist"
                );
            }
        }
    }
    assert!(found > 20, "{found} paths: are they still in backticks?");
}
