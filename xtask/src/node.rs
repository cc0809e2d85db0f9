//! The Node side: npm's packages and our native module.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::python::Run;
use crate::repo::{self, Build, Stamp, command};
use crate::together;

/// npm, run in our package's folder.
pub fn npm<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut npm = command("npm", args);
    npm.current_dir(repo::root().join("bindings-node"));
    npm
}

/// Installs the package as users get it into a folder of its own below `.cache`, which later builds for
/// tests do not change. Returns that folder; a program in it can import the package.
pub fn installed() -> Result<PathBuf> {
    let package = repo::root().join("bindings-node");
    let folder = repo::cache().join("node/release");
    let to = folder.join("node_modules/mcpbolt");
    if to.exists() {
        std::fs::remove_dir_all(&to)?;
    }
    let folders = [
        "",
        "bin",
        "dist",
        "dist/engine",
        "dist/register",
        "dist/sdk",
    ];
    for within in folders {
        std::fs::create_dir_all(to.join(within))?;
        for entry in package.join(within).read_dir()? {
            let path = entry?.path();
            let place = path.strip_prefix(&package)?;
            let shown = place.to_string_lossy();
            let starts = [
                "package.json",
                "index.",
                "sdk.",
                "engine.",
                "register.",
                "unsupported.",
                "mcpbolt.",
                "bin/",
                "dist/",
            ];
            if path.is_file() && starts.iter().any(|start| shown.starts_with(start)) {
                std::fs::copy(&path, to.join(place))?;
            }
        }
    }
    Ok(folder)
}

/// Installs another release of Node from the registry, for tests. Returns its program.
pub fn other(version: &str, run: Run<'_>) -> Result<PathBuf> {
    let folder = repo::cache().join("node").join(version);
    let program = folder.join("node_modules/node/bin/node");
    if !program.exists() {
        std::fs::create_dir_all(&folder)?;
        let mut install = npm(["install", "--no-audit", "--no-fund", "--prefix"]);
        install.arg(&folder).arg(format!("node@{version}"));
        run(install)?;
    }
    Ok(program)
}

/// Builds our package: installs its dependencies from the lock file, and builds the native module and `dist`.
pub fn package(how: Build, run: Run<'_>) -> Result<()> {
    let folder = repo::root().join("bindings-node");
    let lock = std::fs::read_to_string(folder.join("package-lock.json"))?;
    let stamp = Stamp::new("node", lock);
    if !stamp.is_current() || !folder.join("node_modules").exists() {
        run(npm(["ci", "--no-audit", "--no-fund"]))?;
        stamp.write()?;
    }
    if how != Build::Checked {
        return run(npm(["run", "build"]));
    }
    run(together::checked()?)?;
    let mut build = command("node", ["bindings-node/scripts/build.mjs", "--built"]);
    build.arg(repo::target().join(how.folder()));
    run(build)
}
