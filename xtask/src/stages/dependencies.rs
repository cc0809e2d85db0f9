//! The policy for what the published packages depend on: licences, sources, one version of each.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

use crate::log::Log;
use crate::repo::{self, cargo};

/// The published packages: the crate, the native modules of the two packages, the command.
const PUBLISHED: &str =
    "-p mcpbolt-codec -p mcpbolt-oauth -p mcpbolt -p mcpbolt-python -p mcpbolt-node -p mcpbolt-cli";

/// Licences that require no more than a notice. `CDLA-Permissive-2.0` covers the list of root
/// certificates, `Unicode-3.0` the tables of Unicode.
const LICENCES: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// Crates that are built in two or more versions, because another dependency still needs the older one.
const SEVERAL: [&str; 6] = [
    "base64",
    "getrandom",
    "hashbrown",
    "rand",
    "rand_core",
    "syn",
];

/// A crate as `cargo tree` shows it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Crate {
    name: String,
    version: String,
    /// Its source, unless that is the registry.
    source: Option<String>,
    licence: String,
}

impl Crate {
    fn read(line: &str) -> Option<Self> {
        let (package, licence) = line.split_once('|')?;
        let mut words = package.split(' ');
        let (name, version) = (words.next()?.to_owned(), words.next()?.to_owned());
        let source = words.find(|word| word.starts_with('(') && *word != "(proc-macro)");
        Some(Self {
            name,
            version,
            source: source.map(str::to_owned),
            licence: licence.to_owned(),
        })
    }

    fn is_ours(&self) -> bool {
        let root = repo::root().to_string_lossy();
        let source = self.source.as_deref().unwrap_or_default();
        source.trim_start_matches('(').starts_with(&*root)
    }
}

/// Checks every crate that the published packages are built with on this platform.
pub fn dependencies(log: &mut Log) -> Result<()> {
    let tree = format!(
        "tree --locked {PUBLISHED} --all-features --edges normal,build --prefix none --no-dedupe --format {{p}}|{{l}}"
    );
    let text = repo::output(cargo(&tree))?;
    let crates: BTreeSet<_> = text.lines().filter_map(Crate::read).collect();
    ensure!(
        crates.len() > 100,
        "cargo tree lists {} crates",
        crates.len()
    );
    let wrong = objections(&crates);
    log.line(&format!("{} crates", crates.len()))?;
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn objections(crates: &BTreeSet<Crate>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut versions = BTreeMap::<_, BTreeSet<_>>::new();
    for each in crates.iter().filter(|each| !each.is_ours()) {
        let Crate {
            name,
            version,
            source,
            licence,
        } = each;
        if let Some(source) = source {
            wrong.push(format!(
                "{name} {version} comes from {source}, not from the registry"
            ));
        }
        if !is_allowed(licence) {
            wrong.push(format!(
                "{name} {version} has the licence {licence:?}: not in the list"
            ));
        }
        versions.entry(&**name).or_default().insert(&**version);
    }
    for (name, versions) in &versions {
        if versions.len() > 1 && !SEVERAL.contains(name) {
            wrong.push(format!("{name} is built in several versions: {versions:?}"));
        }
    }
    for name in SEVERAL {
        if versions.get(name).is_none_or(|versions| versions.len() < 2) {
            wrong.push(format!(
                "{name} is built in one version: remove it from the exceptions"
            ));
        }
    }
    wrong
}

/// Whether [`LICENCES`] satisfies a licence expression (SPDX, or the older form with slashes).
fn is_allowed(expression: &str) -> bool {
    let expression = expression
        .replace(['(', ')'], "")
        .replace(" WITH LLVM-exception", "");
    let expression = expression.replace('/', " OR ");
    // `(A OR B) AND C`: every part joined by AND needs one alternative. No crate nests deeper.
    expression.split(" AND ").all(|part| {
        part.split(" OR ")
            .any(|licence| LICENCES.contains(&licence.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_is_allowed_when_the_list_meets_its_expression() {
        for allowed in [
            "MIT",
            "MIT/Apache-2.0",
            "Apache-2.0 / MIT",
            "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(is_allowed(allowed), "{allowed}");
        }
        for refused in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR GPL-3.0) AND MPL-2.0",
        ] {
            assert!(!is_allowed(refused), "{refused}");
        }
    }

    #[test]
    fn foreign_sources_licences_and_second_versions_are_objected_to() {
        let lines = [
            "a v1.0.0|MIT",
            "a v2.0.0|MIT",
            "b v1.0.0 (proc-macro)|GPL-3.0",
            "c v1.0.0 (https://example.com/c#1)|MIT",
            "base64 v0.1.0|MIT",
            "base64 v0.2.0|MIT",
        ];
        let crates = lines.iter().filter_map(|line| Crate::read(line)).collect();
        let wrong = objections(&crates).join("\n");
        for text in [
            "a is built in several",
            "b v1.0.0 has",
            "c v1.0.0 comes from",
        ] {
            assert!(wrong.contains(text), "{text}: {wrong}");
        }
        assert!(!wrong.contains("base64 is"), "{wrong}");
        assert!(wrong.contains("syn is built in one"), "{wrong}");
    }
}
