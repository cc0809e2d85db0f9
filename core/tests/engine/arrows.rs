//! The rooms import from one another only as `ARCHITECTURE.md` draws it.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Arrows = BTreeMap<String, BTreeSet<String>>;

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The rooms in the order of the drawing, and what each may import from.
fn drawn() -> (Vec<String>, Arrows) {
    let text = fs::read_to_string(crate_folder().join("ARCHITECTURE.md")).unwrap();
    let block = text.split("```text arrows\n").nth(1).unwrap();
    let block = block.split("```").next().unwrap();
    let mut order = Vec::new();
    let mut arrows = Arrows::new();
    for line in block.lines() {
        let (room, targets) = line.split_once('→').unwrap();
        let room = room.trim().to_owned();
        let targets = targets.split(',').map(str::trim).filter(|t| !t.is_empty());
        order.push(room.clone());
        arrows.insert(room, targets.map(str::to_owned).collect());
    }
    (order, arrows)
}

/// Every source file with the room it belongs to; the door, `lib.rs`, belongs to none.
fn sources() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let folders = ["codec/src", "src"].map(|folder| crate_folder().join(folder));
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    for entry in entries {
        let path = entry.unwrap().path();
        let room = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            walk(&path, &mut |file| found.push((room.clone(), file)));
        } else if room != "lib" {
            found.push((room, path));
        }
    }
    found
}

fn walk(folder: &Path, found: &mut dyn FnMut(PathBuf)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found(path);
        }
    }
}

/// The rooms that a source names after `crate::`, alone or in a group, comments left out.
fn rooms_named(source: &str) -> BTreeSet<String> {
    let code: String = source
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect::<Vec<_>>()
        .join("\n");
    let mut rooms = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let follows_a_word = code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if follows_a_word {
            continue;
        }
        let rest = code[at + "crate::".len()..].trim_start();
        match rest.strip_prefix('{') {
            Some(group) => rooms.extend(heads(group)),
            None => rooms.extend(word(rest)),
        }
    }
    rooms
}

/// The first names of a group `a::b, c::{d, e}}…`, up to its closing brace.
fn heads(group: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0;
    let mut at_head = true;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_head = true,
            c if at_head && !c.is_whitespace() => {
                names.extend(word(&group[at..]));
                at_head = false;
            }
            _ => {}
        }
    }
    names
}

/// The module name that a path begins with; types and macros of the door are none.
fn word(path: &str) -> Option<String> {
    let end = path.find(|c: char| !(c.is_alphanumeric() || c == '_'));
    let word = &path[..end.unwrap_or(path.len())];
    word.starts_with(|c: char| c.is_lowercase())
        .then(|| word.to_owned())
}

#[test]
fn every_room_is_drawn() {
    let (order, _) = drawn();
    let rooms: BTreeSet<String> = sources().into_iter().map(|(room, _)| room).collect();
    for room in &rooms {
        assert!(
            order.contains(room),
            "ARCHITECTURE.md does not draw the room {room}"
        );
    }
    assert!(
        rooms.len() > 3,
        "only {rooms:?} found: is this the right folder?"
    );
}

#[test]
fn drawn_arrows_point_down() {
    let (order, arrows) = drawn();
    for (index, room) in order.iter().enumerate() {
        for target in &arrows[room] {
            assert!(
                order[..index].contains(target),
                "{room} → {target} does not point down"
            );
        }
    }
}

#[test]
fn no_room_imports_past_a_drawn_arrow() {
    let (_, arrows) = drawn();
    let mut undrawn = Vec::new();
    for (room, file) in sources() {
        let source = fs::read_to_string(&file).unwrap();
        for target in rooms_named(&source) {
            let drawn = arrows.get(&room).is_some_and(|to| to.contains(&target));
            if target != room && !drawn {
                undrawn.push(format!("{room} → {target} ({})", file.display()));
            }
        }
    }
    assert!(
        undrawn.is_empty(),
        "ARCHITECTURE.md does not draw {undrawn:#?}"
    );
}

#[test]
fn imports_are_found_in_every_form() {
    let source = "use crate::json::reader;\n\
        use crate::{\n  buffer::{Input, Output},\n  limits,\n};\n\
        // crate::server\n\
        fn f() -> crate::error::Scope { mycrate::client(); crate::Top }\n";
    let named = rooms_named(source);
    let named: Vec<&str> = named.iter().map(String::as_str).collect();
    assert_eq!(named, ["buffer", "error", "json", "limits"]);
}
