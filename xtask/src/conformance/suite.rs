//! Installs and runs the official suite, and counts its verdicts.

use std::fmt;
use std::ops::AddAssign;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::fixture::Fixture;
use super::{Capture, Set};
use crate::python::Run;
use crate::repo::{self, Stamp, command};

/// The suite's mark of a passed scenario.
const PASSED: char = '✓';

/// How long a client may take, in milliseconds, while all others run.
const TIMEOUT_MS: &str = "120000";

/// Two releases of the suite, and the Node.js that both need.
pub struct Suite {
    folder: PathBuf,
}

/// The results of a set of scenarios.
#[derive(Default)]
pub struct Score {
    pub scenarios: usize,
    pub passed: usize,
    pub checks: usize,
    /// The failed scenarios with their messages.
    pub failures: Vec<(String, String)>,
}

impl Score {
    fn add(&mut self, name: &str, checks: usize, failure: Option<String>) {
        self.scenarios += 1;
        self.checks += checks;
        match failure {
            None => self.passed += 1,
            Some(said) => self.failures.push((name.to_owned(), said)),
        }
    }
}

impl AddAssign for Score {
    fn add_assign(&mut self, other: Self) {
        self.scenarios += other.scenarios;
        self.passed += other.passed;
        self.checks += other.checks;
        self.failures.extend(other.failures);
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scenarios,
            passed,
            checks,
            ..
        } = self;
        write!(
            f,
            "{passed:>2}/{scenarios:<2} scenarios, {checks:>3} checks"
        )
    }
}

impl Suite {
    /// Installs the suite from its lock file.
    pub fn install(run: Run<'_>) -> Result<Self> {
        let folder = repo::cache().join("conformance");
        let source = repo::root().join("conformance");
        let lock = std::fs::read_to_string(source.join("package-lock.json"))?;
        let stamp = Stamp::new("conformance", lock);
        if !stamp.is_current() || !folder.join("node_modules").exists() {
            std::fs::create_dir_all(&folder)?;
            for name in ["package.json", "package-lock.json"] {
                std::fs::copy(source.join(name), folder.join(name))?;
            }
            let mut npm = command("npm", ["ci", "--no-audit", "--no-fund"]);
            npm.current_dir(&folder);
            run(npm)?;
            stamp.write()?;
        }
        Ok(Self { folder })
    }

    fn command(&self, set: Set) -> Command {
        let package = match set {
            Set::Stable | Set::ClientStable => "conformance-stable",
            _ => "@modelcontextprotocol/conformance",
        };
        let modules = self.folder.join("node_modules");
        let mut command = Command::new(modules.join(".bin/node"));
        command
            .arg(modules.join(package).join("dist/index.js"))
            .current_dir(&self.folder);
        command
    }

    /// All scenarios of a set against our server.
    pub fn server(&self, fixture: &Fixture, set: Set, capture: Capture<'_>) -> Result<Score> {
        let server = fixture.serve()?;
        let mut command = self.command(set);
        command.args(["server", "--url", &server.url]);
        command.args(match set {
            Set::Handshake => ["--requirements", "2025-11-25"],
            Set::Stateless => ["--requirements", "2026-07-28"],
            _ => ["--suite", "all"],
        });
        summary(&capture(&mut command)?)
    }

    /// Runs each client scenario in each of its revisions, one after the other. A scenario passes if it
    /// does in each revision.
    pub fn clients(&self, fixture: &Fixture, set: Set, capture: Capture<'_>) -> Result<Score> {
        let listed = capture(self.command(set).arg("list"))?;
        let program = fixture.client();
        let mut score = Score::default();
        for (name, revisions) in scenarios(&listed) {
            let (mut checks, mut failures) = (0, Vec::new());
            for revision in revisions {
                let mut command = self.command(set);
                command.args(["client", "--command", &program, "--scenario", name]);
                if let Some(revision) = revision {
                    command.args(["--spec-version", revision]);
                }
                let (passed, result) = alone(&capture(&mut command)?);
                checks += result.strip_prefix("Passed: ").map_or(0, leading_number);
                if !passed {
                    failures.push(format!("{result} {}", revision.unwrap_or_default()));
                }
            }
            let failure = (!failures.is_empty()).then(|| failures.join("; "));
            score.add(name, checks, failure);
        }
        Ok(score)
    }

    /// Runs all client scenarios at the same time. One that fails is played once more alone, because some
    /// measure the time between two requests.
    pub fn clients_together(&self, fixture: &Fixture, capture: Capture<'_>) -> Result<Score> {
        let program = fixture.client();
        let mut client = |which: [&str; 2]| {
            let mut command = self.command(Set::ClientTogether);
            command.args(["client", "--command", &program, "--timeout", TIMEOUT_MS]);
            capture(command.args(which))
        };
        let mut score = summary(&client(["--suite", "all"])?)?;
        for (name, checks) in std::mem::take(&mut score.failures) {
            match alone(&client(["--scenario", &name])?) {
                (true, _) => score.passed += 1,
                (false, result) => score
                    .failures
                    .push((name, format!("{checks}; alone: {result}"))),
            }
        }
        Ok(score)
    }
}

/// How the run of one scenario ended.
fn alone(said: &str) -> (bool, String) {
    let result = said.lines().find(|line| line.starts_with("Passed: "));
    let result = result.unwrap_or("it did not come to its end");
    (said.contains("OVERALL: PASSED"), result.to_owned())
}

/// The verdicts at the end of what the suite printed.
fn summary(said: &str) -> Result<Score> {
    let summary = said.split("SUMMARY ===").nth(1);
    let summary = summary.context("the suite did not come to its end")?;
    let mut score = Score::default();
    for (mark, name, checks) in summary.lines().filter_map(verdict) {
        let failure = (mark != PASSED).then(|| checks.to_owned());
        score.add(name, leading_number(checks), failure);
    }
    Ok(score)
}

/// A line of the summary: its mark, the scenario and the checks.
fn verdict(line: &str) -> Option<(char, &str, &str)> {
    let mark = line.chars().next()?;
    let (name, checks) = line[mark.len_utf8()..].trim_start().split_once(": ")?;
    let is_one = !mark.is_alphanumeric() && checks.contains(" passed, ");
    is_one.then_some((mark, name, checks))
}

fn leading_number(text: &str) -> usize {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    text[..digits].parse().unwrap_or_default()
}

/// The client scenarios in the suite's list, and the revisions of each; an extension has no revision.
fn scenarios(listed: &str) -> Vec<(&str, Vec<Option<&str>>)> {
    let clients = listed.lines();
    let clients = clients.skip_while(|line| !line.starts_with("Client scenarios"));
    let clients = clients.skip(1).take_while(|line| !line.is_empty());
    let lines = clients.filter_map(|line| line.trim().strip_prefix("- "));
    let each = lines.map(|line| {
        let (name, revisions) = line.split_once(" [").unwrap_or((line, ""));
        let revisions = revisions.trim_end_matches(']').split(',');
        let known = revisions.map(|one| one.starts_with("20").then_some(one));
        (name, known.collect())
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_read() {
        let ok = "✓ ping: 2 passed, 0 failed";
        assert_eq!(verdict(ok), Some(('✓', "ping", "2 passed, 0 failed")));
        let bad = "✗ tools-list: 1 passed, 2 failed";
        assert_eq!(verdict(bad).map(|(mark, ..)| mark), Some('✗'));
        for other in ["", "Total: 83 passed, 0 failed", "  ✓ ping (pending)"] {
            assert_eq!(verdict(other), None, "{other}");
        }
    }

    #[test]
    fn scenarios_of_clients_are_found() {
        let listed = "Server scenarios:\n  - ping [2025-11-25]\n\nClient scenarios (x):\n  \
            - tools_call [2025-06-18,2026-07-28]\n  - auth/a [2025-11-25]\n  - e [extension]\n\nA:\n";
        let expected = vec![
            ("tools_call", vec![Some("2025-06-18"), Some("2026-07-28")]),
            ("auth/a", vec![Some("2025-11-25")]),
            ("e", vec![None]),
        ];
        assert_eq!(scenarios(listed), expected);
    }
}
