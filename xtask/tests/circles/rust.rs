//! Which files of a crate depend on which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree, Visibility};

use super::Graph;

/// A module, by its names from the root of the crate.
type Module = Vec<String>;

/// What a name stands for in a module.
#[derive(Clone)]
enum Name {
    /// An item that the file of the module defines.
    Item,
    /// A child module.
    Module,
    /// An import of this path.
    Import(Vec<String>),
}

#[derive(Default)]
struct Scope {
    file: String,
    names: BTreeMap<String, Name>,
    globs: Vec<Vec<String>>,
    /// The paths that its code has.
    paths: Vec<Vec<String>>,
}

/// Where a path leads.
#[derive(Clone)]
enum Target {
    Module(Module),
    /// An item defined in this file.
    Item(String),
}

#[derive(Default)]
struct Crate {
    modules: BTreeMap<Module, Scope>,
}

/// The graph of the crate that begins with this file.
pub fn graph(door: &Path) -> Graph {
    let mut all = Crate::default();
    let folder = door.parent().unwrap().to_owned();
    all.read(Vec::new(), door, &folder, &folder);
    all.graph()
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = |text: String| {
            text.split(|c: char| !c.is_alphanumeric())
                .any(|w| w == "test")
        };
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|list| {
                    is_test(list.tokens.to_string()) && !list.tokens.to_string().contains("not")
                })
    })
}

impl Crate {
    /// Reads the file of a module. The files of its children are in `children`.
    fn read(&mut self, module: Module, file: &Path, children: &Path, door: &Path) {
        let text =
            fs::read_to_string(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        let parsed =
            syn::parse_file(&text).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        let name = file.strip_prefix(door).unwrap().display().to_string();
        self.fill(module, &name, &parsed.items, children, door);
    }

    fn fill(&mut self, module: Module, file: &str, items: &[Item], children: &Path, door: &Path) {
        let mut scope = Scope {
            file: file.to_owned(),
            ..Scope::default()
        };
        for item in items {
            match item {
                // A file of another package is none of this one.
                Item::Mod(child) if child.attrs.iter().any(|one| one.path().is_ident("path")) => {}
                Item::Mod(child) if !is_for_tests(&child.attrs) => {
                    let name = child.ident.to_string();
                    scope.names.insert(name.clone(), Name::Module);
                    self.child(&module, file, child, &children.join(&name), children, door);
                }
                Item::Use(import) if !is_for_tests(&import.attrs) => {
                    add_imports(&mut scope, import)
                }
                _ => {
                    if let Some(name) = name_of(item) {
                        scope.names.insert(name, Name::Item);
                    }
                    scope.visit_item(item);
                }
            }
        }
        self.modules.insert(module, scope);
    }

    fn child(
        &mut self,
        module: &Module,
        file: &str,
        child: &ItemMod,
        folder: &Path,
        beside: &Path,
        door: &Path,
    ) {
        let mut path = module.clone();
        path.push(child.ident.to_string());
        if let Some((_, items)) = &child.content {
            self.fill(path, file, items, folder, door);
            return;
        }
        let beside = beside.join(format!("{}.rs", child.ident));
        let own: PathBuf = if beside.exists() {
            beside
        } else {
            folder.join("mod.rs")
        };
        self.read(path, &own, folder, door);
    }

    fn graph(&self) -> Graph {
        let mut graph = Graph::new();
        for (module, scope) in &self.modules {
            let mut found = BTreeSet::new();
            for path in &scope.paths {
                if let Some(Target::Item(file)) = self.resolve(module, path, 0)
                    && file != scope.file
                {
                    found.insert(file);
                }
            }
            graph.entry(scope.file.clone()).or_default().extend(found);
        }
        graph
    }

    /// Where a path leads that stands in that module.
    fn resolve(&self, module: &Module, path: &[String], depth: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Target::Module(Vec::new()),
            "self" => Target::Module(module.clone()),
            "super" => Target::Module(module[..module.len().checked_sub(1)?].to_vec()),
            name => self.look_up(module, name, depth)?,
        };
        for name in rest {
            let Target::Module(module) = &at else {
                return Some(at);
            };
            at = match name.as_str() {
                "self" => continue,
                "super" => Target::Module(module[..module.len().checked_sub(1)?].to_vec()),
                name => self.look_up(module, name, depth)?,
            };
        }
        Some(at)
    }

    fn look_up(&self, module: &Module, name: &str, depth: usize) -> Option<Target> {
        if depth > 20 {
            return None;
        }
        let scope = self.modules.get(module)?;
        match scope.names.get(name) {
            Some(Name::Item) => return Some(Target::Item(scope.file.clone())),
            Some(Name::Module) => {
                return Some(Target::Module([&module[..], &[name.to_owned()]].concat()));
            }
            // An import of an outer crate by its own name does not lead here again.
            Some(Name::Import(path)) if path.len() > 1 || path[0] != name => {
                return self.resolve(module, path, depth + 1);
            }
            _ => {}
        }
        scope.globs.iter().find_map(|glob| {
            match self.resolve(module, glob, depth + 1)? {
                Target::Module(from) if from != *module => self.look_up(&from, name, depth + 1),
                // The variants of an enum: the same file as the enum.
                _ => None,
            }
        })
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn add_imports(scope: &mut Scope, import: &ItemUse) {
    let mut found = Vec::new();
    let mut globs = Vec::new();
    flatten(&import.tree, &mut Vec::new(), &mut found, &mut globs);
    let is_own = matches!(import.vis, Visibility::Inherited);
    for (name, path) in found {
        if is_own {
            scope.paths.push(path.clone());
        }
        scope.names.insert(name, Name::Import(path));
    }
    scope.globs.extend(globs);
}

fn flatten(
    tree: &UseTree,
    before: &mut Vec<String>,
    found: &mut Vec<(String, Vec<String>)>,
    globs: &mut Vec<Vec<String>>,
) {
    let with = |name: String| [&before[..], &[name]].concat();
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, found, globs);
            before.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            found.push((before.last().cloned().unwrap_or_default(), before.clone()));
        }
        UseTree::Name(name) => found.push((name.ident.to_string(), with(name.ident.to_string()))),
        UseTree::Rename(rename) => {
            found.push((rename.rename.to_string(), with(rename.ident.to_string())))
        }
        UseTree::Glob(_) => globs.push(before.clone()),
        UseTree::Group(group) => {
            for tree in &group.items {
                flatten(tree, before, found, globs);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Scope {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string());
        self.paths.push(names.collect());
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, import: &'ast ItemUse) {
        let mut found = Vec::new();
        flatten(&import.tree, &mut Vec::new(), &mut found, &mut Vec::new());
        self.paths.extend(found.into_iter().map(|(_, path)| path));
    }

    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}
}
