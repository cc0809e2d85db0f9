//! The measured servers and programs. Each language defines its own.

use crate::load::Start;

/// All subjects of one language.
pub struct Subjects {
    pub servers: Vec<Subject>,
    pub probes: Vec<Probe>,
}

/// A server that offers `echo`.
pub struct Subject {
    pub name: &'static str,
    pub by: By,
    /// How to start it; on HTTP, `{port}` stands for the port to listen on.
    pub start: Start,
    /// The server on the same carrier to compare with.
    pub than: Option<&'static str>,
}

/// The carrier and revision of the calls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Over pipes, in revision 2025-11-25.
    Stdio,
    /// Stateless requests over HTTP, in revision 2026-07-28.
    Http,
    /// Requests of one session over HTTP, in revision 2025-11-25.
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

/// A program that loads something, then writes a line and keeps running.
pub struct Probe {
    pub name: &'static str,
    pub words: Vec<String>,
}
