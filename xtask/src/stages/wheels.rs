//! What a user of the Python package gets: wheels of both kinds, the source archive, and what runs
//! where nothing else is installed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::log::Log;
use crate::python::{self, Venv, Wheel, only_file};
use crate::repo::{self, Build, command};

/// The tests that need no other package.
const ALONE: &str = "bindings-python/tests/test_alone.py";

/// The wheel of this interpreter is built from the sources, the one of every interpreter from the
/// archive of them; each is installed alone, and tested there.
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

/// The sources, as they are published.
fn archive(tools: &Venv, log: &mut Log) -> Result<PathBuf> {
    let folder = empty(&repo::cache().join("wheels/sources"))?;
    let mut pack = command(tools.python(), ["-m", "maturin", "sdist"]);
    pack.args(["--manifest-path", "bindings-python/Cargo.toml", "--out"]);
    pack.arg(&folder);
    log.run(pack)?;
    only_file(&folder)
}

/// The wheel that who installs the archive builds: with crates that are here already, in the target
/// folder that all share.
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
        // pip starts the builder by its name.
        .env("PATH", tools.path()?);
    log.run(build)?;
    only_file(&folder)
}

/// Installs a wheel where there is nothing else, and runs there what needs nothing else.
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
        .args(["install", "--quiet", "--no-index", "--no-compile"])
        .arg(wheel);
    log.run(install)?;
    let mut list = tools.pip(["--python"]);
    list.arg(&python).args(["list", "--format=freeze"]);
    let installed = repo::output(list)?;
    ensure!(
        installed.lines().count() == 1,
        "not alone there: {installed}"
    );
    // Away from the sources, which would stand in for what is installed.
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
