//! Checks that each public type of the engine has a name of its own: no `pub` or `pub(crate)` struct, enum,
//! trait, type or union of `core`, its codec and its logins is defined in two modules. Re-exports do not count, tests
//! neither.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test: panicking is the report"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Ident, Item, Visibility};

/// The modules that define each name.
type Places = BTreeMap<String, BTreeSet<String>>;

fn is_for_tests(attributes: &[Attribute]) -> bool {
    let cfgs = attributes.iter().filter(|one| one.path().is_ident("cfg"));
    cfgs.filter_map(|cfg| cfg.meta.require_list().ok())
        .any(|cfg| {
            let condition = cfg.tokens.to_string();
            condition == "test" || (condition.starts_with("all") && condition.contains("test"))
        })
}

/// The name of a type that other modules of the crate may use.
fn public_type(item: &Item) -> Option<&Ident> {
    let (visibility, name) = match item {
        Item::Enum(item) => (&item.vis, &item.ident),
        Item::Struct(item) => (&item.vis, &item.ident),
        Item::Trait(item) => (&item.vis, &item.ident),
        Item::Type(item) => (&item.vis, &item.ident),
        Item::Union(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    let is_public = match visibility {
        Visibility::Public(_) => true,
        Visibility::Restricted(to) => to.path.is_ident("crate"),
        Visibility::Inherited => false,
    };
    is_public.then_some(name)
}

/// Reads the items of a module, whose child modules stand in the files of `folder`.
fn read(places: &mut Places, module: &str, items: &[Item], folder: &Path) {
    for item in items {
        if let Some(name) = public_type(item) {
            let name = places.entry(name.to_string()).or_default();
            name.insert(module.to_owned());
        }
        let Item::Mod(child) = item else { continue };
        if is_for_tests(&child.attrs) || child.attrs.iter().any(|one| one.path().is_ident("path")) {
            continue;
        }
        let name = child.ident.to_string();
        let module = format!("{module}::{name}");
        let within = folder.join(&name);
        match &child.content {
            Some((_, items)) => read(places, &module, items, &within),
            None => {
                let files = [folder.join(format!("{name}.rs")), within.join("mod.rs")];
                let file = files.iter().find(|file| file.exists());
                let file = file.unwrap_or_else(|| panic!("no file has the module {module}"));
                read(places, &module, &parsed(file), &within);
            }
        }
    }
}

fn parsed(file: &PathBuf) -> Vec<Item> {
    let text = fs::read_to_string(file).unwrap();
    let parsed = syn::parse_file(&text);
    parsed
        .unwrap_or_else(|why| panic!("{}: {why}", file.display()))
        .items
}

#[test]
fn each_public_type_of_the_engine_has_a_name_of_its_own() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut places = Places::new();
    for (name, folder) in [
        ("mcpbolt", "core/src"),
        ("mcpbolt_codec", "core/codec/src"),
        ("mcpbolt_oauth", "core/oauth/src"),
    ] {
        let folder = root.join(folder);
        read(&mut places, name, &parsed(&folder.join("lib.rs")), &folder);
    }
    assert!(places.len() > 100, "only {} types are found", places.len());
    let repeated: Vec<String> = places
        .iter()
        .filter(|(_, at)| at.len() > 1)
        .map(|(name, at)| {
            let at: Vec<&str> = at.iter().map(String::as_str).collect();
            format!("{name}: {}", at.join(", "))
        })
        .collect();
    assert!(
        repeated.is_empty(),
        "these names stand in several places; give each type its own:\n{}",
        repeated.join("\n")
    );
}
