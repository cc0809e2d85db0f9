//! `mcpbolt load` against servers whose behaviour is known.
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

mod answers;
mod bounds;
#[cfg(unix)]
mod guide;
mod paces;
mod pairs;
mod servers;
#[cfg(unix)]
mod signals;
mod workloads;

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use servers::{example, text};

/// A file that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(ending: &str) -> Self {
        static FILES: AtomicUsize = AtomicUsize::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let name = format!("mcpbolt-load-{}-{number}.{ending}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn read(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap_or_default()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The output of a load, and its report.
struct Loaded {
    output: Output,
    json: String,
    report: Value,
}

impl Loaded {
    /// Runs `mcpbolt load`, with a short warm-up unless the arguments have one.
    fn new(args: &[&str]) -> Self {
        let json = Scratch::new("json");
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpbolt"));
        command.args(["load", "--json", json.path()]);
        if !args.contains(&"--warm-up") {
            command.args(["--warm-up", "100ms"]);
        }
        let output = command.args(args).output().unwrap();
        let json = json.read();
        let report = serde_json::from_str(&json).unwrap_or_default();
        Self {
            output,
            json,
            report,
        }
    }

    /// Loads an example of this crate.
    fn of(args: &[&str], server: &str, argument: &str) -> Self {
        let server = example(server);
        Self::new(&[args, &["--", &server, argument]].concat())
    }

    /// The same, and it must be a success.
    fn good(args: &[&str], server: &str, argument: &str) -> Value {
        Self::of(args, server, argument).succeeded()
    }

    fn succeeded(self) -> Value {
        assert!(
            self.output.status.success(),
            "{:?} {}",
            self.output,
            self.report
        );
        self.report
    }

    fn said(&self) -> String {
        format!("{}{}", text(&self.output.stdout), text(&self.output.stderr))
    }
}

/// A number of a report.
fn number(report: &Value, pointer: &str) -> f64 {
    let found = report.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("{pointer} of {report}"))
}
