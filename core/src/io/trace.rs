//! The wire, written down: one line for each frame, secrets masked.
//!
//! `MCPBOLT_TRACE` names a folder in which every connection of a process writes a file of its
//! own, `SIDE-PID-N.trace`: so that the wire of a server that somebody else starts can be seen
//! without a change to it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use crate::connection::{Config, Direction, Trace};
use crate::mcp::Side;

/// The variable that names the folder.
pub const TRACE_VARIABLE: &str = "MCPBOLT_TRACE";

/// A trace that is appended to the file of that name, or written to stderr when it is `-`. What
/// came in follows `<-`, what went out `->`.
///
/// # Errors
/// When the file cannot be opened.
pub fn trace_to(path: &Path) -> io::Result<Trace> {
    let sink: Box<dyn Write + Send> = match path == Path::new("-") {
        true => Box::new(io::stderr()),
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

/// The configuration with the trace that the environment asks for with [`TRACE_VARIABLE`], if it
/// does and there is none yet. What this crate connects by itself does so.
///
/// # Errors
/// When there is no such folder and none can be made, or no file in it.
pub fn traced(config: Arc<Config>) -> io::Result<Arc<Config>> {
    static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
    let folder = std::env::var_os(TRACE_VARIABLE).filter(|name| !name.is_empty());
    let (None, Some(folder)) = (&config.trace, folder) else {
        return Ok(config);
    };
    let side = match config.side {
        Side::Client => "client",
        Side::Server => "server",
    };
    let number = CONNECTIONS.fetch_add(1, Relaxed);
    let name = format!("{side}-{}-{number}.trace", std::process::id());
    let path = PathBuf::from(&folder).join(name);
    let made = fs::create_dir_all(&folder).and_then(|()| trace_to(&path));
    let trace = made.map_err(|error| {
        let path = path.display();
        io::Error::new(error.kind(), format!("{TRACE_VARIABLE}: {path}: {error}"))
    })?;
    Ok(Arc::new(Config {
        trace: Some(trace),
        ..Config::clone(&config)
    }))
}
