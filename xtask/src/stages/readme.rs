//! The programs of the README run as they are printed there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::load::{Revision, Session, Start};
use crate::log::Log;
use crate::repo::{self, Build, cargo};
use crate::{node, python};

/// Each program offers one tool, `add`; a client asks each of them for a sum.
pub fn readme(log: &mut Log) -> Result<()> {
    let text = fs::read_to_string(repo::root().join("README.md"))?;
    let folder = repo::cache().join("readme");
    fs::create_dir_all(&folder)?;
    let programs = [
        rust(&folder, block(&text, "rust")?, log)?,
        python(&folder, block(&text, "python")?, log)?,
        node(&folder, block(&text, "js")?, log)?,
    ];
    for words in programs {
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

/// The first block of a language.
fn block<'a>(text: &'a str, language: &str) -> Result<&'a str> {
    let open = format!("```{language}\n");
    let inside = text
        .split_once(&open)
        .and_then(|(_, rest)| rest.split_once("```"));
    match inside {
        Some((program, _)) => Ok(program),
        None => bail!("the README has no {language} program"),
    }
}

/// A project as its reader would make it, but for where the crate is.
fn rust(folder: &Path, program: &str, log: &mut Log) -> Result<Vec<PathBuf>> {
    let project = folder.join("rust");
    fs::create_dir_all(project.join("src"))?;
    fs::write(project.join("src/main.rs"), program)?;
    let manifest = format!(
        "[package]\nname = \"readme\"\nedition = \"2024\"\n\n[dependencies]\nmcpbolt = {{ path = {:?} }}\nschemars = \"1\"\nserde = {{ version = \"1\", features = [\"derive\"] }}\n\n[workspace]\n",
        repo::root().join("core")
    );
    fs::write(project.join("Cargo.toml"), manifest)?;
    let target = repo::target().join("package-user");
    let mut build = cargo("build");
    build.current_dir(&project).env("CARGO_TARGET_DIR", &target);
    log.run(build)?;
    Ok(vec![target.join("debug/readme")])
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
    fn the_first_block_of_a_language_is_the_program() {
        let text = "```sh\ncargo\n```\n```rust\nfn main() {}\n```\n```rust\nother\n```\n";
        assert_eq!(block(text, "rust").unwrap(), "fn main() {}\n");
        assert!(block(text, "python").is_err());
    }
}
