//! Finds the requirements that passed tests name: reads the logs of the stages that run tests, and the sources of
//! these tests.
//!
//! A test of Rust or Python names the ids in its function, including the comments and attributes above. A test of
//! Node names those in its title, which its log repeats.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::{self, Id};

/// The stages whose tests count.
pub const STAGES: [&str; 5] = ["core", "tools", "fuzz", "python", "node"];

/// A test function of Rust or Python. Two tests of one name are told apart by their modules.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Test {
    /// The folder of its package: `core/codec`.
    package: String,
    /// The last module of its path that is not called `tests`, or the file that begins the test program.
    module: String,
    name: String,
}

/// The tests that passed.
#[derive(Default)]
pub struct Passed {
    functions: BTreeSet<Test>,
    /// Titles of Node's tests.
    titles: Vec<String>,
}

impl Passed {
    /// Adds the tests that passed according to the log of a stage in a repository at `root`.
    pub fn read(&mut self, log: &str, root: &str) {
        let mut package = String::new();
        let mut program = String::new();
        for line in log.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                let mut words = command.split(' ');
                let folder = words
                    .clone()
                    .find_map(|word| word.strip_prefix("CARGO_MANIFEST_DIR="));
                package = folder.map_or(String::new(), |folder| below(folder, root));
                // The name of a test program ends in a hash.
                let name = words.find(|word| !word.contains('=')).unwrap_or_default();
                program = name
                    .rsplit_once('-')
                    .map_or(name, |(name, _)| name)
                    .to_owned();
            } else if let Some(test) = rust(line) {
                let (path, name) = test.rsplit_once("::").unwrap_or(("", test));
                let module = path
                    .rsplit("::")
                    .find(|module| !["tests", ""].contains(module));
                self.functions.insert(Test {
                    package: package.clone(),
                    module: module.unwrap_or(&program).to_owned(),
                    name: name.to_owned(),
                });
            } else if let Some((file, name)) = python(line) {
                self.functions.insert(Test {
                    package: "bindings-python".to_owned(),
                    module: file.to_owned(),
                    name: name.to_owned(),
                });
            } else if let Some(title) = line.trim_start().strip_prefix("✔ ") {
                self.titles.push(title.to_owned());
            }
        }
    }

    /// The passed tests that name each id, given the files of the repository with their paths and texts.
    pub fn by_id(&self, files: &[(String, String)]) -> BTreeMap<Id, Vec<String>> {
        let mut named: BTreeMap<Id, Vec<String>> = BTreeMap::new();
        for (path, text) in files {
            for (test, source) in functions(path, text) {
                if self.functions.contains(&test) {
                    note(&mut named, &source, &format!("{path} {}", test.name));
                }
            }
        }
        for title in &self.titles {
            note(&mut named, title, title);
        }
        named
    }
}

fn note(named: &mut BTreeMap<Id, Vec<String>>, text: &str, test: &str) {
    for id in ids::all(text) {
        let tests = named.entry(id).or_default();
        if tests.last().is_none_or(|last| last != test) {
            tests.push(test.to_owned());
        }
    }
}

fn below(folder: &str, root: &str) -> String {
    let inner = folder.strip_prefix(root).unwrap_or(folder);
    inner.trim_start_matches('/').to_owned()
}

/// `test a::b ... ok`.
fn rust(line: &str) -> Option<&str> {
    let name = line.strip_prefix("test ")?.strip_suffix(" ... ok")?;
    // A program in a comment, or a test that must panic, has more words.
    name.split(' ').next()
}

/// `PASSED tests/test_a.py::test_b[c]`.
fn python(line: &str) -> Option<(&str, &str)> {
    let test = line.strip_prefix("PASSED tests/")?;
    let (file, name) = test.split_once(".py::")?;
    let name = name.split('[').next()?;
    Some((file, name.rsplit("::").next()?))
}

/// The test functions of a file, with their sources.
fn functions(path: &str, text: &str) -> Vec<(Test, String)> {
    let place = path
        .split_once("/src/")
        .or_else(|| path.split_once("/tests/"));
    let Some((package, _)) = place else {
        return Vec::new();
    };
    let lines: Vec<&str> = text.lines().collect();
    let found = if path.ends_with(".rs") {
        rust_functions(&lines)
    } else if path.ends_with(".py") {
        python_functions(&lines)
    } else {
        Vec::new()
    };
    let test = |name: &str| Test {
        package: package.to_owned(),
        module: module(path).to_owned(),
        name: name.to_owned(),
    };
    found
        .into_iter()
        .map(|(name, source)| (test(name), source.join("\n")))
        .collect()
}

/// The name of a file without its ending, or of its folder if the file is the root of a module.
fn module(path: &str) -> &str {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.split('.').next().unwrap_or(file);
    if ["mod", "main", "lib", "tests"].contains(&stem) {
        folder.rsplit('/').next().unwrap_or(folder)
    } else {
        stem
    }
}

type Functions<'a, 'b> = Vec<(&'a str, &'b [&'a str])>;

/// From the comments and attributes above `#[test]` to the brace that closes the function.
fn rust_functions<'a, 'b>(lines: &'b [&'a str]) -> Functions<'a, 'b> {
    let is_test = |line: &str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    let is_above =
        |line: &&&str| line.trim_start().starts_with("//") || line.trim_start().starts_with("#[");
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if !is_test(line.trim_start()) {
            continue;
        }
        let first = at - lines[..at].iter().rev().take_while(is_above).count();
        let brace = format!("{}}}", &line[..indent(line)]);
        let length = lines[at..].iter().position(|line| *line == brace);
        let source = &lines[first..length.map_or(lines.len(), |length| at + length)];
        let name = source.iter().find_map(|line| name_after(line, "fn "));
        found.extend(name.map(|name| (name, source)));
    }
    found
}

/// From `def test_…` to the next line that is indented as far.
fn python_functions<'a, 'b>(lines: &'b [&'a str]) -> Functions<'a, 'b> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let name = name_after(line, "def ").filter(|name| name.starts_with("test_"));
        let Some(name) = name else { continue };
        let is_after = |next: &&str| {
            let text = next.trim_start();
            !text.is_empty() && !text.starts_with(')') && indent(next) <= indent(line)
        };
        let length = lines[at + 1..].iter().position(is_after);
        let last = length.map_or(lines.len(), |length| at + 1 + length);
        found.push((name, &lines[at..last]));
    }
    found
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The name in `def NAME(` or `async def NAME(`.
fn name_after<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let line = line.trim_start();
    let line = line.strip_prefix("async ").unwrap_or(line);
    let rest = line.strip_prefix(keyword)?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
$ CARGO_MANIFEST_DIR=/root/core TRACE=/tmp/x protocol-0123 --show-output
test changes::a_list_changes ... ok
test changes::a_list_fails ... FAILED
test changes::a_list_is_long ... ignored, takes minutes
test unit::tests::inner ... ok
test at_the_root - should panic ... ok
test src/lib.rs - server (line 3) ... ok
$ python -m pytest -q
PASSED tests/test_a.py::test_good[tcp::1 - 1]
PASSED tests/test_a.py::TestClass::test_inner
FAILED tests/test_a.py::test_bad - assert False
$ npm test
  ✔ nested, it holds (R-NOD-01 to R-NOD-03) (1.5ms)
✖ it fails (R-NOD-04) (1.5ms)
﹣ it is skipped (R-NOD-05) (0.1ms) # SKIP
";
    const RUST: &str = "\
/// R-RST-01
fn helper() {}

/// R-RST-02, R-RST-03.
#[test]
fn a_list_changes() {
    assert!(true, \"R-RST-04\");
}

/// R-RST-05
#[test]
fn a_list_fails() {}
";
    const PYTHON: &str = "\
\"\"\"R-PYT-01\"\"\"

async def test_good(
    one: str,
) -> None:
    \"\"\"R-PYT-02\"\"\"

    assert one  # R-PYT-03


def test_bad() -> None:
    \"\"\"R-PYT-04\"\"\"


class TestClass:
    def test_inner(self) -> None:
        \"\"\"R-PYT-05\"\"\"

    def helper(self) -> None:
        \"\"\"R-PYT-06\"\"\"
";

    fn counted(files: &[(&str, &str)]) -> Vec<String> {
        let mut passed = Passed::default();
        passed.read(LOG, "/root");
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        passed.by_id(&files).keys().map(Id::to_string).collect()
    }

    #[test]
    fn only_ids_within_tests_that_passed_count() {
        const NODE: [&str; 3] = ["R-NOD-01", "R-NOD-02", "R-NOD-03"];
        assert_eq!(counted(&[]), NODE);
        let rust = counted(&[("core/tests/protocol/changes.rs", RUST)]);
        assert_eq!(rust[3..], ["R-RST-02", "R-RST-03", "R-RST-04"]);
        let python = counted(&[("bindings-python/tests/test_a.py", PYTHON)]);
        assert_eq!(python[3..], ["R-PYT-02", "R-PYT-03", "R-PYT-05"]);
        // The same names elsewhere are other tests.
        for path in [
            "core/tests/io/other.rs",
            "core/codec/src/changes.rs",
            "cli/tests/changes.rs",
        ] {
            assert_eq!(counted(&[(path, RUST)]), NODE, "{path}");
        }
        assert_eq!(
            counted(&[("bindings-python/tests/test_b.py", PYTHON)]),
            NODE
        );
    }

    #[test]
    fn a_test_is_found_by_its_package_module_and_name() {
        let mut passed = Passed::default();
        passed.read(LOG, "/root");
        let named = |name: &str| {
            passed
                .functions
                .iter()
                .find(|test| test.name == name)
                .expect(name)
        };
        assert_eq!(named("inner").module, "unit");
        assert_eq!(named("at_the_root").module, "protocol");
        assert_eq!(named("a_list_changes").package, "core");
        assert_eq!(module("core/codec/src/action/tests.rs"), "action");
        assert_eq!(module("core/tests/protocol/main.rs"), "protocol");
        assert_eq!(module("core/src/mcp/method.rs"), "method");
    }
}
