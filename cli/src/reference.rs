//! Values that stand elsewhere: `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${file:PATH}` and
//! `${command:PROGRAM ARGUMENT …}`.

use std::fmt;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group};

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The most that a file may have, or a command may print.
const MAX_BYTES: usize = 1 << 20;

/// A text of a file of settings, with what it refers to.
///
/// What is shown of it is as it was written: the value may be secret.
#[derive(Clone)]
pub struct Resolved {
    written: String,
    value: String,
}

impl Resolved {
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Whether the value is not what was written.
    pub fn is_reference(&self) -> bool {
        self.written != self.value
    }
}

impl fmt::Display for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl fmt::Debug for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.written)
    }
}

/// Resolves the references of a text. Paths are below `folder` unless they are absolute. `$${` stands for `${`.
pub fn resolve(written: String, folder: &Path) -> Result<Resolved, String> {
    let mut value = String::with_capacity(written.len());
    let mut rest = written.as_str();
    while let Some(at) = rest.find("${") {
        let (before, reference) = rest.split_at(at);
        let inside = &reference[2..];
        if let Some(before) = before.strip_suffix('$') {
            value.push_str(before);
            value.push_str("${");
            rest = inside;
            continue;
        }
        value.push_str(before);
        let (inside, after) = inside
            .split_once('}')
            .ok_or("has ${ without }; write $${ for ${ itself")?;
        value.push_str(&referred(inside, folder)?);
        rest = after;
    }
    value.push_str(rest);
    Ok(Resolved { written, value })
}

fn referred(inside: &str, folder: &Path) -> Result<String, String> {
    match inside.split_once(':') {
        None => variable(inside),
        Some(("env", name)) => variable(name),
        Some(("file", path)) => {
            let path = folder.join(path);
            let text =
                content(&path).map_err(|why| format!("reading {}: {why}", path.display()))?;
            Ok(trimmed(&text))
        }
        Some(("command", words)) => output(words, folder, LIMIT),
        Some((name, default)) if default.starts_with('-') => {
            Ok(variable(name).unwrap_or_else(|_| default[1..].to_owned()))
        }
        Some((kind, _)) => Err(format!(
            "${{{kind}:…}} is not known; there are env, file and command"
        )),
    }
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|error| match error {
        std::env::VarError::NotPresent => format!("the variable {name} is not set"),
        std::env::VarError::NotUnicode(_) => format!("the variable {name} is not UTF-8"),
    })
}

/// The text of a regular file: others may never end, or never open.
fn content(path: &Path) -> Result<String, String> {
    let wrong = |error: io::Error| error.to_string();
    if !std::fs::metadata(path).map_err(wrong)?.is_file() {
        return Err("is no regular file".to_owned());
    }
    let file = std::fs::File::open(path).map_err(wrong)?;
    let mut text = String::new();
    let read = file.take(MAX_BYTES as u64 + 1).read_to_string(&mut text);
    match read.map_err(wrong)? {
        ..=MAX_BYTES => Ok(text),
        _ => Err(format!("has more than {MAX_BYTES} bytes")),
    }
}

/// What a command prints. Its words are separated by white space; no shell reads them.
fn output(words: &str, folder: &Path, limit: Duration) -> Result<String, String> {
    let mut words = words.split_whitespace();
    let program = words.next().ok_or("${command:} names no program")?;
    let wrong = |error: io::Error| format!("running {program}: {error}");
    let mut command = Command::new(program);
    command
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut run = command.spawn().map_err(wrong)?;
    let deadline = Instant::now() + limit;
    let late = || {
        format!(
            "{program} has not ended within {limit:?}; write a command that prints the value and ends"
        )
    };
    let read = run.stdout.take().map(reading);
    // What it has started may hold the pipe open.
    let Some(text) = read.and_then(|read| read.recv_timeout(limit).ok()) else {
        end(&mut run);
        return Err(late());
    };
    let text = text.map_err(wrong)?;
    // Nobody reads the rest, which may end it by a signal.
    if text.len() > MAX_BYTES {
        end(&mut run);
        return Err(format!("{program} printed more than {MAX_BYTES} bytes"));
    }
    let status = loop {
        match run.try_wait().map_err(wrong)? {
            Some(status) => break status,
            None if Instant::now() < deadline => thread::sleep(Duration::from_millis(10)),
            None => {
                end(&mut run);
                return Err(late());
            }
        }
    };
    if !status.success() {
        return Err(format!("{program} ended with {status}"));
    }
    let text = String::from_utf8(text);
    let text = text.map_err(|_| format!("{program} printed what is not UTF-8"))?;
    Ok(trimmed(&text))
}

/// Ends a command, and what it has started, which is in its group.
fn end(run: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(run.id()).ok().and_then(Pid::from_raw) {
        // Until it is waited for, the number is its own.
        let _ = kill_process_group(group, Signal::KILL);
    }
    // It may have ended meanwhile.
    let _ = run.kill();
    let _ = run.wait();
}

/// Reads a pipe to its end on a thread, which sends the bytes.
fn reading(pipe: ChildStdout) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, read) = mpsc::channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        let all = pipe.take(MAX_BYTES as u64 + 1).read_to_end(&mut text);
        // Nobody waits any more if it is late.
        let _ = sender.send(all.map(|_| text));
    });
    read
}

/// Without the end of the last line, which editors and `echo` add.
fn trimmed(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text).to_owned()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Neither a command that does not end, nor one that leaves its output open, is waited for.
    #[test]
    fn a_command_that_does_not_end_is_given_up_and_one_that_prints_too_much_is_refused() {
        let folder = Path::new(".");
        let short = Duration::from_millis(300);
        let begun = Instant::now();
        // A script that ends while what it has started holds its output open.
        let name = format!("mcpbolt-leaving-{}.sh", std::process::id());
        let file = std::env::temp_dir().join(name);
        let left = file.with_extension("left");
        std::fs::write(&file, "sleep 60 &\necho $! > \"$1\"\n").unwrap();
        let leaves = format!("sh {} {}", file.display(), left.display());
        for words in ["sleep 60", &leaves] {
            let why = output(words, folder, short).unwrap_err();
            assert!(
                why.contains("has not ended within 300ms; write a command"),
                "{why}"
            );
        }
        // What it has left behind has ended with it.
        let left_behind = std::fs::read_to_string(&left).unwrap();
        let is_there = || {
            let state = std::fs::read_to_string(format!("/proc/{}/stat", left_behind.trim()));
            let asked = Command::new("sh")
                .args(["-c", &format!("kill -0 {left_behind}")])
                .stderr(Stdio::null())
                .status();
            // It has ended also where nobody takes note of that.
            asked.unwrap().success() && !state.is_ok_and(|state| state.contains(") Z"))
        };
        while is_there() && begun.elapsed() < Duration::from_secs(30) {
            thread::sleep(Duration::from_millis(10));
        }
        assert!(!is_there());
        for file in [file, left] {
            std::fs::remove_file(file).unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(30));
        // Neither one byte more than the limit, nor so much more that the command ends by a signal.
        for count in [MAX_BYTES + 1, 8 * MAX_BYTES] {
            let words = format!("head -c {count} /dev/zero");
            let why = output(&words, folder, LIMIT).unwrap_err();
            assert_eq!(why, "head printed more than 1048576 bytes");
        }
        assert_eq!(
            output("false", folder, LIMIT).unwrap_err(),
            "false ended with exit status: 1"
        );
        assert_eq!(output("echo x", folder, LIMIT).unwrap(), "x");
    }

    #[test]
    fn a_file_that_is_none_or_too_long_is_refused() {
        let name = format!("mcpbolt-long-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, "x".repeat(MAX_BYTES)).unwrap();
        assert_eq!(content(&file).unwrap().len(), MAX_BYTES);
        std::fs::write(&file, "x".repeat(MAX_BYTES + 1)).unwrap();
        assert_eq!(content(&file).unwrap_err(), "has more than 1048576 bytes");
        std::fs::remove_file(file).unwrap();
        assert_eq!(
            content(Path::new("/dev/zero")).unwrap_err(),
            "is no regular file"
        );
    }
}
