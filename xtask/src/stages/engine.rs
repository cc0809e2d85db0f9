//! Stages of the Rust side.

use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::log::Log;
use crate::python::Venv;
use crate::repo::{self, cargo, command};
use crate::together::{self, FEATURED};

/// Packages that the engine without features must not depend on.
const FOREIGN: [&str; 7] = [
    "tokio",
    "hyper",
    "mio",
    "socket2",
    "rustix",
    "signal-hook",
    "libc",
];

pub fn fmt(log: &mut Log) -> Result<()> {
    log.run(cargo("fmt --all --check"))
}

/// Lints everything except the feature `peers` of the benches, whose libraries take long to compile.
pub fn clippy(log: &mut Log) -> Result<()> {
    let features = together::all_features()?;
    lint(
        &format!("--features mcpbolt-python/abi3,mcpbolt-benches/tables,{features}"),
        log,
    )
}

fn lint(features: &str, log: &mut Log) -> Result<()> {
    log.run(cargo(&format!(
        "clippy --workspace --all-targets {features} -- -D warnings"
    )))
}

pub fn sans_io(log: &mut Log) -> Result<()> {
    log.run(cargo("check -p mcpbolt --no-default-features"))?;
    let tree = repo::output(cargo(
        "tree -p mcpbolt --no-default-features --edges normal,build --prefix none --format {p}",
    ))?;
    let mut names = tree.lines().filter_map(|line| line.split(' ').next());
    if let Some(name) = names.find(|name| FOREIGN.contains(name)) {
        bail!("the engine alone depends on {name}:\n{tree}");
    }
    Ok(())
}

pub fn features(log: &mut Log) -> Result<()> {
    lint("--all-features", log)?;
    // Like `cargo check`, which cannot deny warnings.
    for package in FEATURED {
        for feature in together::features(package)? {
            log.run(cargo(&format!(
                "rustc -p {package} --lib --profile check --no-default-features --features {feature} -- -D warnings"
            )))?;
        }
    }
    Ok(())
}

/// Builds the programs that later stages test and start, each crate once.
pub fn build(log: &mut Log) -> Result<()> {
    log.run(together::tested("test --no-run")?)?;
    log.run(together::checked()?)
}

pub fn core(log: &mut Log) -> Result<()> {
    let codec = test_folder("core/codec", log, |_, _| Ok(()));
    let macros = test_folder("core/macros", log, |_, _| Ok(()));
    let oauth = test_folder("core/oauth", log, |_, _| Ok(()));
    let libraries = test_folder("interop/libraries", log, |_, _| Ok(()));
    let counterparts = test_folder("interop/counterparts", log, |_, _| Ok(()));
    let mut done = test_folder("core", log, Log::trace)
        .and(codec)
        .and(macros)
        .and(oauth)
        .and(libraries)
        .and(counterparts);
    let mut documented = together::tested("test --doc")?;
    log.trace(&mut documented)?;
    let documented = log.run(documented);
    if done.is_ok() {
        done = documented;
    }
    done
}

/// Runs all test programs of the package in a folder, each prepared by `with`. Returns the first failure.
pub fn test_folder(
    folder: &str,
    log: &mut Log,
    with: impl Fn(&Log, &mut Command) -> Result<()>,
) -> Result<()> {
    let folder = repo::root().join(folder);
    let programs = together::test_programs()?;
    let mut programs = programs
        .iter()
        .filter(|test| test.folder == folder)
        .peekable();
    ensure!(
        programs.peek().is_some(),
        "no tests in {}",
        folder.display()
    );
    let mut done = Ok(());
    for program in programs {
        let mut test = program.command();
        with(log, &mut test)?;
        let one = log.run(test);
        if done.is_ok() {
            done = one;
        }
    }
    done
}

pub fn tools(log: &mut Log) -> Result<()> {
    let quickly_built = "--config profile.dev.package.xtask.opt-level=0";
    let own = log.run(cargo(&format!(
        "test --no-fail-fast -p xtask {quickly_built} -- --show-output"
    )));
    test_folder("cli", log, |_, _| Ok(())).and(own)
}

/// Runs without optimisation, so that overflow and assertions are checked.
pub fn fuzz(log: &mut Log) -> Result<()> {
    replay(log, "5")
}

/// The same tests for minutes: 14 of them, two at a time.
pub fn fuzzing(log: &mut Log) -> Result<()> {
    replay(log, "120")
}

fn replay(log: &mut Log, seconds: &str) -> Result<()> {
    test_folder("fuzz", log, |_, test| {
        if std::env::var_os("MCPBOLT_FUZZ_SECONDS").is_none() {
            test.env("MCPBOLT_FUZZ_SECONDS", seconds);
        }
        Ok(())
    })
}

pub fn docs(log: &mut Log) -> Result<()> {
    let mut doc =
        cargo("doc -p mcpbolt-codec -p mcpbolt-oauth -p mcpbolt --all-features --no-deps");
    doc.env("RUSTDOCFLAGS", "-D warnings");
    log.run(doc)
}

pub fn guards(log: &mut Log) -> Result<()> {
    log.run(cargo("run --release -p mcpbolt-benches --bin instructions"))
}

/// Returns that valgrind, which counts instructions, is missing, if it is.
pub fn valgrind() -> Option<String> {
    missing("valgrind", "valgrind")
}

/// Returns that Redis is missing, if it is.
pub fn redis() -> Option<String> {
    missing("redis-server", "redis-server")
}

/// Returns that the linter of Prometheus is missing, if it is.
pub fn promtool() -> Option<String> {
    missing("promtool", "prometheus")
}

fn missing(program: &str, package: &str) -> Option<String> {
    let how = format!("{program} is not installed (Debian, Ubuntu: apt install {package})");
    (!repo::has(program)).then_some(how)
}

/// Runs the tests of the stores on the Redis that is installed, in place of the one that a package carries.
pub fn stores(log: &mut Log) -> Result<()> {
    let mut test = cargo("test -p mcpbolt --all-features --test store");
    test.env("REDIS_SERVER", "redis-server");
    log.run(test)
}

/// Resumes streams at other processes for minutes: 20,000 on each of the stores. Then 10,000 sessions are idle.
pub fn streams(log: &mut Log) -> Result<()> {
    let mut test = cargo("test -p mcpbolt --all-features --test store -- --show-output");
    test.args(["events::", "idle::"])
        .env("MCPBOLT_TRIALS", "20000");
    log.run(test)
}

/// Reads what the command shows for Prometheus by the parser of Prometheus's client library, and by its linter.
pub fn prometheus(log: &mut Log) -> Result<()> {
    log.run(cargo("build -p mcpbolt-cli --bin mcpbolt"))?;
    let folder = repo::root().join("cli/tests/prometheus");
    let requirements = folder.join("requirements.txt");
    let venv = Venv::open("prometheus", &requirements, &mut |command| log.run(command))?;
    let mut check = command(venv.python(), [folder.join("check.py")]);
    check.arg(repo::target().join("debug/mcpbolt"));
    log.run(check)
}
