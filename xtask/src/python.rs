//! The Python side: an environment under `.cache`, and our package built into it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::repo::{self, Build, Stamp, command};
use crate::together;

/// Runs one command of an installation; the caller decides where its output goes.
pub type Run<'a> = &'a mut dyn FnMut(Command) -> Result<()>;

/// The tools that build and check the package.
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
        Self::open_with(name, &repo::interpreter(), requirements, run)
    }

    /// The same with an interpreter of its own.
    pub fn open_with(
        name: &str,
        interpreter: &str,
        requirements: &Path,
        run: Run<'_>,
    ) -> Result<Self> {
        let venv = Self {
            folder: repo::cache().join("python").join(name),
        };
        let text = std::fs::read_to_string(requirements)
            .with_context(|| format!("reading {}", requirements.display()))?;
        let version = repo::output(command(interpreter, ["--version"]))
            .context("python3 is needed (or PYTHON=…)")?;
        let stamp = Stamp::new(&format!("python-{name}"), format!("{version}{text}"));
        if stamp.is_current() && venv.python().exists() {
            return Ok(venv);
        }
        if venv.folder.exists() {
            std::fs::remove_dir_all(&venv.folder)?;
        }
        // Some systems ship Python without the modules that create an environment with pip.
        if repo::output(command(interpreter, ["-c", "import venv, ensurepip"])).is_err() {
            bail!(
                "{interpreter} ({}) has no venv or no ensurepip: install them (Debian, Ubuntu: apt install python3-venv) or name another interpreter with PYTHON=…",
                version.trim()
            );
        }
        let mut make = command(interpreter, ["-m", "venv"]);
        make.arg(&venv.folder);
        run(make)?;
        let mut install = venv.pip(["install", "--quiet", "--requirement"]);
        install.arg(requirements);
        run(install)?;
        stamp.write()?;
        Ok(venv)
    }

    /// `PATH` with the programs of this environment first.
    pub fn path(&self) -> Result<OsString> {
        let before = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.folder.join("bin")).chain(std::env::split_paths(&before));
        Ok(std::env::join_paths(all)?)
    }

    /// pip of this environment.
    pub fn pip<const N: usize>(&self, args: [&str; N]) -> Command {
        let mut pip = command(self.python(), ["-m", "pip", "--disable-pip-version-check"]);
        pip.args(args);
        pip
    }
}

/// The versions of Python, besides that of the other tests, that the package is tested with.
pub const OTHERS: [&str; 3] = ["3.10", "3.12", "3.13"];

/// Those of them that are on this machine, in PATH or in pyenv's folder, each with its interpreter.
pub fn others() -> Vec<(&'static str, String)> {
    let pyenv = std::env::home_dir().map(|home| home.join(".pyenv/versions"));
    let installed = pyenv.and_then(|folder| std::fs::read_dir(folder).ok());
    let installed: Vec<_> = installed.into_iter().flatten().flatten().collect();
    let found = OTHERS.iter().filter_map(|version| {
        let program = format!("python{version}");
        if repo::has(&program) {
            return Some((*version, program));
        }
        let is_one = |name: &str| {
            name.strip_prefix(version)
                .is_some_and(|it| it.starts_with('.'))
        };
        let mut own = installed.iter();
        let own = own.find(|entry| entry.file_name().to_str().is_some_and(is_one))?;
        Some((
            *version,
            own.path().join("bin/python").display().to_string(),
        ))
    });
    found.collect()
}

/// The interpreters that a wheel supports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wheel {
    /// The interpreter that builds it.
    Version,
    /// Every interpreter from 3.10 on.
    Abi3,
}

impl Wheel {
    pub fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Abi3 => "abi3",
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Version => &[],
            Self::Abi3 => &["--features", "abi3"],
        }
    }
}

/// Our package in an environment for this kind of build, so that a build for tests is never measured by
/// mistake: as the wheel that users get, or, for tests, as cargo built it for all languages.
pub fn package(how: Build, run: Run<'_>) -> Result<Venv> {
    let venv = tools(how, run)?;
    if how == Build::Checked {
        run(together::checked()?)?;
        let folder = together::lay_out_python(how)?;
        let paths = "import sysconfig; print(sysconfig.get_path('purelib'))";
        let site = repo::output(command(venv.python(), ["-c", paths]))?;
        let link = Path::new(site.trim()).join("mcpbolt.pth");
        std::fs::write(link, format!("{}\n", folder.display()))?;
        return Ok(venv);
    }
    let wheel = wheel(&venv, how, Wheel::Version, run)?;
    let mut install = venv.pip(["install", "--quiet", "--no-deps", "--force-reinstall"]);
    install.arg(wheel);
    run(install)?;
    Ok(venv)
}

/// A folder for `PYTHONPATH` that overrides some packages of an environment with other releases.
pub fn releases(venv: &Venv, name: &str, packages: &[&str], run: Run<'_>) -> Result<PathBuf> {
    let folder = repo::cache()
        .join("python")
        .join(format!("releases-{name}"));
    let stamp = Stamp::new(&format!("releases-{name}"), packages.join(" "));
    if !stamp.is_current() || !folder.exists() {
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        let mut install = venv.pip(["install", "--quiet", "--no-deps", "--target"]);
        install.arg(&folder).args(packages);
        run(install)?;
        stamp.write()?;
    }
    Ok(folder)
}

/// The environment with the tools that build and check the package.
pub fn tools(how: Build, run: Run<'_>) -> Result<Venv> {
    let name = match how {
        Build::Release | Build::Demo => "mcpbolt",
        Build::Checked => "checked",
    };
    Venv::open(name, &repo::root().join(TOOLS), run)
}

/// Builds a wheel into a folder of its own, using the shared target folder.
pub fn wheel(venv: &Venv, how: Build, kind: Wheel, run: Run<'_>) -> Result<PathBuf> {
    let wheels = repo::cache().join(format!("wheels/{}-{}", how.folder(), kind.name()));
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels)?;
    }
    let mut build = command(venv.python(), ["-m", "maturin", "build", "--quiet"]);
    build
        .args(how.flags())
        .args(kind.flags())
        .args([
            "--manifest-path",
            "bindings-python/Cargo.toml",
            "--interpreter",
        ])
        .arg(venv.python())
        .arg("--out")
        .arg(&wheels);
    run(build)?;
    only_file(&wheels)
}

/// The only file in a folder.
pub fn only_file(folder: &Path) -> Result<PathBuf> {
    let mut entries = std::fs::read_dir(folder)?;
    let first = entries.next().context("maturin built nothing")??.path();
    ensure!(
        entries.next().is_none(),
        "more than one file in {}",
        folder.display()
    );
    Ok(first)
}

/// The package without dependencies, unpacked into a folder for `PYTHONPATH`.
pub fn unpacked(how: Build, kind: Wheel, run: Run<'_>) -> Result<PathBuf> {
    let venv = tools(how, run)?;
    let wheel = wheel(&venv, how, kind, run)?;
    let folder = wheel.with_file_name("unpacked");
    let mut install = venv.pip(["install", "--quiet", "--no-deps", "--target"]);
    install.arg(&folder).arg(wheel);
    run(install)?;
    Ok(folder)
}
