//! Values that stand elsewhere: `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${file:PATH}` and
//! `${command:PROGRAM ARGUMENT …}`.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

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
            let read = std::fs::read_to_string(&path);
            let text = read.map_err(|error| format!("reading {}: {error}", path.display()))?;
            Ok(trimmed(&text))
        }
        Some(("command", words)) => output(words, folder),
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

/// What a command prints. Its words are separated by white space; no shell reads them.
fn output(words: &str, folder: &Path) -> Result<String, String> {
    let mut words = words.split_whitespace();
    let program = words.next().ok_or("${command:} names no program")?;
    let run = Command::new(program)
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("running {program}: {error}"))?;
    if !run.status.success() {
        return Err(format!("{program} ended with {}", run.status));
    }
    let text = String::from_utf8(run.stdout)
        .map_err(|_| format!("{program} printed what is not UTF-8"))?;
    Ok(trimmed(&text))
}

/// Without the end of the last line, which editors and `echo` add.
fn trimmed(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text).to_owned()
}
