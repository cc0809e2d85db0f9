//! The table of README.md: a counterpart for each example, in no more lines than the example has.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use interop_counterparts::code_lines;

fn folder() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
}

/// The code of a program and of its modules: `#[path = "…"]` names one, or `mod` alone.
fn lines_of(program: &Path) -> usize {
    let source = fs::read_to_string(program)
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let folder = program.parent().unwrap();
    let mut named = false;
    let modules = source.lines().filter_map(|line| {
        let path = line.strip_prefix("#[path = \"");
        let path = path.and_then(|path| path.strip_suffix("\"]"));
        let child = line.strip_prefix("mod ").filter(|_| !named);
        named = path.is_some();
        let child = child.and_then(|name| name.strip_suffix(';'));
        path.map(|path| folder.join(path))
            .or_else(|| child.map(|name| folder.join(format!("{name}.rs"))))
    });
    code_lines(&source, true) + modules.map(|module| lines_of(&module)).sum::<usize>()
}

#[test]
fn each_counterpart_has_no_more_lines_than_its_example() {
    let readme = fs::read_to_string(folder().join("README.md")).unwrap();
    let rmcp = std::env::var_os("RMCP_EXAMPLES").map(PathBuf::from);
    let mut listed = BTreeSet::new();
    for row in readme.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [example, program, there, here] = cells[..] else {
            panic!("not four cells: {row}");
        };
        let path = program.split(['(', ')']).nth(1).expect(row);
        let lines = lines_of(&folder().join(path));
        let [there, here] = [there, here].map(|number| number.parse::<usize>().expect(row));
        assert_eq!(here, lines, "{path}: correct the table in README.md");
        assert!(here <= there, "{example} has {there} lines, {path} {here}");
        listed.insert(path.to_owned());
        if let Some(examples) = &rmcp {
            let files = example
                .split(", ")
                .map(|file| Path::new(file.trim_matches('`')));
            let lines = files.map(|file| fs::read_to_string(examples.join(file)).unwrap());
            let lines: usize = lines.map(|source| code_lines(&source, false)).sum();
            assert_eq!(there, lines, "{example}: correct the table in README.md");
        }
    }
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    let programs = manifest.lines().filter_map(|line| {
        let path = line.strip_prefix("path = \"")?.strip_suffix('"')?;
        (!path.starts_with("examples/peers/")).then(|| path.to_owned())
    });
    let programs: BTreeSet<_> = programs.collect();
    let missing: Vec<_> = programs.symmetric_difference(&listed).collect();
    assert!(missing.is_empty(), "no row or no program: {missing:?}");
    assert!(listed.len() >= 29, "{listed:?}");
}

#[test]
fn comments_and_tests_are_no_code_but_descriptions_are() {
    let source = "//! A program.\n\n/// Adds.\nfn add() {\n    // Why.\n    1\n}\n\n#[cfg(test)]\nmod tests {}\n";
    assert_eq!(code_lines(source, true), 4);
    assert_eq!(code_lines(source, false), 3);
}
