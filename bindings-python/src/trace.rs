//! The wire, written down: one line for each frame, secrets masked, straight from the engine.

use std::fs::OpenOptions;
use std::io::{self, Write, stderr};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use mcpbolt::connection::{Direction, Trace};

/// A trace appended to the file of that name; to stderr when it is `-`.
pub fn open(path: &Path) -> io::Result<Trace> {
    let sink: Box<dyn Write + Send> = match path == Path::new("-") {
        true => Box::new(stderr()),
        false => Box::new(OpenOptions::new().append(true).create(true).open(path)?),
    };
    let sink = Mutex::new(sink);
    Ok(Trace::new(move |direction, frame| {
        let arrow = match direction {
            Direction::In => "<-",
            Direction::Out => "->",
        };
        let line = format!("{arrow} {frame}\n");
        let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk is no reason to stop serving.
        let _ = sink.write_all(line.as_bytes());
    }))
}
