//! Checks that files do not depend on one another in circles: a reader can begin with one that needs no
//! other, and a change reaches only what stands above it.
//!
//! A file depends on another one if a path in it leads to an item that the other one defines. A path through
//! a re-export counts to the file of the definition, and a re-export by itself counts nothing. Tests are left
//! out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

mod rust;
mod scripts;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// For each file, the files that it depends on.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The most files that may depend on one another.
const MOST: usize = 3;

/// Circles that are larger today, by one file of each and the number of its files. They may only shrink.
const KNOWN: &[(&str, &str, usize)] = &[];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The files of each circle: those that reach one another (Tarjan's algorithm).
fn circles(graph: &Graph) -> Vec<Vec<&str>> {
    let mut search = Search {
        graph,
        found: BTreeMap::new(),
        open: Vec::new(),
        circles: Vec::new(),
    };
    for file in graph.keys() {
        if !search.found.contains_key(file.as_str()) {
            search.visit(file);
        }
    }
    search.circles
}

struct Search<'a> {
    graph: &'a Graph,
    /// For each file visited: the lowest number that it reaches among the open ones.
    found: BTreeMap<&'a str, usize>,
    open: Vec<&'a str>,
    circles: Vec<Vec<&'a str>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, file: &'a str) -> usize {
        let number = self.found.len();
        self.found.insert(file, number);
        self.open.push(file);
        let mut lowest = number;
        for next in self.graph.get(file).into_iter().flatten() {
            match self.found.get(next.as_str()) {
                None => lowest = lowest.min(self.visit(next)),
                Some(found) if self.open.contains(&next.as_str()) => lowest = lowest.min(*found),
                Some(_) => {}
            }
        }
        self.found.insert(file, lowest);
        if lowest == number {
            let at = self.open.iter().position(|one| *one == file).unwrap();
            let mut circle = self.open.split_off(at);
            if circle.len() > 1 {
                circle.sort_unstable();
                self.circles.push(circle);
            }
        }
        lowest
    }
}

fn check(package: &str, graph: &Graph) {
    assert!(graph.len() > 3, "only {} files in {package}", graph.len());
    let mut known: Vec<_> = KNOWN.iter().filter(|row| row.0 == package).collect();
    let mut problems = Vec::new();
    for circle in circles(graph) {
        let is_known =
            |row: &&(&str, &str, usize)| circle.contains(&row.1) && circle.len() == row.2;
        let at = known.iter().position(is_known);
        if at.map(|at| known.remove(at)).is_none() && circle.len() > MOST {
            problems.push(format!("{} files: {}", circle.len(), circle.join(", ")));
        }
    }
    assert!(
        problems.is_empty() && known.is_empty(),
        "files of {package} depend on one another in circles of more than {MOST}:\n{}\nlisted in KNOWN, but \
         not there: {known:?}",
        problems.join("\n")
    );
}

/// The arrows between the files of a small package.
fn arrows(files: &[(&str, &str)], read: impl Fn(&Path) -> Graph) -> Vec<(String, String)> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let own = format!(
        "circles-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Relaxed)
    );
    let folder = std::env::temp_dir().join(own);
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    let graph = read(&folder);
    fs::remove_dir_all(&folder).unwrap();
    let arrows =
        |(from, to): (String, BTreeSet<String>)| to.into_iter().map(move |to| (from.clone(), to));
    graph.into_iter().flat_map(arrows).collect()
}

#[test]
fn a_re_export_counts_to_the_file_of_the_definition() {
    let one = |from: &str, to: &str| vec![(from.to_owned(), to.to_owned())];
    let rust = [
        ("lib.rs", "mod a; mod b; pub use b::b; pub use b::B;"),
        ("a.rs", "use crate::B as Other; pub struct A(Other);"),
        (
            "b.rs",
            "pub struct B; pub fn b() {} #[cfg(test)] mod tests { use crate::a::A; }",
        ),
    ];
    let crate_at = |folder: &Path| rust::graph(&folder.join("lib.rs"));
    assert_eq!(arrows(&rust, crate_at), one("a.rs", "b.rs"));
    let by_macros = [
        ("lib.rs", "mod a; mod b; pub use b::b;"),
        ("a.rs", "fn a() { println!(\"{}\", crate::b()); }"),
        ("b.rs", "made! { pub fn b() {} }"),
    ];
    assert_eq!(arrows(&by_macros, crate_at), one("a.rs", "b.rs"));
    let python = [
        ("__init__.py", "from ._b import B\n"),
        ("_a.py", "from . import B  # not its package\n"),
        ("_b.py", "class B:\n    pass\n"),
    ];
    assert_eq!(arrows(&python, scripts::python), one("_a.py", "_b.py"));
    let node = [
        ("index.ts", "export { B } from './b.js';\n"),
        (
            "a.ts",
            "import {\n    type B as Other\n} from './index.js';\n",
        ),
        ("b.ts", "export class B {}\n"),
    ];
    assert_eq!(arrows(&node, scripts::typescript), one("a.ts", "b.ts"));
}

#[test]
fn the_core_has_no_large_circle() {
    check("core", &rust::graph(&root().join("core/src/lib.rs")));
    check("codec", &rust::graph(&root().join("core/codec/src/lib.rs")));
    check("oauth", &rust::graph(&root().join("core/oauth/src/lib.rs")));
}

#[test]
fn the_python_package_has_no_large_circle() {
    let package = root().join("bindings-python");
    check("python", &scripts::python(&package.join("python/mcpbolt")));
}

#[test]
fn the_node_package_has_no_large_circle() {
    let package = root().join("bindings-node");
    check("node", &scripts::typescript(&package.join("face")));
    check("node, Rust", &rust::graph(&package.join("src/lib.rs")));
}

#[test]
fn the_tools_have_no_large_circle() {
    check("cli", &rust::graph(&root().join("cli/src/lib.rs")));
    check("xtask", &rust::graph(&root().join("xtask/src/main.rs")));
}

#[test]
fn circles_are_found() {
    let of = |arrows: &[(&str, &str)]| -> Vec<String> {
        let mut graph = Graph::new();
        for (from, to) in arrows {
            graph.entry((*to).to_owned()).or_default();
            let from = graph.entry((*from).to_owned()).or_default();
            from.insert((*to).to_owned());
        }
        circles(&graph)
            .iter()
            .map(|circle| circle.concat())
            .collect()
    };
    assert_eq!(of(&[("a", "b"), ("b", "c"), ("a", "c")]), [""; 0]);
    assert_eq!(of(&[("a", "b"), ("b", "a"), ("b", "c")]), ["ab"]);
    let two = [
        ("a", "b"),
        ("b", "c"),
        ("c", "a"),
        ("c", "d"),
        ("d", "e"),
        ("e", "d"),
    ];
    assert_eq!(of(&two), ["de", "abc"]);
}
