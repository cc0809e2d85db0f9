//! The dependencies between the files of a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Meta, Token, UseTree, Visibility};

use super::Graph;

/// A module, by its names from the root of the crate.
type Module = Vec<String>;

/// The meaning of a name that is not a child module.
enum Name {
    /// An item that the file of the module defines.
    Item,
    /// An import of this path.
    Import(Vec<String>),
}

#[derive(Default)]
struct Scope {
    file: String,
    /// The child modules. A function may have the name of one.
    modules: BTreeSet<String>,
    names: BTreeMap<String, Name>,
    globs: Vec<Vec<String>>,
    /// The paths that its code has.
    paths: Vec<Vec<String>>,
}

/// Where a path leads.
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

/// Whether an item is built for tests alone: `cfg(test)`, or `cfg(all(…))` with `test` among its parts.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    let cfgs = attributes.iter().filter(|one| one.path().is_ident("cfg"));
    let mut conditions = cfgs.filter_map(|cfg| cfg.parse_args::<Meta>().ok());
    attributes.iter().any(|one| one.path().is_ident("test"))
        || conditions.any(|one| needs_test(&one))
}

fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => {
            let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            parts.is_ok_and(|parts| parts.iter().any(needs_test))
        }
        _ => false,
    }
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
                    scope.modules.insert(name.clone());
                    self.child(&module, file, child, &children.join(&name), children, door);
                }
                Item::Use(import) if !is_for_tests(&import.attrs) => {
                    add_imports(&mut scope, import)
                }
                _ => {
                    let mut names = Vec::from_iter(name_of(item));
                    if let Item::Macro(item) = item {
                        defined(item.mac.tokens.clone(), &mut names);
                    }
                    let names = names.into_iter().map(|name| (name, Name::Item));
                    scope.names.extend(names);
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
                if let Some(Target::Item(file)) = self.resolve(module, path, false, 0)
                    && file != scope.file
                {
                    found.insert(file);
                }
            }
            graph.entry(scope.file.clone()).or_default().extend(found);
        }
        graph
    }

    /// Resolves a path that stands in that module. With `goes_on`, its last name is followed by another one.
    fn resolve(
        &self,
        module: &Module,
        path: &[String],
        goes_on: bool,
        depth: usize,
    ) -> Option<Target> {
        let mut at = Target::Module(module.clone());
        for (index, name) in path.iter().enumerate() {
            let Target::Module(module) = &at else {
                return Some(at);
            };
            at = match name.as_str() {
                "crate" => Target::Module(Vec::new()),
                "self" => continue,
                "super" => Target::Module(module[..module.len().checked_sub(1)?].to_vec()),
                name => self.look_up(module, name, goes_on || index + 1 < path.len(), depth)?,
            };
        }
        Some(at)
    }

    /// Resolves one name in a module. If the path goes on, a child module comes before an item of the same name.
    fn look_up(&self, module: &Module, name: &str, goes_on: bool, depth: usize) -> Option<Target> {
        if depth > 20 {
            return None;
        }
        let scope = self.modules.get(module)?;
        let child = || {
            let path = [&module[..], &[name.to_owned()]].concat();
            scope.modules.contains(name).then_some(Target::Module(path))
        };
        let item = || match scope.names.get(name)? {
            Name::Item => Some(Target::Item(scope.file.clone())),
            // An import of an outer crate by its own name does not lead here again.
            Name::Import(path) if path.len() == 1 && path[0] == name => None,
            Name::Import(path) => self.resolve(module, path, goes_on, depth + 1),
        };
        let found = if goes_on {
            child().or_else(item)
        } else {
            item().or_else(child)
        };
        let glob = |glob: &Vec<String>| match self.resolve(module, glob, true, depth + 1)? {
            Target::Module(from) if from != *module => {
                self.look_up(&from, name, goes_on, depth + 1)
            }
            // The variants of an enum: their paths count where the enum is named.
            _ => None,
        };
        found.or_else(|| scope.globs.iter().find_map(glob))
    }
}

/// The names of the items that the tokens of a macro define.
fn defined(tokens: TokenStream, found: &mut Vec<String>) {
    const KINDS: [&str; 7] = ["const", "enum", "fn", "static", "struct", "trait", "type"];
    let mut is_next = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => defined(group.stream(), found),
            TokenTree::Ident(word) if is_next => {
                found.push(word.to_string());
                is_next = false;
            }
            TokenTree::Ident(word) => is_next = KINDS.iter().any(|kind| word == kind),
            _ => is_next = false,
        }
    }
}

/// The paths in the arguments of a macro.
fn named(tokens: TokenStream, found: &mut Vec<Vec<String>>) {
    let (mut path, mut colons) = (Vec::new(), 0);
    for token in tokens {
        match token {
            TokenTree::Ident(word) if colons == 2 || path.is_empty() => path.push(word.to_string()),
            TokenTree::Punct(mark) if mark.as_char() == ':' && colons < 2 && !path.is_empty() => {
                colons += 1;
                continue;
            }
            token => {
                found.push(std::mem::take(&mut path));
                match token {
                    TokenTree::Group(group) => named(group.stream(), found),
                    TokenTree::Ident(word) => path.push(word.to_string()),
                    _ => {}
                }
            }
        }
        colons = 0;
    }
    found.push(path);
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

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        named(call.tokens.clone(), &mut self.paths);
        visit::visit_macro(self, call);
    }

    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}
}
