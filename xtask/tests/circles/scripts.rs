//! The dependencies between the files of a package in Python or TypeScript.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::Graph;

/// One import: names, and the file that they come from.
struct Import {
    from: String,
    names: Vec<String>,
    is_export: bool,
}

/// Resolves re-exports: a name counts to the file that it comes from in the end.
fn graph(files: &BTreeMap<String, Vec<Import>>) -> Graph {
    let mut graph = Graph::new();
    for (file, imports) in files {
        let mut found = BTreeSet::new();
        for import in imports.iter().filter(|import| !import.is_export) {
            for name in &import.names {
                found.insert(origin(files, &import.from, name, 0).to_owned());
            }
        }
        found.retain(|one| one != file && files.contains_key(one));
        graph.insert(file.clone(), found);
    }
    graph
}

fn origin<'a>(
    files: &'a BTreeMap<String, Vec<Import>>,
    file: &'a str,
    name: &str,
    depth: usize,
) -> &'a str {
    let exports = files
        .get(file)
        .into_iter()
        .flatten()
        .filter(|import| import.is_export);
    let passed_on = exports
        .filter(|import| import.names.iter().any(|one| one == name))
        .map(|import| import.from.as_str())
        .next();
    match passed_on {
        Some(from) if depth < 20 => origin(files, from, name, depth + 1),
        _ => file,
    }
}

fn read(folder: &Path, ending: &str, imports: impl Fn(&Path, &str) -> Vec<Import>) -> Graph {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().unwrap().ends_with(ending) {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                let text = fs::read_to_string(&path).unwrap();
                files.insert(name.display().to_string(), imports(&name, &text));
            }
        }
    }
    graph(&files)
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// `import`s and `export … from` of relative modules.
pub fn typescript(folder: &Path) -> Graph {
    read(folder, ".ts", |file, text| {
        let mut found = Vec::new();
        // Each statement ends with the module's name in quotation marks.
        for (at, _) in text.match_indices(" from '.") {
            let target = &text[at + " from '".len()..];
            let target = target.split('\'').next().unwrap();
            let before = &text[..at];
            let begin = before.rfind("\nimport ").max(before.rfind("\nexport "));
            let begin = begin.unwrap_or(0);
            let statement = before[begin..].trim_start();
            let names = statement
                .split(',')
                .filter_map(|part| words(part.split(" as ").next()?).pop());
            found.push(Import {
                from: beside(file, target.trim_end_matches(".js"), ".ts"),
                names: names.collect(),
                is_export: statement.starts_with("export"),
            });
        }
        found
    })
}

/// The path of a module named relative to a file.
fn beside(file: &Path, target: &str, ending: &str) -> String {
    let mut path = PathBuf::new();
    for part in file.parent().unwrap().join(target).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    format!("{}{ending}", path.display())
}

/// `from .module import name` and `from . import module`, wherever they stand.
pub fn python(folder: &Path) -> Graph {
    read(folder, ".py", |file, text| {
        let mut found = Vec::new();
        let is_package = file.ends_with("__init__.py");
        let joined = joined(text);
        for line in joined.lines().map(str::trim_start) {
            let Some((module, names)) = line
                .strip_prefix("from .")
                .and_then(|rest| rest.split_once(" import "))
            else {
                continue;
            };
            let ups = module.chars().take_while(|c| *c == '.').count();
            let mut target = "../".repeat(ups);
            target += &module[ups..].replace('.', "/");
            let names: Vec<_> = names
                .split(',')
                .filter_map(|part| words(part.split(" as ").next()?).pop())
                .collect();
            if target.is_empty() || target.ends_with('/') {
                for name in names {
                    // A module of the package, or else a name in the package.
                    let module = module_of(folder, &beside(file, &format!("{target}{name}"), ""));
                    let package = beside(file, &format!("{target}__init__"), ".py");
                    let is_module = folder.join(&module).exists();
                    found.push(Import {
                        from: if is_module { module } else { package },
                        names: vec![name],
                        is_export: is_package,
                    });
                }
                continue;
            }
            let from = module_of(folder, &beside(file, &target, ""));
            found.push(Import {
                from,
                names,
                is_export: is_package,
            });
        }
        found
    })
}

fn module_of(folder: &Path, path: &str) -> String {
    let package = format!("{path}/__init__.py");
    if folder.join(&package).exists() {
        package
    } else {
        format!("{path}.py")
    }
}

/// The text with each statement in parentheses on one line, without comments.
fn joined(text: &str) -> String {
    let mut out = String::new();
    let mut depth = 0;
    for line in text.lines() {
        let line = line.split(" #").next().unwrap();
        let is_import = depth > 0 || line.trim_start().starts_with("from .");
        if is_import {
            depth += line.matches('(').count();
            depth -= line.matches(')').count();
        }
        out += line;
        out.push(if depth > 0 { ' ' } else { '\n' });
    }
    out
}
