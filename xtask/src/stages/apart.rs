//! Stages built with compiler flags of their own: loom models, and the compiler's sanitizers, which come
//! with its Linux toolchain.
//!
//! The models and AddressSanitizer test the engine without features, and only the crates it then needs:
//! nearly all `unsafe` is there. ThreadSanitizer also tests the workers, sockets and HTTP, with a standard
//! library that is built for it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::log::Log;
use crate::repo::{self, cargo, command};

const UNITS: &str = "-p mcpbolt-codec -p mcpbolt --no-default-features --lib";

pub fn loom(log: &mut Log) -> Result<()> {
    let mut test = cargo(&format!("test {UNITS} --target {}", host()?));
    // The models run for seconds, so the crates that they run in are fully optimised.
    for package in ["generator", "loom", "mcpbolt-codec", "mcpbolt"] {
        let fast = format!("profile.dev.package.{package}.opt-level=3");
        test.args(["--config", &fast]);
    }
    test.arg("loom").env("RUSTFLAGS", "--cfg loom");
    run(log, test, repo::target())?;
    ensure!(log.tally.total() > 0, "no model was run");
    Ok(())
}

pub fn address(log: &mut Log) -> Result<()> {
    // Every kernel on the corpus, cut and shifted at every position, and on random damage.
    let laws = "-p mcpbolt-fuzz --no-default-features --tests";
    for what in [&format!("{UNITS} --test engine"), laws] {
        // The standard library is not rebuilt, so instrumented and plain crates are mixed on purpose.
        let test = sanitized(what, "address", " --cfg units")?;
        run(log, test, folder())?;
    }
    Ok(())
}

/// The unit tests, then servers and clients in one process: on workers, sockets and HTTP.
pub fn thread(log: &mut Log) -> Result<()> {
    let what =
        "-Zbuild-std -p mcpbolt-codec -p mcpbolt --all-features --lib --test io --test network";
    let mut test = sanitized(what, "thread", "")?;
    let suppressions = repo::root().join("xtask/tsan.supp");
    // The tool waits for a second at the end of each process, and servers leave threads running then.
    let options = "atexit_sleep_ms=0:report_thread_leaks=0";
    let options = format!("suppressions={}:{options}", suppressions.display());
    test.env("TSAN_OPTIONS", options);
    // The children of the first two do not inherit the options, and so end late. The third begins more
    // sessions within a second than this tool allows.
    let late = [
        "a_child_answers_and_ends_with_its_stdin",
        "nothing_is_left_in_the_group",
        "bare_streams_lock_nobody_out",
    ];
    test.args(late.iter().flat_map(|test| ["--skip", test]));
    run(log, test, folder())
}

/// These flags rebuild most dependencies, so the build has a folder of its own.
fn folder() -> PathBuf {
    repo::target().join("sanitized")
}

/// Tests that are built with a sanitizer. Stable toolchains contain the runtimes, but the flag is unstable.
fn sanitized(what: &str, sanitizer: &str, cfg: &str) -> Result<Command> {
    let mut test = cargo(&format!(
        "test {what} --target {} -- --show-output",
        host()?
    ));
    let flags = format!("-Cunsafe-allow-abi-mismatch=sanitizer{cfg}");
    test.env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", format!("-Zsanitizer={sanitizer} {flags}"))
        // Every memory access costs more here, so fewer rounds run.
        .env("MCPBOLT_STRESS", "20000")
        .env("CARGO_TARGET_DIR", folder());
    Ok(test)
}

/// How long each libFuzzer target runs, in seconds.
const TARGET_SECONDS: u32 = 20;

/// Every libFuzzer target, guided by coverage and under AddressSanitizer, as `cargo fuzz` builds them.
pub fn targets(log: &mut Log) -> Result<()> {
    let host = host()?;
    let manifest = "--manifest-path fuzz/targets/Cargo.toml";
    let folder = repo::target().join("targets");
    let mut build = cargo(&format!("build --locked {manifest} --target {host}"));
    let coverage = [
        "-Cpasses=sancov-module",
        "-Cllvm-args=-sanitizer-coverage-level=4",
        "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
        "-Cllvm-args=-sanitizer-coverage-pc-table",
        "-Zsanitizer=address",
        "-Cunsafe-allow-abi-mismatch=sanitizer",
        "-Ccodegen-units=1",
        "--cfg fuzzing",
    ];
    build
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", coverage.join(" "))
        .env("CARGO_TARGET_DIR", &folder);
    log.run(build)?;
    let built = folder.join(host).join("debug");
    let sources = repo::root().join("fuzz/targets/fuzz_targets");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(sources)? {
        names.extend(entry?.path().file_stem().map(ToOwned::to_owned));
    }
    names.sort();
    for name in names {
        let found = repo::cache().join("fuzz").join(&name);
        std::fs::create_dir_all(&found)?;
        let mut fuzz = command(built.join(&name), [&found]);
        fuzz.arg(format!("-max_total_time={TARGET_SECONDS}"));
        fuzz.arg(format!("-artifact_prefix={}/", found.display()));
        log.run(fuzz)?;
    }
    Ok(())
}

/// Runs a test that was built for a named target, and so in a folder of its own; then removes that folder.
fn run(log: &mut Log, test: Command, target: PathBuf) -> Result<()> {
    let done = log.run(test);
    let made = target.join(host()?);
    if made.exists() {
        std::fs::remove_dir_all(made)?;
    }
    done
}

/// The compiler's target name of this machine.
fn host() -> Result<String> {
    let name = repo::output(command("rustc", ["--print", "host-tuple"]))?;
    Ok(name.trim().to_owned())
}

/// Returns what the memory checks lack on this machine, if anything.
pub fn address_runtime() -> Option<String> {
    runtime("asan")
}

/// Returns what the data race checks lack on this machine, if anything. They need the sources of the
/// standard library, which is rebuilt: the tool knows only the synchronisation that it sees.
pub fn thread_runtime() -> Option<String> {
    let sources = "lib/rustlib/src/rust/library/std";
    let missing = "the sources of the standard library are missing: rustup component add rust-src";
    let found = repo::output(command("rustc", ["--print", "sysroot"]));
    let has_sources = found.is_ok_and(|root| PathBuf::from(root.trim()).join(sources).exists());
    runtime("tsan").or((!has_sources).then(|| missing.to_owned()))
}

fn runtime(name: &str) -> Option<String> {
    let missing = format!("this toolchain has no runtime of {name}: the official Linux ones have");
    (!matches!(has_runtime(name), Ok(true))).then_some(missing)
}

fn has_runtime(name: &str) -> Result<bool> {
    let print = ["--print", "target-libdir", "--target", &host()?];
    let library = repo::output(command("rustc", print))?;
    let entries = std::fs::read_dir(PathBuf::from(library.trim()));
    let found = entries.into_iter().flatten().flatten().any(|entry| {
        entry
            .file_name()
            .to_string_lossy()
            .ends_with(&format!("_rt.{name}.a"))
    });
    Ok(found)
}
