//! What is measured: rows of data, which each language has of its own.

use crate::load::Start;

/// All of one language.
pub struct Subjects {
    pub servers: Vec<Subject>,
    pub probes: Vec<Probe>,
}

/// A server that offers `echo`.
pub struct Subject {
    pub name: &'static str,
    pub by: By,
    /// How it is started; on HTTP, with `{port}` for where it is to listen.
    pub start: Start,
    /// With which server on the same carrier it is compared.
    pub than: Option<&'static str>,
}

/// How it is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// By its pipes, in the revision 2025-11-25.
    Stdio,
    /// By requests that stand alone, in the revision 2026-07-28.
    Http,
    /// By requests of one session, in the revision 2025-11-25.
    Session,
}

impl By {
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
            Self::Session => "HTTP, session",
        }
    }
}

/// A program that writes a line when it has loaded something, and stays.
pub struct Probe {
    pub name: &'static str,
    pub words: Vec<String>,
}
