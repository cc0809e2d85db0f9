//! Builds the packages of all three languages with one run of cargo, so that each crate is compiled once.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::language::Language;
use crate::log::Log;
use crate::repo::{self, Build, Stamp, cargo, command};

/// The packages that the programs of the three languages need.
const PACKAGES: &str =
    "-p mcpbolt-codec -p mcpbolt -p mcpbolt-cli -p mcpbolt-python -p mcpbolt-node";

/// Further packages that have tests, or programs that tests start.
const TESTED: &str = "-p mcpbolt-macros -p mcpbolt-oauth -p mcpbolt-fuzz -p interop-counterparts -p interop-libraries -p interop-ours";

/// A cargo command on all packages with tests and all features of the engine. Every stage that needs
/// test builds uses this selection: another one selects other features of the dependencies, and cargo
/// compiles those again.
pub fn tested(verb: &str) -> Result<Command> {
    let mut cargo = cargo(&format!("{verb} {PACKAGES} {TESTED} --features"));
    cargo.arg(all_features()?);
    if let Some(python) = std::env::var_os("PYTHON") {
        cargo.env("PYO3_PYTHON", python);
    }
    Ok(cargo)
}

/// How the engine is optimised in the programs that tests start: long messages, streams and attacks pass
/// through them. In the tests themselves it is not, since compiling would take longer than it saves. Fewer
/// pieces share more of what generic code becomes.
const ENGINE: [&str; 4] = [
    "profile.dev.package.mcpbolt.opt-level=1",
    "profile.dev.package.mcpbolt.codegen-units=4",
    "profile.dev.package.mcpbolt-codec.opt-level=1",
    "profile.dev.package.mcpbolt-codec.codegen-units=4",
];

/// Builds the programs that tests start, and the native modules of Python and Node.
pub fn checked() -> Result<Command> {
    let mut build = tested("build --lib --bins --examples")?;
    build.args(ENGINE.iter().flat_map(|setting| ["--config", setting]));
    Ok(build)
}

/// A test executable.
pub struct TestProgram {
    /// The folder of its package.
    pub folder: PathBuf,
    program: PathBuf,
}

impl TestProgram {
    /// The command that runs the tests as cargo does.
    pub fn command(&self) -> Command {
        let mut test = command(&self.program, ["--show-output"]);
        test.current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        test
    }
}

/// Builds and lists the test executables of all packages with tests.
pub fn test_programs() -> Result<Vec<TestProgram>> {
    let told = repo::output(tested("test --no-run --message-format json")?)?;
    let programs = told.lines().filter_map(|line| {
        let artifact: Value = serde_json::from_str(line).ok()?;
        let is_test = artifact["profile"]["test"] == true;
        let program = artifact["executable"].as_str().filter(|_| is_test)?;
        let manifest = Path::new(artifact["manifest_path"].as_str()?);
        Some(TestProgram {
            folder: manifest.parent()?.to_owned(),
            program: program.into(),
        })
    });
    Ok(programs.collect())
}

/// The packages that are built with all of their features.
pub const FEATURED: [&str; 2] = ["mcpbolt", "mcpbolt-oauth"];

/// All features of the [`FEATURED`] packages, as an argument for cargo.
pub fn all_features() -> Result<String> {
    let mut all = Vec::new();
    for package in FEATURED {
        let features = features(package)?.into_iter();
        all.extend(features.map(|feature| format!("{package}/{feature}")));
    }
    Ok(all.join(","))
}

/// The features of a package except `default`.
pub fn features(name: &str) -> Result<Vec<String>> {
    let text = repo::output(cargo("metadata --format-version 1 --no-deps"))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.find(|package| package["name"] == name);
    let Some(features) = package.and_then(|package| package["features"].as_object()) else {
        bail!("cargo metadata tells nothing of {name}");
    };
    let names = features.keys().filter(|name| *name != "default");
    Ok(names.cloned().collect())
}

/// The path of a built native module: `_core` or `mcpbolt_node`.
pub fn module(name: &str, how: Build) -> PathBuf {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    let file = format!("{DLL_PREFIX}{name}{DLL_SUFFIX}");
    repo::target().join(how.folder()).join(file)
}

/// The file name under which the Node package loads its native module on this platform.
pub fn module_of_node() -> Result<String> {
    let platform = "`mcpbolt.${process.platform}-${process.arch}.node`";
    let name = repo::output(command("node", ["--print", platform]))
        .context("node is needed (Node.js 20.6 or newer)")?;
    Ok(name.trim().to_owned())
}

/// Copies the Python package and its built module into a folder for `PYTHONPATH`.
pub fn lay_out_python(how: Build) -> Result<PathBuf> {
    let folder = repo::cache()
        .join("together")
        .join(how.folder())
        .join("python");
    let to = folder.join("mcpbolt");
    fresh(&to)?;
    copy(&repo::root().join("bindings-python/python/mcpbolt"), &to)?;
    fs::copy(module("_core", how), to.join("_core.so"))?;
    // An installer leaves the metadata, from which `importlib.metadata` reads the version.
    let version = repo::workspace_value("version")?;
    let about = folder.join(format!("mcpbolt-{version}.dist-info"));
    fs::create_dir_all(&about)?;
    let metadata = format!("Metadata-Version: 2.1\nName: mcpbolt\nVersion: {version}\n");
    fs::write(about.join("METADATA"), metadata)?;
    Ok(folder)
}

/// Examples of each language, ready to start.
pub struct Programs {
    /// Where cargo built.
    built: PathBuf,
    /// Where the packages of Python and Node are laid out.
    folder: PathBuf,
}

impl Programs {
    /// Builds the examples of those names, and shows what is being built and how much is left.
    pub fn build(examples: &[&str], how: Build, log: &mut Log) -> Result<Self> {
        let programs = Self {
            built: repo::target().join(how.folder()),
            folder: repo::cache().join("together").join(how.folder()),
        };
        compile(examples, how, log)?;
        lay_out_python(how)?;
        programs.lay_out_node(how, log)?;
        for name in examples {
            for language in [Language::Python, Language::Node] {
                let source = language.example(name);
                fs::copy(&source, programs.script(language, name))
                    .with_context(|| format!("copying {}", source.display()))?;
            }
        }
        Ok(programs)
    }

    /// The command line that starts an example.
    pub fn words(&self, language: Language, name: &str) -> Vec<String> {
        let script = self.script(language, name).display().to_string();
        match language {
            Language::Rust => {
                let program = self.built.join("examples").join(name);
                vec![program.display().to_string()]
            }
            Language::Python => vec![repo::interpreter(), script],
            Language::Node => vec!["node".to_owned(), script],
        }
    }

    /// The copy of a script beside its package: interpreters resolve imports from the script's folder.
    fn script(&self, language: Language, name: &str) -> PathBuf {
        let source = language.example(name);
        let extension = source.extension().unwrap_or_default();
        self.folder
            .join(language.name())
            .join(name)
            .with_extension(extension)
    }

    fn lay_out_node(&self, how: Build, log: &mut Log) -> Result<()> {
        let from = repo::root().join("bindings-node");
        let to = self.folder.join("node/node_modules/mcpbolt");
        fresh(&to)?;
        for entry in from.read_dir()? {
            let path = entry?.path();
            let kind = path.extension().and_then(|kind| kind.to_str());
            if matches!(kind, Some("mjs" | "json")) {
                fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
            }
        }
        fs::copy(module("mcpbolt_node", how), to.join(module_of_node()?))?;
        let mut emit = command("node", [typescript(log)?]);
        emit.args(["-p", "bindings-node/face", "--noCheck", "--types", "null"])
            .args(["--declaration", "false", "--outDir"])
            .arg(to.join("dist"));
        log.run(emit)
    }
}

/// Runs cargo and shows its progress.
fn compile(examples: &[&str], how: Build, log: &mut Log) -> Result<()> {
    let mut packages = PACKAGES.to_owned();
    let mut build = match how {
        Build::Checked => {
            packages = format!("{PACKAGES} {TESTED}");
            checked()?
        }
        Build::Demo | Build::Release => {
            let mut build = cargo(&format!("build {PACKAGES} --lib --bin mcpbolt"));
            build.args(how.flags());
            build.args(examples.iter().flat_map(|name| ["--example", name]));
            build
        }
    };
    if let Some(python) = std::env::var_os("PYTHON") {
        build.env("PYO3_PYTHON", python);
    }
    let tree = repo::output(cargo(&format!(
        "tree {packages} --prefix none --format {{p}} --edges normal,build,dev"
    )))?;
    let crates: BTreeSet<_> = tree.lines().filter_map(name_and_version).collect();
    let mut progress = Progress::new(crates.len());
    // With --verbose cargo also names the crates that are up to date.
    build.arg("--verbose");
    log.follow(build, |line| progress.see(line))?;
    progress.bar.finish_and_clear();
    Ok(())
}

/// The name and version at the start of a line: `hyper v1.11.0`.
fn name_and_version(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let (name, version) = (words.next()?, words.next()?);
    version
        .starts_with('v')
        .then(|| format!("{name} {version}"))
}

/// The crates that cargo has started on.
struct Progress {
    begun: BTreeSet<String>,
    told: usize,
    bar: ProgressBar,
}

impl Progress {
    fn new(crates: usize) -> Self {
        let bar = ProgressBar::new(crates as u64);
        let template = "building {bar:30} {pos}/{len} crates, now {wide_msg} {elapsed:.dim}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        if bar.is_hidden() {
            println!("building {crates} crates …");
        }
        Self {
            begun: BTreeSet::new(),
            told: 0,
            bar,
        }
    }

    fn see(&mut self, line: &str) {
        let Some(name) = begun(line) else {
            return;
        };
        let ours = name.starts_with("mcpbolt");
        self.begun.insert(name.clone());
        self.bar.set_position(self.begun.len() as u64);
        // Without a terminal: a line for every 25 crates, and for our own, which take longest.
        let due = ours || self.begun.len() >= self.told + 25;
        if self.bar.is_hidden() && due {
            self.told = self.begun.len();
            let all = self.bar.length().unwrap_or_default();
            println!("building {} of {all} crates, now {name}", self.told);
        }
        self.bar.set_message(name);
    }
}

/// The crate named in a `Compiling` or `Fresh` line of cargo.
fn begun(line: &str) -> Option<String> {
    let (word, rest) = line.trim_start().split_once(' ')?;
    matches!(word, "Compiling" | "Fresh")
        .then(|| name_and_version(rest))
        .flatten()
}

/// Installs the TypeScript compiler in the version of package-lock.json and returns its path.
fn typescript(log: &mut Log) -> Result<PathBuf> {
    let folder = repo::cache().join("typescript");
    let lock = fs::read_to_string(repo::root().join("bindings-node/package-lock.json"))?;
    let lock: Value = serde_json::from_str(&lock)?;
    let version = lock["packages"]["node_modules/typescript"]["version"]
        .as_str()
        .context("package-lock.json names no typescript")?;
    let stamp = Stamp::new("typescript", version.to_owned());
    if !stamp.is_current() || !folder.join("node_modules").exists() {
        fs::create_dir_all(&folder)?;
        let mut install = command("npm", ["install", "--no-audit", "--no-fund", "--no-save"]);
        install.args(["--ignore-scripts", "--prefix"]).arg(&folder);
        install.arg(format!("typescript@{version}"));
        log.run(install)?;
        stamp.write()?;
    }
    Ok(folder.join("node_modules/typescript/bin/tsc"))
}

fn fresh(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir_all(folder)?)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in from.read_dir()? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        if name == "__pycache__" || path.extension().is_some_and(|kind| kind == "so") {
            continue;
        }
        if path.is_dir() {
            fs::create_dir_all(to.join(&name))?;
            copy(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crates_that_cargo_tells_of_are_counted_once() {
        let mut progress = Progress::new(3);
        for line in [
            "   Compiling hyper v1.11.0",
            "       Fresh bytes v1.12.0",
            "   Compiling mcpbolt v0.1.0 (/a/core)",
            "   Compiling mcpbolt v0.1.0 (/a/core)",
            "     Running `rustc --crate-name hyper`",
            "warning: Compiling is slow",
            "    Finished `demo` profile [optimized] target(s) in 3m 10s",
        ] {
            progress.see(line);
        }
        assert_eq!(progress.bar.position(), 3);
        assert_eq!(
            name_and_version("mcpbolt v0.1.0 (/a/core) (*)").as_deref(),
            Some("mcpbolt v0.1.0")
        );
    }
}
