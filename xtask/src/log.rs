//! Runs the commands of a stage, writes their output to a file, and extracts test counts and skips.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::tally::{Tally, announces_skip};
use crate::{process, repo};

/// How many of its last lines a failed stage shows.
const TAIL: usize = 200;

/// How many lines about failed tests a failed stage shows before its last lines.
const FAILURES: usize = 400;

/// The record of one stage.
pub struct Log {
    path: PathBuf,
    file: File,
    tail: std::collections::VecDeque<String>,
    /// What the test runners said of failed tests, which may be long before the last lines.
    failures: Vec<String>,
    tells_failures: bool,
    /// How many lines came after that.
    since: usize,
    verbose: bool,
    /// The timeout of each command: beyond it, the command counts as hung.
    pub longest: Duration,
    /// The tests counted so far.
    pub tally: Tally,
    /// The lines that announced a skipped test.
    pub skips: Vec<String>,
    /// Processor time of the commands so far, including all their descendants.
    pub cpu: Duration,
}

impl Log {
    /// Creates an empty `.cache/log/NAME.log`, and removes old traces of that name. `verbose` also prints
    /// every line at once.
    pub fn create(name: &str, verbose: bool) -> Result<Self> {
        let path = repo::log(name);
        std::fs::create_dir_all(path.with_file_name(""))?;
        let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
        let wire = wire(&path)?;
        if wire.exists() {
            std::fs::remove_dir_all(&wire)?;
        }
        Ok(Self {
            path,
            file,
            tail: std::collections::VecDeque::new(),
            failures: Vec::new(),
            tells_failures: false,
            since: 0,
            verbose,
            longest: Duration::from_secs(20 * 60),
            tally: Tally::default(),
            skips: Vec::new(),
            cpu: Duration::ZERO,
        })
    }

    /// Makes the engine in `command` write traces of its messages, which the interop stage checks against the
    /// shapes of messages.
    pub fn trace(&self, command: &mut Command) -> Result<()> {
        command.env("MCPBOLT_TRACE", wire(&self.path)?);
        Ok(())
    }

    /// Runs a command to its end. Fails if the command fails, or takes longer than [`Self::longest`].
    pub fn run(&mut self, command: Command) -> Result<()> {
        self.follow(command, |_| {})
    }

    /// Like [`Self::run`], and passes every line of output to `seen` at once.
    pub fn follow(&mut self, mut command: Command, mut seen: impl FnMut(&str)) -> Result<()> {
        let shown = show(&command);
        self.line(&format!("$ {shown}"))?;
        let (reader, writer) = std::io::pipe()?;
        command
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        let mut child = command
            .spawn()
            .with_context(|| format!("starting {shown}"))?;
        // The command holds the write ends of the pipe: while it lives, reading never reaches the end.
        drop(command);
        let (done, wait) = mpsc::channel::<()>();
        let root = child.id();
        let longest = self.longest;
        let watch = std::thread::spawn(move || {
            let late = wait.recv_timeout(longest) == Err(mpsc::RecvTimeoutError::Timeout);
            if late {
                process::kill_tree(root);
            }
            late
        });
        let before = self.skips.len();
        let mut tally = Tally::default();
        for line in BufReader::new(reader).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end();
            tally.read(line);
            self.note_failure(line);
            seen(line);
            if announces_skip(line) {
                self.skips.push(line.to_owned());
            }
            self.line(line)?;
        }
        self.cpu += process::cpu_when_ended(child.id());
        let status = child.wait()?;
        drop(done);
        let announced = self.skips[before..]
            .iter()
            .filter(|line| line.starts_with("SKIPPED: "))
            .count();
        self.tally += tally.without_announced(announced as u64);
        if watch.join().unwrap_or(false) {
            bail!(
                "{shown}: not finished after {} minutes",
                longest.as_secs() / 60
            );
        }
        if !status.success() {
            bail!("{shown}: {status}");
        }
        Ok(())
    }

    /// Adds a line from the stage itself.
    pub fn line(&mut self, line: &str) -> Result<()> {
        writeln!(self.file, "{line}")?;
        if self.verbose {
            println!("{line}");
        }
        if self.tail.len() == TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back(line.to_owned());
        Ok(())
    }

    /// Keeps what cargo's and pytest's runners print between `failures` and the counts.
    fn note_failure(&mut self, line: &str) {
        if line == "failures:" || line.contains("= FAILURES =") {
            self.tells_failures = true;
        }
        self.since += 1;
        if self.tells_failures && self.failures.len() < FAILURES {
            self.failures.push(line.to_owned());
            self.since = 0;
        }
        if line.starts_with("test result: ") || line.contains("= short test summary info =") {
            self.tells_failures = false;
        }
    }

    /// What was said of failed tests and the last lines, for a failed stage, and the path of the whole log.
    pub fn tail(&self) -> String {
        if self.verbose {
            return String::new();
        }
        // All of it, if its end is not among the last lines.
        let cut = match self.since {
            TAIL.. => self.failures.as_slice(),
            _ => &[],
        };
        let lines = cut.iter().chain(&self.tail);
        let lines = lines.map(|line| format!("    | {line}\n"));
        lines.collect::<String>() + &format!("    | (all of it: {})\n", self.path.display())
    }

    /// Prints [`Self::tail`].
    pub fn show_tail(&self) {
        print!("{}", self.tail());
    }
}

/// The folder for the traces of the stage with that log.
fn wire(log: &Path) -> Result<PathBuf> {
    let stage = log.file_stem().context("a log without a name")?;
    Ok(repo::cache().join("wire").join(stage))
}

/// A command as one would type it.
pub fn show(command: &Command) -> String {
    let mut words = Vec::new();
    for (key, value) in command.get_envs() {
        if let Some(value) = value {
            words.push(format!(
                "{}={}",
                key.display(),
                quote(&value.to_string_lossy())
            ));
        }
    }
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit('/').next().unwrap_or(&program).to_owned();
    words.push(program);
    words.extend(command.get_args().map(|arg| quote(&arg.to_string_lossy())));
    words.join(" ")
}

/// Quotes a word so that a shell reads it back unchanged.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_stage_shows_what_failed_long_before_its_end() -> Result<()> {
        let mut log = Log::create("test-of-the-log", false)?;
        let lines = "failures:\n\n---- leases stdout ----\nthread panicked\n\ntest result: FAILED. 1 passed; 1 failed";
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("echo '{lines}'; seq {TAIL}"));
        log.run(command)?;
        let told = log.tail();
        assert!(told.contains("---- leases stdout ----\n    | thread panicked"));
        assert!(told.contains("test result: FAILED") && told.contains(&format!("| {TAIL}\n")));
        Ok(std::fs::remove_file(&log.path)?)
    }
}
