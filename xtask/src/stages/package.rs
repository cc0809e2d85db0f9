//! Stages that test the crate as its users get it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::readme::block;
use crate::log::Log;
use crate::repo::{self, cargo, command};
use crate::toolchain;

/// Packs the crates, unpacks them, and builds the README's Rust programs against it as an empty
/// project would.
pub fn package(log: &mut Log) -> Result<()> {
    programs(log).map(drop)
}

/// Does the same, and returns the built programs: the README's server and client.
pub fn programs(log: &mut Log) -> Result<(PathBuf, PathBuf)> {
    let [codec, macros, oauth, packed] = unpacked(log)?;
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
        "mcpbolt = {{ path = {packed:?} }}\nschemars = \"1\"\nserde = {{ version = \"1\", features = [\"derive\"] }}\nserde_json = \"1\"\n\n[patch.crates-io]\nmcpbolt-codec = {{ path = {codec:?} }}\nmcpbolt-macros = {{ path = {macros:?} }}\nmcpbolt-oauth = {{ path = {oauth:?} }}"
    );
    build_user(&project, &dependencies, log)?;
    Ok((made.join("server"), made.join("client")))
}

/// Unpacks the crates as they would be published, and returns the folder of each. Unchanged crates
/// are left untouched, so that cargo does not rebuild them.
fn unpacked(log: &mut Log) -> Result<[PathBuf; 4]> {
    log.run(cargo(
        "package -p mcpbolt-codec -p mcpbolt-macros -p mcpbolt-oauth -p mcpbolt --allow-dirty --no-verify",
    ))?;
    let version = repo::workspace_value("version")?;
    let folder = repo::cache().join("package");
    fs::create_dir_all(&folder)?;
    let unpack = |name: &str, log: &mut Log| -> Result<PathBuf> {
        let name = format!("{name}-{version}");
        let file = format!("{name}.crate");
        let packed = repo::target().join("package").join(&file);
        let (own, before) = (folder.join(&name), folder.join(&file));
        let bytes = fs::read(&packed)?;
        if fs::read(&before).is_ok_and(|old| old == bytes) {
            return Ok(own);
        }
        if own.exists() {
            fs::remove_dir_all(&own)?;
        }
        // With new times, by which cargo notices the change.
        let mut unpack = command("tar", ["-xzmf"]);
        unpack.arg(&packed).arg("-C").arg(&folder);
        log.run(unpack)?;
        fs::write(before, bytes)?;
        Ok(own)
    };
    Ok([
        unpack("mcpbolt-codec", log)?,
        unpack("mcpbolt-macros", log)?,
        unpack("mcpbolt-oauth", log)?,
        unpack("mcpbolt", log)?,
    ])
}

/// Builds a project outside this workspace. It gets the workspace's versions and profiles, so
/// that dependencies are built only once.
fn build_user(project: &Path, dependencies: &str, log: &mut Log) -> Result<()> {
    let own = fs::read_to_string(repo::root().join("Cargo.toml"))?;
    let profiles = own.find("[profile.").and_then(|at| own.get(at..));
    let profiles = profiles.context("no profiles in Cargo.toml")?;
    let manifest = format!(
        "[package]\nname = \"project\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}\n\n[workspace]\n\n{profiles}\n"
    );
    fs::write(project.join("Cargo.toml"), manifest)?;
    fs::copy(repo::root().join("Cargo.lock"), project.join("Cargo.lock"))?;
    let mut build = cargo("build");
    build
        .current_dir(project)
        .env("CARGO_TARGET_DIR", repo::target());
    log.run(build)
}

/// Checks the workspace with the minimum supported toolchain.
pub fn msrv(log: &mut Log) -> Result<()> {
    log.run(toolchain::promised_cargo(
        "check --workspace --all-features",
    )?)
}
