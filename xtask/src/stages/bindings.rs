//! Stages of the two packages and of everything that needs all languages built.

use anyhow::Result;

use crate::diagnostic::Language;
use crate::log::Log;
use crate::repo::{self, Build, cargo, command};
use crate::{node, python};

pub fn python(log: &mut Log) -> Result<()> {
    test_python(Build::Checked, log)
}

pub fn node(log: &mut Log) -> Result<()> {
    test_node(Build::Checked, log)
}

/// Both, as users get them, with many more rounds where a leak would show.
pub fn release(log: &mut Log) -> Result<()> {
    test_python(Build::Release, log)?;
    test_node(Build::Release, log)
}

/// Calls of the leak tests of Python, a million of five kinds in all, and what multiplies the rounds of Node's, in a soak.
const LEAK_CALLS: &str = "400000";
const SOAK_TIMES: &str = "50";

fn test_python(how: Build, log: &mut Log) -> Result<()> {
    let venv = python::package(how, &mut |command| log.run(command))?;
    let tool = |args: &[&str]| {
        let mut command = command(venv.python(), args);
        command.current_dir(repo::root().join("bindings-python"));
        command
    };
    let mut test = tool(&["-m", "pytest", "-q", "-rs", "tests"]);
    match how {
        Build::Checked => log.trace(&mut test)?,
        Build::Release => drop(test.env("MCPBOLT_LEAK_CALLS", LEAK_CALLS)),
    }
    log.run(test)?;
    log.run(tool(&["-m", "mypy.stubtest", "mcpbolt._core"]))?;
    log.run(tool(&["-m", "mypy", "--strict", "-p", "mcpbolt"]))
}

fn test_node(how: Build, log: &mut Log) -> Result<()> {
    node::package(how, &mut |command| log.run(command))?;
    let mut test = node::npm(["test"]);
    match how {
        Build::Checked => log.trace(&mut test)?,
        Build::Release => drop(test.env("MCPBOLT_SOAK", SOAK_TIMES)),
    }
    log.run(test)?;
    log.run(node::npm(["run", "types"]))
}

pub fn interop(log: &mut Log) -> Result<()> {
    let mut run = command(python::interpreter(), ["interop/run.py"]);
    for language in Language::ALL {
        if language.source().exists() {
            run.args(["--server", language.name()]);
        } else {
            log.skip(&format!("there is no {} server yet", language.name()))?;
        }
    }
    log.run(run)
}

pub fn conformance(log: &mut Log) -> Result<()> {
    log.run(cargo("xtask conformance --required"))
}

pub fn demo(log: &mut Log) -> Result<()> {
    log.run(cargo("xtask demo --quick --debug"))
}
