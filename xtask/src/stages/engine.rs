//! Stages of the Rust side.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::log::Log;
use crate::repo::{self, cargo};

/// What the engine alone must not depend on.
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

pub fn clippy(log: &mut Log) -> Result<()> {
    log.run(cargo(
        "clippy --workspace --all-targets --all-features -- -D warnings",
    ))
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
    // As `cargo check`, which cannot be told to deny. All together, and every lint, are a stage before.
    let check = "rustc -p mcpbolt --lib --profile check --no-default-features";
    for feature in core_features()? {
        log.run(cargo(&format!(
            "{check} --features {feature} -- -D warnings"
        )))?;
    }
    Ok(())
}

/// The features of the crate but `default`.
fn core_features() -> Result<Vec<String>> {
    let text = repo::output(cargo("metadata --format-version 1 --no-deps"))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let packages = metadata["packages"].as_array();
    let core = packages
        .into_iter()
        .flatten()
        .find(|package| package["name"] == "mcpbolt");
    let Some(features) = core.and_then(|package| package["features"].as_object()) else {
        bail!("cargo metadata tells nothing of mcpbolt");
    };
    Ok(features
        .keys()
        .filter(|name| *name != "default")
        .cloned()
        .collect())
}

pub fn core(log: &mut Log) -> Result<()> {
    let mut test = cargo("test -p mcpbolt --all-features --no-fail-fast -- --show-output");
    log.trace(&mut test)?;
    log.run(test)
}

pub fn tools(log: &mut Log) -> Result<()> {
    // One after the other: together, what others wrote would have more features than anywhere else,
    // and be built once more.
    for package in ["xtask", "mcpbolt-cli"] {
        log.run(cargo(&format!(
            "test --no-fail-fast -p {package} -- --show-output"
        )))?;
    }
    Ok(())
}

/// Unoptimised but for the compiler's first level, so that overflow and assertions are checked.
pub fn fuzz(log: &mut Log) -> Result<()> {
    // With the engine as its own tests have it: it is built already.
    let mut test =
        cargo("test -p mcpbolt -p mcpbolt-fuzz --all-features --test replay -- --show-output");
    if std::env::var_os("MCPBOLT_FUZZ_SECONDS").is_none() {
        test.env("MCPBOLT_FUZZ_SECONDS", "5");
    }
    log.run(test)
}

pub fn docs(log: &mut Log) -> Result<()> {
    let mut doc = cargo("doc -p mcpbolt --all-features --no-deps");
    doc.env("RUSTDOCFLAGS", "-D warnings");
    log.run(doc)
}

pub fn guards(log: &mut Log) -> Result<()> {
    if !repo::has("valgrind") {
        return log.skip("instruction counts: valgrind is not installed");
    }
    log.run(cargo("run --release -p mcpbolt-benches --bin instructions"))
}
