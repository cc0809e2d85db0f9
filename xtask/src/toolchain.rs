//! The minimum supported toolchain: the `rust-version` of Cargo.toml, as rustup has it.

use std::process::Command;

use anyhow::{Context, Result};

use crate::repo::{self, command};

/// A cargo command of the minimum supported toolchain, which builds in a folder of its own.
pub fn promised_cargo(line: &str) -> Result<Command> {
    let toolchain = format!("+{}", promised()?.context("rustup toolchain list")?);
    let words = [toolchain.as_str()].into_iter().chain(line.split(' '));
    let mut command = command("cargo", words);
    command
        .env_remove("RUSTUP_TOOLCHAIN")
        .env("CARGO_TARGET_DIR", repo::target().join("msrv"));
    Ok(command)
}

/// Returns what is missing to use the minimum supported toolchain, if anything.
pub fn missing() -> Option<String> {
    let version = repo::workspace_value("rust-version").unwrap_or_default();
    let missing = format!("Rust {version} is not installed (rustup toolchain install {version})");
    (!matches!(promised(), Ok(Some(_)))).then_some(missing)
}

/// rustup's name of the toolchain with the `rust-version` of Cargo.toml, if it is installed.
fn promised() -> Result<Option<String>> {
    let promised = repo::workspace_value("rust-version")?;
    let installed = repo::output(command("rustup", ["toolchain", "list", "--verbose"]))?;
    let found = installed.lines().find_map(|line| {
        let name = line.split_whitespace().next()?;
        let toolchain = format!("+{name}");
        let version = repo::output(command("rustc", [&*toolchain, "--version"])).ok()?;
        let is_promised = same_minor(version.split(' ').nth(1)?, &promised);
        is_promised.then(|| name.to_owned())
    });
    Ok(found)
}

fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

fn same_minor(a: &str, b: &str) -> bool {
    minor(a).is_some() && minor(a) == minor(b)
}
