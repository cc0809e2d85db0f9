//! `cargo xtask schemas`: the shapes of the protocol's messages as JSON Schema.

use std::process::ExitCode;

use anyhow::Result;

use crate::repo;
use crate::shapes::{REVISIONS, schema};

/// Write `corpus/shapes.txt` as JSON Schema, a file for each revision, and print their folder
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_: &Args) -> Result<ExitCode> {
    let folder = repo::cache().join("schemas");
    std::fs::create_dir_all(&folder)?;
    for revision in REVISIONS {
        let file = folder.join(format!("{revision}.json"));
        std::fs::write(file, schema(revision).to_string())?;
    }
    println!("{}", folder.display());
    Ok(ExitCode::SUCCESS)
}
