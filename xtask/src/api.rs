//! `cargo xtask api`: the public items of the crates, each on a line of a file in the repository.
//!
//! rustdoc writes them as JSON, which it calls unstable: `RUSTC_BOOTSTRAP` makes the oldest Rust that Cargo.toml
//! promises write it, and `public-api` reads the form of that release.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use crate::log::Log;
use crate::repo;
use crate::toolchain::promised_cargo;

/// The published crates, and the folder of each.
const CRATES: [(&str, &str); 4] = [
    ("mcpbolt", "core"),
    ("mcpbolt-codec", "core/codec"),
    ("mcpbolt-macros", "core/macros"),
    ("mcpbolt-oauth", "core/oauth"),
];

/// Renew the listings of the public API (API.txt) and print what has changed
///
/// Fails if the top section of CHANGELOG.md does not name an item that was removed or changed.
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_: &Args) -> Result<ExitCode> {
    let mut log = Log::create("api", true)?;
    let changelog = fs::read_to_string(repo::root().join("CHANGELOG.md"))?;
    for (name, folder) in CRATES {
        let file = file(folder);
        let (before, now) = (
            fs::read_to_string(&file).unwrap_or_default(),
            list(name, &mut log)?,
        );
        let changes = Changes::between(&before, &now, name);
        print!("{changes}");
        let untold = changes.untold(&changelog);
        ensure!(
            untold.is_empty(),
            "{}: not renewed: the top section of CHANGELOG.md does not name what was removed or changed: {}",
            file.display(),
            untold.join(", ")
        );
        fs::write(file, now)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares the listings with the crates.
pub fn check(log: &mut Log) -> Result<()> {
    let mut wrong = String::new();
    for (name, folder) in CRATES {
        let file = file(folder);
        let before = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let now = list(name, log)?;
        let changes = Changes::between(&before, &now, name);
        if !changes.is_empty() {
            write!(
                wrong,
                "{} is not the public API of {name}:\n{changes}",
                file.display()
            )?;
        }
    }
    ensure!(
        wrong.is_empty(),
        "{wrong}If this is intended, name what was removed or changed in the top section of CHANGELOG.md, then run `cargo xtask api`."
    );
    Ok(())
}

fn file(folder: &str) -> PathBuf {
    repo::root().join(folder).join("API.txt")
}

/// The public items of a crate with all features, one on each line, sorted.
fn list(name: &str, log: &mut Log) -> Result<String> {
    let mut rustdoc = promised_cargo(&format!("rustdoc -p {name} --lib --all-features"))?;
    let json = [
        "--",
        "-Zunstable-options",
        "--output-format",
        "json",
        "--cap-lints",
        "allow",
    ];
    rustdoc.args(json).env("RUSTC_BOOTSTRAP", "1");
    log.run(rustdoc)?;
    let file = format!("msrv/doc/{}.json", name.replace('-', "_"));
    let api = public_api::Builder::from_rustdoc_json(repo::target().join(file))
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build()
        .context("public-api in xtask/Cargo.toml reads the JSON of another Rust: take the version for the rust-version of Cargo.toml")?;
    let lines: Vec<_> = api.items().map(|item| item.to_string()).collect();
    let mut lines = by_one_path(&lines, &name.replace('-', "_"));
    ensure!(
        lines.len() > 3,
        "the public API of {name} has {} items",
        lines.len()
    );
    lines.sort();
    lines.dedup();
    Ok(lines.join("\n") + "\n")
}

/// Names each type by one of its paths: another re-export of it is then one line more and changes no other.
fn by_one_path(lines: &[String], root: &str) -> Vec<String> {
    let mut paths = BTreeMap::<_, BTreeSet<_>>::new();
    for line in lines {
        let path = item(line, root);
        let types = ["struct ", "enum ", "trait ", "union "];
        let kind = line.rsplit_once("] ").map_or(&**line, |(_, rest)| rest);
        let kind = kind.trim_start_matches("pub ");
        if types.iter().any(|word| kind.starts_with(word))
            && let Some((module, name)) = path.rsplit_once("::")
        {
            let rank = (module.ends_with("::prelude"), path.len(), path);
            paths.entry(name).or_default().insert(rank);
        }
    }
    let first = |path: &str| {
        let ranks = paths.get(path.rsplit("::").next()?)?;
        let others = ranks.iter().skip(1);
        let is_other = others.map(|rank| rank.2).any(|other| other == path);
        ranks.first().filter(|_| is_other).map(|rank| rank.2)
    };
    let renamed = |line: &String| {
        let own = item(line, root);
        let mut out = String::new();
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        for token in line.split_inclusive(|c| !is_path(c)) {
            let path = token.trim_end_matches(|c| !is_path(c));
            let mut ends = path
                .match_indices("::")
                .map(|(at, _)| at)
                .chain([path.len()]);
            let found = ends.find_map(|end| Some((end, first(&path[..end])?)));
            match found.filter(|(end, _)| path != own || *end < path.len()) {
                Some((end, name)) => out.extend([name, &token[end..]]),
                None => out.push_str(token),
            }
        }
        out
    };
    lines.iter().map(renamed).collect()
}

/// The differences of two listings.
#[derive(Debug, Default, PartialEq)]
struct Changes<'a> {
    removed: Vec<&'a str>,
    added: Vec<&'a str>,
    /// The line of an item before and now.
    changed: Vec<(&'a str, &'a str)>,
}

impl<'a> Changes<'a> {
    fn between(before: &'a str, now: &'a str, name: &str) -> Self {
        let root = name.replace('-', "_");
        let [old, new]: [BTreeSet<_>; 2] = [before, now].map(|text| text.lines().collect());
        let mut removed: BTreeMap<_, _> = old
            .difference(&new)
            .map(|line| (item(line, &root), *line))
            .collect();
        let mut changes = Self::default();
        for line in new.difference(&old) {
            match removed.remove(item(line, &root)) {
                Some(before) => changes.changed.push((before, line)),
                None => changes.added.push(line),
            }
        }
        changes.removed = removed.into_values().collect();
        changes
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The names of removed and changed items that the top section of the changelog does not have.
    fn untold(&self, changelog: &str) -> Vec<&'a str> {
        let top = changelog.split("\n## ").nth(1).unwrap_or_default();
        let words: BTreeSet<_> = top
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .collect();
        let changed = self.changed.iter().map(|(before, _)| before);
        let names = self
            .removed
            .iter()
            .chain(changed)
            .map(|line| last_name(line));
        let untold: BTreeSet<_> = names.filter(|name| !words.contains(name)).collect();
        untold.into_iter().collect()
    }
}

impl std::fmt::Display for Changes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in &self.removed {
            writeln!(f, "  removed  {line}")?;
        }
        for (before, now) in &self.changed {
            writeln!(f, "  changed  {before}\n       to  {now}")?;
        }
        for line in &self.added {
            writeln!(f, "  added    {line}")?;
        }
        Ok(())
    }
}

/// The part of a line that stays when an item changes: the path of the item, or all of an `impl`.
fn item<'a>(line: &'a str, root: &str) -> &'a str {
    if line.starts_with("impl") {
        return line;
    }
    let start = line.find(&format!("{root}::")).unwrap_or(0);
    let path = &line[start..];
    let end = path.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    path[..end.unwrap_or(path.len())].trim_end_matches(':')
}

/// The name of the item on a line; of an `impl`, the type.
fn last_name(line: &str) -> &str {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let head = match line.starts_with("impl") {
        true => line.rsplit(" for ").next().unwrap_or(line),
        false => line,
    };
    let start = head.find("::").map_or(0, |at| {
        head[..at].rfind(|c| !is_name(c)).map_or(0, |at| at + 1)
    });
    let path = &head[start..];
    let end = path.find(|c| !is_name(c) && c != ':').unwrap_or(path.len());
    path[..end]
        .trim_end_matches(':')
        .rsplit("::")
        .next()
        .unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "impl core::clone::Clone for a_b::x::Gone\npub fn a_b::x::Thing::f(&self)\npub mod a_b\npub struct a_b::x::Gone\n";
    const NOW: &str = "pub fn a_b::x::Thing::f(&self, n: usize) -> a_b::y::New\npub mod a_b\npub struct a_b::y::New\n";

    #[test]
    fn what_is_added_removed_and_changed_is_told_apart() {
        let changes = Changes::between(BEFORE, NOW, "a-b");
        let told = "  removed  pub struct a_b::x::Gone\n  removed  impl core::clone::Clone for a_b::x::Gone\n  \
                    changed  pub fn a_b::x::Thing::f(&self)\n       \
                    to  pub fn a_b::x::Thing::f(&self, n: usize) -> a_b::y::New\n  \
                    added    pub struct a_b::y::New\n";
        assert_eq!(changes.to_string(), told);
        assert!(Changes::between(NOW, NOW, "a-b").is_empty());
    }

    #[test]
    fn a_type_has_one_path_but_where_it_is_exported() {
        let lines = [
            "impl Clone for a_b::prelude::Thing",
            "pub fn a_b::prelude::Thing::f(&self) -> Vec<a_b::y::Thing>",
            "#[non_exhaustive] pub struct a_b::prelude::Thing",
            "#[non_exhaustive] pub struct a_b::x::Thing<T>",
            "pub struct a_b::y::Thing",
        ];
        let expected = [
            "impl Clone for a_b::x::Thing",
            "pub fn a_b::x::Thing::f(&self) -> Vec<a_b::x::Thing>",
            "#[non_exhaustive] pub struct a_b::prelude::Thing",
            "#[non_exhaustive] pub struct a_b::x::Thing<T>",
            "pub struct a_b::y::Thing",
        ];
        assert_eq!(by_one_path(&lines.map(str::to_owned), "a_b"), expected);
    }

    #[test]
    fn a_changelog_names_what_is_removed_or_changed() {
        let changes = Changes::between(BEFORE, NOW, "a-b");
        let untold = |top| {
            changes.untold(&format!(
                "# Changelog\n\n## Unreleased\n{top}\n## 0.1\n`Gone`, `f`"
            ))
        };
        assert_eq!(untold("nothing"), ["Gone", "f"]);
        assert_eq!(untold("- `x::Gone` is gone"), ["f"]);
        assert!(untold("- `x::Gone` is gone, `Thing::f` takes a number").is_empty());
    }
}
