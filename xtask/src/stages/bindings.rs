//! Stages of the two packages and of everything that needs all languages built.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::engine::test_folder;

use crate::log::Log;
use crate::python::{Venv, Wheel};
use crate::repo::{self, Build, cargo, command};
use crate::{node, python};

pub fn python(log: &mut Log) -> Result<()> {
    let workers = test_folder("bindings-python", log, |_, _| Ok(()));
    test_python(Build::Checked, log).and(workers)
}

pub fn node(log: &mut Log) -> Result<()> {
    test_node(Build::Checked, log)
}

/// Tests the Python package as users get it.
pub fn release_python(log: &mut Log) -> Result<()> {
    test_python(Build::Release, log)
}

/// Tests the Node package as users get it, with many more rounds in tests that detect leaks.
pub fn release_node(log: &mut Log) -> Result<()> {
    test_node(Build::Release, log)
}

/// The default of `MCPBOLT_LEAK_CALLS` for Python's leak tests: a million calls in total, of five kinds.
/// `SOAK_TIMES` is the default of `MCPBOLT_SOAK`, which multiplies the rounds of Node's leak tests: also
/// a million calls.
const LEAK_CALLS: &str = "400000";
const SOAK_TIMES: &str = "100";
const SOAK_VARIABLE: &str = "MCPBOLT_SOAK";

/// The oldest release of Node that the package supports (`engines` in its package.json), the first with `module.register`;
/// and the newest of the next long-term line, whose `module.registerHooks` works beside hooks on a thread.
const OTHER_NODES: [&str; 2] = ["20.6.0", "22"];

/// The tests under runners of tests: in Node 20.6, the hook after a whole file waits for the end of the process.
const UNDER_RUNNERS: [&str; 1] = ["testing"];

/// Releases that load modules in other ways: the first of that line, and the first with `module.registerHooks`; and the
/// tests of what watches them.
const OTHER_LOADERS: [&str; 2] = ["22.0.0", "22.15.0"];
const OF_LOADERS: [&str; 3] = ["exec", "private", "register"];

/// Only the leak tests, with all their calls.
pub fn python_leaks(log: &mut Log) -> Result<()> {
    log.longest = Duration::from_secs(3 * 60 * 60);
    let venv = python::package(Build::Release, &mut |command| log.run(command))?;
    let tests = [
        "-m",
        "pytest",
        "-q",
        "-s",
        "tests/test_leaks.py",
        "tests/test_lives.py",
    ];
    let mut test = in_package(&venv, &tests);
    if std::env::var_os(LEAK_VARIABLE).is_none() {
        test.env(LEAK_VARIABLE, LEAK_CALLS);
    }
    log.run(test)
}

/// Only Node's leak tests, with all their calls.
pub fn node_leaks(log: &mut Log) -> Result<()> {
    log.longest = Duration::from_secs(3 * 60 * 60);
    node::package(Build::Release, &mut |command| log.run(command))?;
    let tests = [
        "--test",
        "--test-concurrency=1",
        "test/soak.test.mjs",
        "test/lives.test.mjs",
    ];
    let mut test = command("node", tests);
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
    // The names of the tests that pass are for the stage `requirements`.
    let mut test = in_package(&venv, &["-m", "pytest", "-q", "-rfEsp", "tests"]);
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

/// The tests of the package, with event loops that are woken by threads instead of descriptors, as on other systems.
pub fn portable(log: &mut Log) -> Result<()> {
    let venv = python::package(Build::Checked, &mut |command| log.run(command))?;
    let mut test = in_package(&venv, &["-m", "pytest", "-q", "-rfEsp", "tests"]);
    test.env("MCPBOLT_PORTABLE_WAKEUPS", "1");
    log.run(test)
}

/// The tests beside the SDK and FastMCP, which do not support all these interpreters, and those of tools.
const BESIDE_OTHERS: &[&str] = &[
    "test_asgi.py",
    "test_carried.py",
    "test_chain.py",
    "test_exec.py",
    "test_exec_http.py",
    "test_existing.py",
    "test_existing_http.py",
    "test_existing_parts.py",
    "test_existing_releases.py",
    "test_gate.py",
    "test_http.py",
    "test_joined.py",
    "test_mounted.py",
    "test_observed.py",
    "test_owners.py",
    "test_private.py",
    "test_published.py",
    "test_readme.py",
    "test_run.py",
    "test_sdk.py",
    "test_sdk_client.py",
    "test_sdk_http_client.py",
    "test_types.py",
    "test_typing.py",
    "test_verifier.py",
];

/// The tests of the package that need neither the SDK nor FastMCP, with the other interpreters of this machine.
pub fn interpreters(log: &mut Log) -> Result<()> {
    let run = &mut |command| log.run(command);
    let tools = python::tools(Build::Checked, run)?;
    let wheel = python::wheel(&tools, Build::Checked, Wheel::Abi3, run)?;
    let requirements = repo::root().join("bindings-python/requirements-interpreters.txt");
    for (version, interpreter) in python::others() {
        let venv = Venv::open_with(&format!("on-{version}"), &interpreter, &requirements, run)?;
        let mut install = venv.pip(["install", "--quiet", "--no-deps", "--force-reinstall"]);
        install.arg(&wheel);
        run(install)?;
        let mut test = in_package(&venv, &["-m", "pytest", "-q", "-rfE", "tests"]);
        for name in BESIDE_OTHERS {
            test.arg(format!("--ignore=tests/{name}"));
        }
        run(test)?;
    }
    Ok(())
}

/// Returns that an interpreter is missing, if it is.
pub fn other_interpreters() -> Option<String> {
    let found = python::others();
    let missing = python::OTHERS
        .iter()
        .filter(|version| !found.iter().any(|(own, _)| own == *version));
    let missing: Vec<_> = missing.map(|version| format!("python{version}")).collect();
    (!missing.is_empty()).then(|| format!("no {} in PATH or in ~/.pyenv", missing.join(", ")))
}

/// Tests the support of other packages' servers and clients with their previous releases, and with an
/// unknown release, under which they must be left unchanged.
pub fn versions(log: &mut Log) -> Result<()> {
    let venv = python::package(Build::Checked, &mut |command| log.run(command))?;
    for (name, packages, tests) in RELEASES {
        let run = &mut |command| log.run(command);
        let mut packages = packages.to_vec();
        if tests == CARRIED {
            packages.extend(FORMER);
        }
        let folder = python::releases(&venv, name, &packages, run)?;
        let mut test = in_package(&venv, &["-m", "pytest", "-q", "-rs"]);
        test.args(tests).env("PYTHONPATH", folder);
        log.run(test)?;
    }
    Ok(())
}

/// The number of signatures that the tests of types generate; the stage `python` generates fewer.
const SIGNATURES: &str = "2000";

/// Holds generated signatures, arguments and results against pydantic and FastMCP, and runs what FastMCP and the
/// official SDK test of their function tools.
pub fn types(log: &mut Log) -> Result<()> {
    let venv = python::package(Build::Checked, &mut |command| log.run(command))?;
    let mut test = in_package(&venv, &["-m", "pytest", "-q", "-s", "tests/test_types.py"]);
    test.env("MCPBOLT_SIGNATURES", SIGNATURES);
    log.run(test)?;
    log.run(in_package(&venv, &["tests/translated/run.py"]))
}

/// Tests published servers, each in an environment of its own.
pub fn published(log: &mut Log) -> Result<()> {
    log.longest = Duration::from_secs(60 * 60);
    let venv = python::package(Build::Checked, &mut |command| log.run(command))?;
    let mut test = in_package(
        &venv,
        &["-m", "pytest", "-q", "-rs", "tests/test_published.py"],
    );
    test.env("MCPBOLT_PUBLISHED", "all");
    log.run(test)
}

/// For each set of releases: its name, the packages that override the environment's, and the tests to run. Together
/// they are the table in `bindings-python/python/mcpbolt/mcp/_gate.py`, apart from the environment's own releases.
const RELEASES: [(&str, &[&str], &[&str]); 7] = [
    (
        "before",
        &[
            "mcp==2.2.0",
            "mcp-types==2.2.0",
            "fastmcp==4.0.11",
            "fastmcp-slim==4.0.11",
        ],
        ACCELERATED,
    ),
    (
        "fastmcp-4.1",
        &["fastmcp==4.1.7", "fastmcp-slim==4.1.7"],
        ACCELERATED,
    ),
    (
        "unknown",
        &["mcp==2.1.1", "mcp-types==2.1.1"],
        &["tests/unknown_release.py"],
    ),
    ("mcp-1.27", &["mcp==1.27.2", "fastmcp==3.2.4"], CARRIED),
    (
        "mcp-1.28",
        &["mcp==1.28.1", "fastmcp==3.3.1", "fastmcp-slim==3.3.1"],
        CARRIED,
    ),
    (
        "mcp-1.29",
        &["mcp==1.29.1", "fastmcp==3.4.11", "fastmcp-slim==3.4.11"],
        CARRIED,
    ),
    (
        "mcp-1.30",
        &["mcp==1.30.0", "fastmcp==3.4.11", "fastmcp-slim==3.4.11"],
        CARRIED,
    ),
];

/// The tests beside releases that are accelerated.
const ACCELERATED: &[&str] = &[
    "tests/test_existing.py",
    "tests/test_existing_parts.py",
    "tests/test_exec.py",
    "tests/test_observed.py",
    "tests/test_private.py",
    "tests/test_run.py",
    "tests/test_sdk.py",
    "tests/test_sdk_client.py",
    "tests/test_sdk_http_client.py",
];

/// The tests beside releases whose messages the engine carries.
const CARRIED: &[&str] = &["tests/carried_release.py"];

/// What the environment lacks for those releases.
const FORMER: [&str; 14] = [
    "backports.tarfile==1.2.0",
    "httpcore==1.0.9",
    "httpx==0.28.1",
    "httpx-sse==0.4.3",
    "importlib_metadata==10.2.0",
    "jaraco.classes==3.4.0",
    "jaraco.context==6.1.2",
    "jaraco.functools==4.6.0",
    "jeepney==0.9.0",
    "keyring==25.7.0",
    "lazy-importer==0.1.0",
    "more-itertools==11.2.1",
    "SecretStorage==3.5.0",
    "zipp==4.1.2",
];

fn test_node(how: Build, log: &mut Log) -> Result<()> {
    node::package(how, &mut |command| log.run(command))?;
    let mut test = node::npm(["test"]);
    match how {
        Build::Checked => log.trace(&mut test)?,
        Build::Release | Build::Demo => drop(test.env(SOAK_VARIABLE, SOAK_TIMES)),
    }
    log.run(test)?;
    log.run(node::npm(["run", "types"]))
}

/// Runs the tests of the package with other releases of Node.
pub fn node_versions(log: &mut Log) -> Result<()> {
    log.longest = Duration::from_secs(60 * 60);
    node::package(Build::Checked, &mut |command| log.run(command))?;
    let all = node::tests()?;
    let of_runtime: Vec<_> = all
        .iter()
        .filter(|name| !UNDER_RUNNERS.contains(&name.as_str()))
        .cloned()
        .collect();
    let of_loaders = OF_LOADERS.map(str::to_owned).to_vec();
    let whole = OTHER_NODES.map(|version| (version, of_runtime.clone()));
    let loaders = OTHER_LOADERS.map(|version| (version, of_loaders.clone()));
    for (version, names) in whole.into_iter().chain(loaders) {
        let program = node::other(version, &mut |command| log.run(command))?;
        // Node 20.6 has no option for the number of files at a time.
        let mut test = command(program, ["--test"]);
        test.current_dir(repo::root().join("bindings-node"));
        test.args(names.iter().map(|name| format!("test/{name}.test.mjs")));
        log.run(test)?;
    }
    Ok(())
}

/// Runs what the official SDK tests of tools, schemas and results, on its servers as the engine serves them.
pub fn translated_node(log: &mut Log) -> Result<()> {
    node::package(Build::Checked, &mut |command| log.run(command))?;
    log.run(command("node", ["bindings-node/test/translated/run.mjs"]))
}

/// Returns why the tests of the official SDK cannot run: no package of npm has them, so they need a clone.
pub fn clone_of_sdk() -> Option<String> {
    let is_set = std::env::var_os("MCPBOLT_TYPESCRIPT_SDK").is_some();
    let missing = "no MCPBOLT_TYPESCRIPT_SDK, a clone of github.com/modelcontextprotocol/typescript-sdk with its tags";
    (!is_set).then(|| missing.to_owned())
}

/// Tests the servers that others have published on npm, each in a folder of its own.
pub fn published_node(log: &mut Log) -> Result<()> {
    log.longest = Duration::from_secs(60 * 60);
    node::package(Build::Checked, &mut |command| log.run(command))?;
    let mut test = command("node", ["--test", "test/published/published.test.mjs"]);
    test.current_dir(repo::root().join("bindings-node"));
    log.run(test)
}

/// Tests a gateway before servers that others have published.
pub fn published_gateway(log: &mut Log) -> Result<()> {
    log.run(cargo("build -p mcpbolt-cli --bin mcpbolt"))?;
    let program = ["interop/gateway/published.py"];
    log.run(command(repo::interpreter(), program))
}

/// The newest of each minor release of the SDKs in `bindings-node/face/sdk/gate.ts`, in pairs, apart from those of the
/// package's own tests; and the tests beside them.
const SDKS_OF_NODE: [(&str, &str, &[&str]); 12] = [
    ("1.20.2", "2.0.0", CARRIED_IN_NODE),
    ("1.21.2", "2.0.0", CARRIED_IN_NODE),
    ("1.22.0", "2.0.0", CARRIED_IN_NODE),
    ("1.23.1", "2.0.0", CARRIED_IN_NODE),
    ("1.24.3", "2.0.0", ACCELERATED_IN_NODE),
    ("1.25.3", "2.1.0", ACCELERATED_IN_NODE),
    ("1.26.0", "2.2.0", ACCELERATED_IN_NODE),
    ("1.27.1", "2.3.1", ACCELERATED_IN_NODE),
    ("1.28.0", "2.0.0", ACCELERATED_IN_NODE),
    ("1.29.0", "2.0.0", ACCELERATED_IN_NODE),
    ("1.30.1", "2.0.0", ACCELERATED_IN_NODE),
    ("1.31.0", "2.0.0", ACCELERATED_IN_NODE),
];
const CARRIED_IN_NODE: &[&str] = &["carried"];
const ACCELERATED_IN_NODE: &[&str] = &[
    "accelerate",
    "carried",
    "equal",
    "exec",
    "exec-ends",
    "exec-http",
    "private",
];

/// Tests the Node package beside other releases of the SDKs.
pub fn versions_node(log: &mut Log) -> Result<()> {
    node::package(Build::Checked, &mut |command| log.run(command))?;
    for (first, second, names) in SDKS_OF_NODE {
        let folder = node::beside(first, second, &mut |command| log.run(command))?;
        let mut test = command("node", ["--test", "--test-concurrency=3"]);
        test.current_dir(folder);
        test.args(names.iter().map(|name| format!("test/{name}.test.mjs")));
        log.run(test)?;
    }
    Ok(())
}

pub fn interop(log: &mut Log) -> Result<()> {
    log.run(command(repo::interpreter(), ["interop/run.py"]))
}

/// Tests the gateway with a thousand clients, with servers that fail, and with a million calls.
pub fn gateway(log: &mut Log) -> Result<()> {
    log.run(cargo("build --release -p mcpbolt-cli --bins --examples"))?;
    // A file of settings is looked at once a second.
    log.longest = Duration::from_secs(60 * 60);
    for scene in ["crowd", "faults"] {
        let program = ["interop/gateway/run.py", "--deep", "--only", scene];
        log.run(command(repo::interpreter(), program))?;
    }
    Ok(())
}

/// Tests a page in a browser.
pub fn pages(log: &mut Log) -> Result<()> {
    log.run(command(repo::interpreter(), ["interop/run.py", "--pages"]))
}

/// Returns what the browser test lacks, if anything. As root with apt-get, the stage installs a browser
/// when it begins.
pub fn browser() -> Option<String> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let may_install = nix::unistd::geteuid().is_root() && repo::has("apt-get");
    let missing = "no browser (Debian, Ubuntu: apt install chromium)";
    (!may_install && !names.iter().any(|name| repo::has(name))).then(|| missing.to_owned())
}

pub fn conformance(log: &mut Log) -> Result<()> {
    log.run(cargo("xtask conformance --required"))?;
    for through in ["proxy", "gateway"] {
        let required = "xtask conformance --required --lang rust --through";
        log.run(cargo(&format!("{required} {through}")))?;
    }
    Ok(())
}

pub fn demo(log: &mut Log) -> Result<()> {
    log.run(cargo("xtask demo --quick --debug"))
}

pub fn attacks(log: &mut Log) -> Result<()> {
    log.run(cargo("xtask attacks --debug"))?;
    log.run(cargo("xtask tokens --debug"))
}
