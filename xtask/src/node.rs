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
        "dist/command",
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
                "testing.",
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

/// The names of the package's test files, without `.test.mjs`.
pub fn tests() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in repo::root().join("bindings-node/test").read_dir()? {
        let name = entry?.file_name();
        names.extend(
            name.to_string_lossy()
                .strip_suffix(".test.mjs")
                .map(str::to_owned),
        );
    }
    names.sort();
    Ok(names)
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

/// Lays out the tests of our package, in a folder of their own, beside these releases of the SDKs. Returns that folder.
pub fn beside(first: &str, second: &str, run: Run<'_>) -> Result<PathBuf> {
    let package = repo::root().join("bindings-node");
    let folder = repo::cache().join(format!("node/beside/{first}-{second}"));
    std::fs::create_dir_all(&folder)?;
    let packages = [
        format!("@modelcontextprotocol/sdk@{first}"),
        format!("@modelcontextprotocol/server@{second}"),
        // Its class for `node:http`; later releases need a later server.
        "@modelcontextprotocol/node@2.0.0".to_owned(),
        "zod@4.1.13".to_owned(),
        "express@5.3.0".to_owned(),
        "hono@4.13.19".to_owned(),
        "@hono/node-server@1.19.19".to_owned(),
    ];
    let stamp = Stamp::new(
        &format!("node-beside-{first}-{second}"),
        packages.join("\n"),
    );
    if !stamp.is_current() || !folder.join("node_modules").exists() {
        let mut install = npm([
            "install",
            "--no-audit",
            "--no-fund",
            "--no-save",
            "--prefix",
        ]);
        install.arg(&folder).args(packages);
        run(install)?;
        stamp.write()?;
    }
    // The tests are copied, since they import what lies beside them; the package itself is linked.
    let tests = folder.join("test");
    if tests.exists() {
        std::fs::remove_dir_all(&tests)?;
    }
    std::fs::create_dir_all(&tests)?;
    for entry in package.join("test").read_dir()? {
        let path = entry?.path();
        if path.is_file() {
            std::fs::copy(&path, tests.join(path.file_name().unwrap_or_default()))?;
        }
    }
    std::fs::copy(package.join("package.json"), folder.join("package.json"))?;
    let module = together::module_of_node()?;
    for name in [
        "bin",
        "dist",
        "index.mjs",
        "register.mjs",
        "sdk.mjs",
        &module,
    ] {
        let link = folder.join(name);
        if link.symlink_metadata().is_err() {
            std::os::unix::fs::symlink(package.join(name), link)?;
        }
    }
    Ok(folder)
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
