//! Runs the programs of the README as printed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::package;
use crate::load::{Revision, Session, Start};
use crate::log::Log;
use crate::repo::{self, Build, command};
use crate::{node, python};

/// Each server offers one tool, `add`. A client calls it on each server; the README's own client calls it
/// on the README's Rust server.
pub fn readme(log: &mut Log) -> Result<()> {
    let text = fs::read_to_string(repo::root().join("README.md"))?;
    let folder = repo::cache().join("readme");
    fs::create_dir_all(&folder)?;
    let (server, client) = package::programs(log)?;
    let said = repo::output(command(client, [] as [&str; 0]))?;
    ensure!(said.trim() == "42", "the client prints {said:?}");
    log.tally.passed += 1;
    let servers = [
        vec![server],
        python(&folder, block(&text, "python", 0)?, log)?,
        node(&folder, block(&text, "js", 0)?, log)?,
    ];
    for words in servers {
        let start = Start {
            words: words
                .iter()
                .map(|word| word.display().to_string())
                .collect(),
            ..Start::default()
        };
        add(&start).with_context(|| start.words.join(" "))?;
        log.tally.passed += 1;
    }
    Ok(())
}

fn add(start: &Start) -> Result<()> {
    for revision in [Revision::Handshake, Revision::Envelope] {
        let mut session = Session::open(start, revision)?;
        ensure!(session.tools == ["add"], "it lists {:?}", session.tools);
        let sum = session.call("add", r#"{"a":2,"b":40}"#)?;
        ensure!(sum == "42", "2 + 40 is {sum}");
        ensure!(session.close().is_some(), "it does not exit");
    }
    Ok(())
}

/// The code block of a language with that number, counted from 0.
pub fn block<'a>(text: &'a str, language: &str, number: usize) -> Result<&'a str> {
    let open = format!("```{language}\n");
    let inside = text.split(&open).nth(number + 1);
    match inside.and_then(|rest| rest.split_once("```")) {
        Some((program, _)) => Ok(program),
        None => bail!("the README has no {language} program number {number}"),
    }
}

fn python(folder: &Path, program: &str, log: &mut Log) -> Result<Vec<PathBuf>> {
    let venv = python::package(Build::Checked, &mut |command| log.run(command))?;
    let file = folder.join("server.py");
    fs::write(&file, program)?;
    Ok(vec![venv.python(), file])
}

fn node(folder: &Path, program: &str, log: &mut Log) -> Result<Vec<PathBuf>> {
    node::package(Build::Checked, &mut |command| log.run(command))?;
    let modules = folder.join("node_modules");
    fs::create_dir_all(&modules)?;
    let link = modules.join("mcpbolt");
    if !link.exists() {
        std::os::unix::fs::symlink(repo::root().join("bindings-node"), &link)?;
    }
    let file = folder.join("server.mjs");
    fs::write(&file, program)?;
    Ok(vec![PathBuf::from("node"), file])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_of_a_language_are_its_programs() {
        let text = "```sh\ncargo\n```\n```rust\nfn main() {}\n```\n```rust\nother\n```\n";
        assert_eq!(block(text, "rust", 0).unwrap(), "fn main() {}\n");
        assert_eq!(block(text, "rust", 1).unwrap(), "other\n");
        assert!(block(text, "rust", 2).is_err() && block(text, "python", 0).is_err());
    }
}
