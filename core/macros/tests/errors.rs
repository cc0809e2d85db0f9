//! The compiler's messages about programs that use the attributes wrongly: each names what is wrong, where, and
//! what to do.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// The folder of the programs, in a copy.
const COPY: &str = "MCPBOLT_TEST_ERRORS";

/// The messages are compared as a whole with the release of Rust for which they were written. Others word the notes
/// around them in their own way, so only the first line of each error is compared then.
#[test]
fn mistakes_are_explained_where_they_are() {
    if let Some(copy) = std::env::var_os(COPY) {
        return trybuild::TestCases::new().compile_fail(Path::new(&copy).join("*.rs"));
    }
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let version = Command::new("rustc")
        .arg("--version")
        .output()
        .unwrap()
        .stdout;
    let version = String::from_utf8(version).unwrap();
    if version.starts_with(concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"), ".")) {
        return trybuild::TestCases::new().compile_fail("tests/errors/*.rs");
    }
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("errors");
    fs::create_dir_all(&copy).unwrap();
    let files: Vec<_> = fs::read_dir(&written)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    for file in &files {
        fs::copy(file, copy.join(file.file_name().unwrap())).unwrap();
    }
    let own = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "mistakes_are_explained_where_they_are"])
        .env(COPY, &copy)
        .env("TRYBUILD", "overwrite")
        .status();
    assert!(own.unwrap().success());
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "stderr"))
    {
        let (expected, name) = (fs::read_to_string(file).unwrap(), file.file_name().unwrap());
        let found = fs::read_to_string(copy.join(name)).unwrap();
        for line in expected.lines().filter(|line| line.starts_with("error")) {
            assert!(found.contains(line), "{name:?}: {line}\nis not in\n{found}");
        }
    }
}
