//! Tests the Python package as users get it: both kinds of wheels, the source archive, and the features
//! that work with no other package installed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::log::Log;
use crate::python::{self, Venv, Wheel, only_file};
use crate::repo::{self, Build, command};

/// The tests that need no other package.
const ALONE: &str = "bindings-python/tests/test_alone.py";

/// Builds the wheel for this interpreter from the sources, and the one for every interpreter from the
/// source archive. Each is installed into an empty environment and tested there.
pub fn wheels(log: &mut Log) -> Result<()> {
    let run = &mut |command| log.run(command);
    let tools = python::tools(Build::Checked, run)?;
    let version = python::wheel(&tools, Build::Checked, Wheel::Version, run)?;
    let archive = archive(&tools, log)?;
    let abi3 = from_archive(&tools, &archive, log)?;
    for (wheel, kind) in [(version, Wheel::Version), (abi3, Wheel::Abi3)] {
        let name = wheel.file_name().context("a wheel has a name")?;
        let is_abi3 = name.to_string_lossy().contains("-abi3-");
        ensure!(
            is_abi3 == (kind == Wheel::Abi3),
            "{} is of the other kind",
            wheel.display()
        );
        alone(&tools, &wheel, kind, log)?;
    }
    Ok(())
}

/// Builds the source archive as published.
fn archive(tools: &Venv, log: &mut Log) -> Result<PathBuf> {
    let folder = empty(&repo::cache().join("wheels/sources"))?;
    let mut pack = command(tools.python(), ["-m", "maturin", "sdist"]);
    pack.args(["--manifest-path", "bindings-python/Cargo.toml", "--out"]);
    pack.arg(&folder);
    log.run(pack)?;
    only_file(&folder)
}

/// Builds the wheel as a user who installs the archive would, but with crates that are here already, in
/// the shared target folder.
fn from_archive(tools: &Venv, archive: &Path, log: &mut Log) -> Result<PathBuf> {
    let folder = empty(&repo::cache().join("wheels/from-sources"))?;
    let mut build = tools.pip(["wheel", "--quiet", "--no-deps", "--no-build-isolation"]);
    build
        .arg("--wheel-dir")
        .arg(&folder)
        .arg(archive)
        .env("MATURIN_PEP517_ARGS", "--profile dev --features abi3")
        .env("CARGO_TARGET_DIR", repo::target())
        .env("CARGO_NET_OFFLINE", "true")
        // pip finds the builder in PATH.
        .env("PATH", tools.path()?);
    log.run(build)?;
    only_file(&folder)
}

/// Installs a wheel into an empty environment, and runs the tests that need no other package.
fn alone(tools: &Venv, wheel: &Path, kind: Wheel, log: &mut Log) -> Result<()> {
    let folder = repo::cache()
        .join("python")
        .join(format!("alone-{}", kind.name()));
    let mut make = command(tools.python(), ["-m", "venv", "--clear", "--without-pip"]);
    make.arg(&folder);
    log.run(make)?;
    let python = folder.join("bin/python");
    let mut install = tools.pip(["--python"]);
    install
        .arg(&python)
        .args([
            "install",
            "--quiet",
            "--no-index",
            "--no-deps",
            "--no-compile",
        ])
        .arg(wheel);
    log.run(install)?;
    let mut list = tools.pip(["--python"]);
    list.arg(&python).args(["list", "--format=freeze"]);
    let installed = repo::output(list)?;
    ensure!(
        installed.lines().count() == 1,
        "not alone there: {installed}"
    );
    let said = repo::output(command(folder.join("bin/mcpbolt"), ["--version"]))?;
    ensure!(said.starts_with("mcpbolt "), "the command says {said:?}");
    // Outside the source folder, which would shadow the installed package.
    let mut test = command(&python, ["-I"]);
    test.arg(repo::root().join(ALONE)).current_dir(&folder);
    log.run(test)
}

fn empty(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    Ok(folder.to_owned())
}
