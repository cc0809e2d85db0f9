//! Paths of the repository, and the basic commands that all tasks use.

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

/// The log of the last run of a stage.
pub fn log(stage: &str) -> PathBuf {
    cache().join("log").join(format!("{stage}.log"))
}

/// The folder of cargo's build output.
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

/// Runs a command and returns its output, for commands that print a short text.
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
    /// Built quickly, with overflow checks and debug assertions: for tests.
    Checked,
    /// Optimised, but quicker to build than a release: for the demo.
    Demo,
    /// The build that users get, and that is measured.
    Release,
}

impl Build {
    /// `Checked` with `--debug`, else `Release`.
    pub fn asked(debug: bool) -> Self {
        if debug { Self::Checked } else { Self::Release }
    }

    /// The description printed beside figures.
    pub fn told(self) -> &'static str {
        match self {
            Self::Checked => "built for tests, not for figures",
            Self::Demo => "built quickly (profile demo: no LTO)",
            Self::Release => "built as users get them",
        }
    }

    /// The flags of cargo and maturin for this build.
    pub fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Checked => &[],
            Self::Demo => &["--profile", "demo"],
            Self::Release => &["--release"],
        }
    }

    /// The name of its folder in cargo's target folder.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Checked => "debug",
            Self::Demo => "demo",
            Self::Release => "release",
        }
    }
}

/// Remembers the inputs of an installation, so that it is repeated only when they change.
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

/// Python: the system's interpreter, or the one that `PYTHON` names.
pub fn interpreter() -> String {
    std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned())
}
