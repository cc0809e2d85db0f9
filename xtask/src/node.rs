//! The Node side: npm's packages and our native module.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::Result;

use crate::python::Run;
use crate::repo::{self, Build, Stamp, command};

/// npm, run in our package's folder.
pub fn npm<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut npm = command("npm", args);
    npm.current_dir(repo::root().join("bindings-node"));
    npm
}

/// Our package: what it needs installed as its lock file says, the native module built.
pub fn package(how: Build, run: Run<'_>) -> Result<()> {
    let folder = repo::root().join("bindings-node");
    let lock = std::fs::read_to_string(folder.join("package-lock.json"))?;
    let stamp = Stamp::new("node", lock);
    if !stamp.is_current() || !folder.join("node_modules").exists() {
        run(npm(["ci", "--no-audit", "--no-fund"]))?;
        stamp.write()?;
    }
    run(match how {
        Build::Checked => npm(["run", "build", "--", "--debug"]),
        Build::Release => npm(["run", "build"]),
    })
}
