//! Stages about what a user of the crate gets.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::readme::block;
use crate::log::Log;
use crate::repo::{self, cargo, command};

/// Packs the crate, unpacks it, and builds the README's Rust programs against it as an empty
/// project would.
pub fn package(log: &mut Log) -> Result<()> {
    programs(log).map(drop)
}

/// The same; the README's server and client, built.
pub fn programs(log: &mut Log) -> Result<(PathBuf, PathBuf)> {
    let packed = unpacked(log)?;
    let project = repo::cache().join("readme/rust");
    let made = repo::target().join("debug");
    let binary = made.join("server").display().to_string();
    let text = fs::read_to_string(repo::root().join("README.md"))?;
    let (server, client) = (block(&text, "rust", 0)?, block(&text, "rust", 1)?);
    ensure!(
        client.contains("path/to/server"),
        "the client starts no path/to/server"
    );
    fs::create_dir_all(project.join("src/bin"))?;
    fs::write(project.join("src/bin/server.rs"), server)?;
    fs::write(
        project.join("src/bin/client.rs"),
        client.replace("path/to/server", &binary),
    )?;
    let dependencies = format!(
        "mcpbolt = {{ path = {packed:?} }}\nschemars = \"1\"\nserde = {{ version = \"1\", features = [\"derive\"] }}\nserde_json = \"1\""
    );
    build_user(&project, &dependencies, log)?;
    Ok((made.join("server"), made.join("client")))
}

/// The crate as it would be published. One that is what it was stays untouched, and so built.
fn unpacked(log: &mut Log) -> Result<PathBuf> {
    log.run(cargo("package -p mcpbolt --allow-dirty --no-verify"))?;
    let name = format!("mcpbolt-{}", repo::workspace_value("version")?);
    let file = format!("{name}.crate");
    let packed = repo::target().join("package").join(&file);
    let folder = repo::cache().join("package");
    let (bytes, before) = (fs::read(&packed)?, folder.join(&file));
    if fs::read(&before).is_ok_and(|old| old == bytes) {
        return Ok(folder.join(name));
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut unpack = command("tar", ["-xzf"]);
    unpack.arg(&packed).arg("-C").arg(&folder);
    log.run(unpack)?;
    fs::write(before, bytes)?;
    Ok(folder.join(name))
}

/// Builds a project that is none of this workspace. It gets this one's versions and profiles, so
/// that what others wrote is built once for all.
fn build_user(project: &Path, dependencies: &str, log: &mut Log) -> Result<()> {
    let own = fs::read_to_string(repo::root().join("Cargo.toml"))?;
    let profiles = own.find("[profile.").and_then(|at| own.get(at..));
    let profiles = profiles.context("no profiles in Cargo.toml")?;
    let manifest = format!(
        "[package]\nname = \"project\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}\n\n[workspace]\n\n{profiles}"
    );
    fs::write(project.join("Cargo.toml"), manifest)?;
    fs::copy(repo::root().join("Cargo.lock"), project.join("Cargo.lock"))?;
    let mut build = cargo("build");
    build
        .current_dir(project)
        .env("CARGO_TARGET_DIR", repo::target());
    log.run(build)
}

/// The whole run is the test when this toolchain is the promised one; otherwise an installed
/// toolchain of that version checks the crate.
pub fn msrv(log: &mut Log) -> Result<()> {
    let promised = repo::workspace_value("rust-version")?;
    let text = repo::output(command("rustc", ["--version"]))?;
    let here = text.split(' ').nth(1).context("rustc --version")?;
    if same_minor(here, &promised) {
        return log.line(&format!(
            "this is Rust {here}: every other stage is the test"
        ));
    }
    if minor(here) < minor(&promised) {
        bail!("Rust {promised} is needed, this is {here}");
    }
    let installed = repo::output(command("rustup", ["toolchain", "list"])).unwrap_or_default();
    let names = installed.lines().filter_map(|line| line.split(' ').next());
    let is_promised = |name: &&str| {
        let version = name.split('-').next().unwrap_or_default();
        version == promised
            || version
                .strip_prefix(&promised)
                .is_some_and(|rest| rest.starts_with('.'))
    };
    let Some(toolchain) = names.into_iter().find(is_promised) else {
        return log.skip(&format!("Rust {promised} is not installed, this is {here}"));
    };
    let toolchain = format!("+{toolchain}");
    let check = ["check", "--workspace", "--all-features"];
    let mut command = command("cargo", [toolchain.as_str()].iter().chain(&check));
    command
        .env_remove("RUSTUP_TOOLCHAIN")
        .env("CARGO_TARGET_DIR", repo::target().join("msrv"));
    log.run(command)
}

fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

fn same_minor(a: &str, b: &str) -> bool {
    minor(a).is_some() && minor(a) == minor(b)
}
