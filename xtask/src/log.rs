//! Runs the commands of a stage: their output goes to a file, and what matters is picked out.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::tally::{Tally, announces_skip};
use crate::{process, repo};

/// The lines shown of a failed stage.
const TAIL: usize = 200;

/// The record of one stage.
pub struct Log {
    path: PathBuf,
    file: File,
    tail: std::collections::VecDeque<String>,
    verbose: bool,
    /// No command may take longer: past it, it hangs.
    pub longest: Duration,
    /// The tests counted so far.
    pub tally: Tally,
    /// The lines that told of something not run.
    pub skips: Vec<String>,
}

impl Log {
    /// Starts `.cache/log/NAME.log` afresh. `verbose` shows every line as it comes.
    pub fn create(name: &str, verbose: bool) -> Result<Self> {
        let folder = repo::cache().join("log");
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{name}.log"));
        let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Self {
            path,
            file,
            tail: std::collections::VecDeque::new(),
            verbose,
            longest: Duration::from_secs(20 * 60),
            tally: Tally::default(),
            skips: Vec::new(),
        })
    }

    /// Has the engine in a command write down its wire, to be held against the official schemas by
    /// the interop stage; what an earlier run wrote is gone.
    pub fn trace(&self, command: &mut Command) -> Result<()> {
        let stage = self.path.file_stem().context("a log without a name")?;
        let folder = repo::cache().join("wire").join(stage);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        command.env("MCPBOLT_TRACE", folder);
        Ok(())
    }

    /// Runs a command to its end; fails when it does, or when it takes longer than [`Self::longest`].
    pub fn run(&mut self, mut command: Command) -> Result<()> {
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
        // The command holds the pipe's writing ends: while it lives, the output has no end.
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
            if announces_skip(line) {
                self.skips.push(line.to_owned());
            }
            self.line(line)?;
        }
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

    /// Notes that something cannot be checked here, which is shown and counted.
    pub fn skip(&mut self, what: &str) -> Result<()> {
        self.tally.skipped += 1;
        self.skips.push(format!("SKIPPED: {what}"));
        self.line(&format!("SKIPPED: {what}"))
    }

    /// Adds one line of the stage's own.
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

    /// The last lines, for a stage that failed, and where all of them are.
    pub fn show_tail(&self) {
        if self.verbose {
            return;
        }
        for line in &self.tail {
            println!("    | {line}");
        }
        println!("    | (all of it: {})", self.path.display());
    }
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

/// A word that a shell reads back as it is.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
