//! Stages of the two packages and of everything that needs all languages built.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::diagnostic::Language;
use crate::log::Log;
use crate::python::Venv;
use crate::repo::{self, Build, cargo, command};
use crate::{node, python};

pub fn python(log: &mut Log) -> Result<()> {
    test_python(Build::Checked, log)
}

pub fn node(log: &mut Log) -> Result<()> {
    test_node(Build::Checked, log)
}

/// As users get it.
pub fn release_python(log: &mut Log) -> Result<()> {
    test_python(Build::Release, log)
}

/// The same for Node, with many more rounds where a leak would show.
pub fn release_node(log: &mut Log) -> Result<()> {
    test_node(Build::Release, log)
}

/// Calls of Python's leak tests, a million of five kinds in all where `MCPBOLT_LEAK_CALLS` does not say
/// otherwise; and what multiplies the rounds of Node's, a million calls, too, where `MCPBOLT_SOAK`
/// does not say otherwise.
const LEAK_CALLS: &str = "400000";
const SOAK_TIMES: &str = "100";
const SOAK_VARIABLE: &str = "MCPBOLT_SOAK";

/// The release of Node beside the system's, and what is tried with it: what leans on the runtime
/// itself, its loop, its stacks, its streams and its HTTP, its signals and threads.
const OTHER_NODE: &str = "22";
const WITH_OTHER_NODE: [&str; 14] = [
    "accelerate",
    "asking",
    "carriers",
    "client",
    "endpoint",
    "engine",
    "http",
    "module",
    "numbers",
    "server",
    "signals",
    "tasks",
    "transports",
    "web",
];

/// Only the leak tests, with all their calls.
pub fn python_leaks(log: &mut Log) -> Result<()> {
    log.longest = Duration::from_secs(3 * 60 * 60);
    let venv = python::package(Build::Release, &mut |command| log.run(command))?;
    let mut test = in_package(&venv, &["-m", "pytest", "-q", "-s", "tests/test_leaks.py"]);
    if std::env::var_os(LEAK_VARIABLE).is_none() {
        test.env(LEAK_VARIABLE, LEAK_CALLS);
    }
    log.run(test)
}

/// The same for Node.
pub fn node_leaks(log: &mut Log) -> Result<()> {
    log.longest = Duration::from_secs(3 * 60 * 60);
    node::package(Build::Release, &mut |command| log.run(command))?;
    let mut test = command("node", ["--test", "test/soak.test.mjs"]);
    test.current_dir(repo::root().join("bindings-node"));
    if std::env::var_os(SOAK_VARIABLE).is_none() {
        test.env(SOAK_VARIABLE, SOAK_TIMES);
    }
    log.run(test)
}

const LEAK_VARIABLE: &str = "MCPBOLT_LEAK_CALLS";

fn in_package(venv: &Venv, args: &[&str]) -> Command {
    let mut command = command(venv.python(), args);
    command.current_dir(repo::root().join("bindings-python"));
    command
}

fn test_python(how: Build, log: &mut Log) -> Result<()> {
    let venv = python::package(how, &mut |command| log.run(command))?;
    let mut test = in_package(&venv, &["-m", "pytest", "-q", "-rs", "tests"]);
    if how == Build::Checked {
        log.trace(&mut test)?;
    }
    log.run(test)?;
    log.run(in_package(&venv, &["-m", "mypy.stubtest", "mcpbolt._core"]))?;
    log.run(in_package(
        &venv,
        &["-m", "mypy", "--strict", "-p", "mcpbolt"],
    ))
}

/// What is done with servers and clients of others, beside the releases before those that the package
/// is built with; and beside one that is not known, where they are left as they are.
pub fn versions(log: &mut Log) -> Result<()> {
    let venv = python::package(Build::Checked, &mut |command| log.run(command))?;
    for (name, packages, tests) in RELEASES {
        let run = &mut |command| log.run(command);
        let folder = python::releases(&venv, name, packages, run)?;
        let mut test = in_package(&venv, &["-m", "pytest", "-q", "-rs"]);
        test.args(tests).env("PYTHONPATH", folder);
        log.run(test)?;
    }
    Ok(())
}

/// What is put in front of the packages of the environment, and the tests that are run then.
const RELEASES: [(&str, &[&str], &[&str]); 2] = [
    (
        "before",
        &[
            "mcp==2.2.0",
            "mcp-types==2.2.0",
            "fastmcp==4.0.11",
            "fastmcp-slim==4.0.11",
        ],
        &[
            "tests/test_existing.py",
            "tests/test_existing_parts.py",
            "tests/test_run.py",
            "tests/test_sdk.py",
            "tests/test_sdk_client.py",
            "tests/test_sdk_http_client.py",
        ],
    ),
    (
        "unknown",
        &["mcp==2.1.1", "mcp-types==2.1.1"],
        &["tests/unknown_release.py"],
    ),
];

fn test_node(how: Build, log: &mut Log) -> Result<()> {
    node::package(how, &mut |command| log.run(command))?;
    let mut test = node::npm(["test"]);
    match how {
        Build::Checked => log.trace(&mut test)?,
        Build::Release => drop(test.env(SOAK_VARIABLE, SOAK_TIMES)),
    }
    log.run(test)?;
    log.run(node::npm(["run", "types"]))?;
    test_other_node(log)
}

/// The tests of what leans on Node, with another release of it.
fn test_other_node(log: &mut Log) -> Result<()> {
    let program = node::other(OTHER_NODE, &mut |command| log.run(command))?;
    let mut test = command(program, ["--test", "--test-concurrency=3"]);
    test.current_dir(repo::root().join("bindings-node"));
    test.args(WITH_OTHER_NODE.map(|name| format!("test/{name}.test.mjs")));
    log.run(test)
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
