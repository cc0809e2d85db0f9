//! The engine's tests under the compiler's sanitizers, which come with its Linux toolchain. All
//! `unsafe` is in the engine alone, so nothing is built with features.

use std::path::PathBuf;

use anyhow::Result;

use crate::log::Log;
use crate::repo::{self, cargo, command};

const TARGET: &str = "x86_64-unknown-linux-gnu";

pub fn address(log: &mut Log) -> Result<()> {
    let core = "-p mcpbolt --no-default-features --lib --tests";
    run(log, "address", "asan", core, "")?;
    // The corpus cut and shifted everywhere, and random damage, by every kernel.
    run(log, "address", "asan", "-p mcpbolt-fuzz --tests", "")
}

/// Only the units: programs of several processes say nothing more about shared memory.
pub fn thread(log: &mut Log) -> Result<()> {
    let units = "-p mcpbolt --no-default-features --lib";
    // They need no other crate to test with.
    run(log, "thread", "tsan", units, "--cfg units")
}

fn run(log: &mut Log, sanitizer: &str, runtime: &str, what: &str, more: &str) -> Result<()> {
    if !has_runtime(runtime)? {
        return log.skip(&format!("{runtime}: this toolchain has no runtime for it"));
    }
    let mut test = cargo(&format!("test {what} --target {TARGET} -- --show-output"));
    let suppressions = repo::root().join("xtask/tsan.supp");
    // The flag is unstable only in name: the runtimes ship with stable toolchains. The standard
    // library stays as it is, so crates of two kinds are mixed knowingly.
    test.env("RUSTC_BOOTSTRAP", "1")
        .env(
            "RUSTFLAGS",
            format!("-Zsanitizer={sanitizer} -Cunsafe-allow-abi-mismatch=sanitizer {more}"),
        )
        .env(
            "TSAN_OPTIONS",
            format!("suppressions={}", suppressions.display()),
        )
        // Every access costs more here.
        .env("MCPBOLT_STRESS", "20000")
        .env("CARGO_TARGET_DIR", repo::target().join(runtime));
    log.run(test)
}

fn has_runtime(runtime: &str) -> Result<bool> {
    let library = repo::output(command(
        "rustc",
        ["--print", "target-libdir", "--target", TARGET],
    ))?;
    let entries = std::fs::read_dir(PathBuf::from(library.trim()));
    let found = entries.into_iter().flatten().flatten().any(|entry| {
        entry
            .file_name()
            .to_string_lossy()
            .ends_with(&format!("_rt.{runtime}.a"))
    });
    Ok(found)
}
