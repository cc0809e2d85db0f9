//! The Python side: an environment under `.cache`, and our package built into it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::repo::{self, Build, Stamp, command};

/// Runs one command of an installation: where its output goes is the caller's affair.
pub type Run<'a> = &'a mut dyn FnMut(Command) -> Result<()>;

/// What builds and checks the package, unless its own list says more.
const TOOLS: &str = "bindings-python/requirements-dev.txt";

/// A virtual environment.
pub struct Venv {
    folder: PathBuf,
}

impl Venv {
    /// Its interpreter.
    pub fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    /// The environment `.cache/python/NAME` with the packages of a requirements file, made when
    /// it is missing or the file has changed.
    pub fn open(name: &str, requirements: &Path, run: Run<'_>) -> Result<Self> {
        let venv = Self {
            folder: repo::cache().join("python").join(name),
        };
        let text = std::fs::read_to_string(requirements)
            .with_context(|| format!("reading {}", requirements.display()))?;
        let interpreter = interpreter();
        let version = repo::output(command(&interpreter, ["--version"]))
            .context("python3 is needed (or PYTHON=…)")?;
        let stamp = Stamp::new(&format!("python-{name}"), format!("{version}{text}"));
        if stamp.is_current() && venv.python().exists() {
            return Ok(venv);
        }
        if venv.folder.exists() {
            std::fs::remove_dir_all(&venv.folder)?;
        }
        // Some systems ship Python without the parts that make an environment with pip.
        if repo::output(command(&interpreter, ["-c", "import venv, ensurepip"])).is_err() {
            bail!(
                "{interpreter} ({}) has no venv or no ensurepip: install them (Debian, Ubuntu: apt install python3-venv) or name another interpreter with PYTHON=…",
                version.trim()
            );
        }
        let mut make = command(&interpreter, ["-m", "venv"]);
        make.arg(&venv.folder);
        run(make)?;
        let mut install = venv.pip(["install", "--quiet", "--requirement"]);
        install.arg(requirements);
        run(install)?;
        stamp.write()?;
        Ok(venv)
    }

    /// pip of this environment.
    pub fn pip<const N: usize>(&self, args: [&str; N]) -> Command {
        let mut pip = command(self.python(), ["-m", "pip", "--disable-pip-version-check"]);
        pip.args(args);
        pip
    }
}

/// The system's interpreter, or the one that `PYTHON` names.
pub fn interpreter() -> String {
    std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// Our package, built as the wheel that users get and installed into an environment of that kind
/// of build, so that what is built for tests never stands in for what is measured.
pub fn package(how: Build, run: Run<'_>) -> Result<Venv> {
    let name = match how {
        Build::Release => "mcpbolt",
        Build::Checked => "mcpbolt-checked",
    };
    let venv = Venv::open(name, &repo::root().join(TOOLS), run)?;
    let wheels = repo::cache().join("wheels").join(name);
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels)?;
    }
    let mut build = command(venv.python(), ["-m", "maturin", "build", "--quiet"]);
    build
        .args(how.flags())
        .args([
            "--manifest-path",
            "bindings-python/Cargo.toml",
            "--interpreter",
        ])
        .arg(venv.python())
        .arg("--out")
        .arg(&wheels);
    run(build)?;
    let wheel = std::fs::read_dir(&wheels)?
        .next()
        .context("maturin built no wheel")??
        .path();
    let mut install = venv.pip(["install", "--quiet", "--no-deps", "--force-reinstall"]);
    install.arg(wheel);
    run(install)?;
    Ok(venv)
}
