//! What is built with flags of its own: with models of concurrency, or by the compiler's
//! sanitizers, which come with its Linux toolchain.
//!
//! All `unsafe` is in the engine alone, so it is built without features, and with no crates but those
//! it stands on.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::log::Log;
use crate::repo::{self, cargo, command};

const UNITS: &str = "-p mcpbolt --no-default-features --lib";

pub fn loom(log: &mut Log) -> Result<()> {
    let mut test = cargo(&format!("test {UNITS} --target {}", host()?));
    // The models run for seconds: what takes time is the last bit of their speed.
    for package in ["generator", "loom", "mcpbolt"] {
        let fast = format!("profile.dev.package.{package}.opt-level=3");
        test.args(["--config", &fast]);
    }
    test.arg("loom").env("RUSTFLAGS", "--cfg loom");
    run(log, test, repo::target())?;
    ensure!(log.tally.total() > 0, "no model was run");
    Ok(())
}

pub fn address(log: &mut Log) -> Result<()> {
    sanitized(log, "address", "asan", &format!("{UNITS} --test engine"))?;
    // The corpus cut and shifted everywhere, and random damage, by every kernel.
    let laws = "-p mcpbolt-fuzz --no-default-features --tests";
    sanitized(log, "address", "asan", laws)
}

/// Only the units: programs of several processes say nothing more about shared memory.
pub fn thread(log: &mut Log) -> Result<()> {
    sanitized(log, "thread", "tsan", UNITS)
}

fn sanitized(log: &mut Log, sanitizer: &str, runtime: &str, what: &str) -> Result<()> {
    let host = host()?;
    if !has_runtime(&host, runtime)? {
        return log.skip(&format!("{runtime}: this toolchain has no runtime for it"));
    }
    let mut test = cargo(&format!("test {what} --target {host} -- --show-output"));
    let flags = "-Cunsafe-allow-abi-mismatch=sanitizer --cfg units";
    let suppressions = repo::root().join("xtask/tsan.supp");
    // Much of what others wrote is made anew when this changes, so these have a folder of their own.
    let folder = repo::target().join("sanitized");
    // The flag is unstable only in name: the runtimes ship with stable toolchains. The standard
    // library stays as it is, so crates of two kinds are mixed knowingly.
    test.env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", format!("-Zsanitizer={sanitizer} {flags}"))
        .env(
            "TSAN_OPTIONS",
            format!("suppressions={}", suppressions.display()),
        )
        // Every access costs more here.
        .env("MCPBOLT_STRESS", "20000")
        .env("CARGO_TARGET_DIR", &folder);
    run(log, test, folder)
}

/// Tests what is built for a machine that is named, and so in a folder of its own; removes it.
fn run(log: &mut Log, test: Command, target: PathBuf) -> Result<()> {
    let done = log.run(test);
    let made = target.join(host()?);
    if made.exists() {
        std::fs::remove_dir_all(made)?;
    }
    done
}

/// What the compiler calls this machine.
fn host() -> Result<String> {
    let name = repo::output(command("rustc", ["--print", "host-tuple"]))?;
    Ok(name.trim().to_owned())
}

fn has_runtime(host: &str, runtime: &str) -> Result<bool> {
    let print = ["--print", "target-libdir", "--target", host];
    let library = repo::output(command("rustc", print))?;
    let entries = std::fs::read_dir(PathBuf::from(library.trim()));
    let found = entries.into_iter().flatten().flatten().any(|entry| {
        entry
            .file_name()
            .to_string_lossy()
            .ends_with(&format!("_rt.{runtime}.a"))
    });
    Ok(found)
}
