//! Stages about what a user of the crate gets.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::log::Log;
use crate::repo::{self, cargo, command};

/// Packs the crate, unpacks it beside an empty project, and builds that against it.
pub fn package(log: &mut Log) -> Result<()> {
    log.run(cargo("package -p mcpbolt --allow-dirty --no-verify"))?;
    let name = format!("mcpbolt-{}", repo::workspace_value("version")?);
    let packed = repo::target().join("package").join(format!("{name}.crate"));
    let folder = repo::cache().join("package");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let project = folder.join("project");
    std::fs::create_dir_all(project.join("src"))?;
    let mut unpack = command("tar", ["-xzf"]);
    unpack.arg(&packed).arg("-C").arg(&folder);
    log.run(unpack)?;

    let dependencies = format!("mcpbolt = {{ path = \"../{name}\" }}");
    let program = "use mcpbolt as _;\n\nfn main() {}\n";
    std::fs::write(project.join("src/main.rs"), program)?;
    build_user(&project, &dependencies, log)
}

/// Builds a project that is none of this workspace. It gets this one's versions and profiles, so
/// that what others wrote is built once for all.
pub fn build_user(project: &Path, dependencies: &str, log: &mut Log) -> Result<()> {
    let own = std::fs::read_to_string(repo::root().join("Cargo.toml"))?;
    let profiles = own.find("[profile.").and_then(|at| own.get(at..));
    let profiles = profiles.context("no profiles in Cargo.toml")?;
    let manifest = format!(
        "[package]\nname = \"project\"\nedition = \"2024\"\n\n[dependencies]\n{dependencies}\n\n[workspace]\n\n{profiles}"
    );
    std::fs::write(project.join("Cargo.toml"), manifest)?;
    std::fs::copy(repo::root().join("Cargo.lock"), project.join("Cargo.lock"))?;
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
