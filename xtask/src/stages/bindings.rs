//! Stages of the two packages and of everything that needs all languages built.

use anyhow::Result;

use crate::log::Log;
use crate::repo::command;
use crate::{diagnostic, node, python};

pub fn python(log: &mut Log) -> Result<()> {
    let venv = python::package(&mut |command| log.run(command))?;
    let folder = crate::repo::root().join("bindings-python");
    let mut tool = |args: &[&str]| {
        let mut command = command(venv.python(), args);
        command.current_dir(&folder);
        log.run(command)
    };
    tool(&["-m", "pytest", "-q", "-rs", "tests"])?;
    tool(&["-m", "mypy.stubtest", "mcpbolt._core"])?;
    tool(&["-m", "mypy", "--strict", "-p", "mcpbolt"])
}

pub fn node(log: &mut Log) -> Result<()> {
    node::package(&mut |command| log.run(command))?;
    log.run(node::npm(["test"]))?;
    log.run(node::npm(["run", "types"]))
}

pub fn interop(log: &mut Log) -> Result<()> {
    for language in diagnostic::Language::ALL {
        diagnostic::build(language, &mut |command| log.run(command))?;
    }
    log.run(command("python3", ["interop/run.py"]))
}
