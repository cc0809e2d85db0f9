//! Where things are, and the commands that every task starts from.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
}

/// Where installed tools, environments and logs are kept between runs; ignored by git.
pub fn cache() -> PathBuf {
    root().join(".cache")
}

/// Where cargo puts what it builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The version that the workspace's `Cargo.toml` gives to `key`, for example `rust-version`.
pub fn workspace_value(key: &str) -> Result<String> {
    let text = std::fs::read_to_string(root().join("Cargo.toml"))?;
    let line = text
        .lines()
        .find(|line| line.split('=').next().is_some_and(|k| k.trim() == key))
        .with_context(|| format!("no {key} in Cargo.toml"))?;
    match line.split('"').nth(1) {
        Some(value) => Ok(value.to_owned()),
        None => bail!("{key} in Cargo.toml is not a string"),
    }
}

/// `program` with `args`, run in the root.
pub fn command<S: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    args: impl IntoIterator<Item = S>,
) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// The cargo that runs this task, given a command line split at blanks.
pub fn cargo(line: &str) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    command(cargo, line.split_whitespace())
}

/// What a command prints, for commands whose answer is a short text.
pub fn output(mut command: Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command
        .output()
        .with_context(|| format!("starting {name}"))?;
    if !out.status.success() {
        bail!(
            "{name}: {}\n{}",
            out.status,
            String::from_utf8_lossy(&out.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Whether a program of that name can be started.
pub fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// How our packages are compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// Made quickly, with overflow and assertions checked: what is tested.
    Checked,
    /// What users get, and what is measured.
    Release,
}

impl Build {
    /// The one for which `--debug` asks, or not.
    pub fn asked(debug: bool) -> Self {
        if debug { Self::Checked } else { Self::Release }
    }

    /// What asks cargo and maturin for it.
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Checked => &[],
            Self::Release => &["--release"],
        }
    }

    /// What cargo calls its folder.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Checked => "debug",
            Self::Release => "release",
        }
    }
}

/// Remembers what an installation was made from, so that it is repeated only when that changed.
pub struct Stamp {
    path: PathBuf,
    text: String,
}

impl Stamp {
    /// The stamp `name`, for an installation described by `text`.
    pub fn new(name: &str, text: String) -> Self {
        let path = cache().join(format!("{name}.stamp"));
        Self { path, text }
    }

    /// Whether the installation was made from the same text.
    pub fn is_current(&self) -> bool {
        std::fs::read_to_string(&self.path).is_ok_and(|old| old == self.text)
    }

    /// Notes that the installation is complete.
    pub fn write(&self) -> Result<()> {
        std::fs::create_dir_all(cache())?;
        std::fs::write(&self.path, &self.text)
            .with_context(|| format!("writing {}", self.path.display()))
    }
}
