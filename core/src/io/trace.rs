//! Traces of connections: one line for each frame, with secrets masked.
//!
//! `MCPBOLT_TRACE` names a folder in which every connection of a process writes a file of its own,
//! `SIDE-PID-N-RANDOM.trace`. So the messages of a server that another program starts can be seen
//! without changing that program. On Unix these files, and the folder if it is created here, are
//! accessible to their owner only. An existing file or a symbolic link is never written to.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crate::connection::{Config, Direction, Trace};
use crate::mcp::Side;
use crate::sync::lock;
use crate::unguessable;

/// The environment variable that names the folder of the traces.
pub const TRACE_VARIABLE: &str = "MCPBOLT_TRACE";

/// A trace that is appended to the file at `path`, or written to stderr if `path` is `-`. Received
/// frames follow `<-`, sent frames `->`. On Unix the file becomes readable and writable for its owner
/// only.
///
/// # Errors
/// When the file cannot be opened, belongs to another user, or its name is a symbolic link.
pub fn trace_to(path: &Path) -> io::Result<Trace> {
    if path == Path::new("-") {
        return Ok(trace(io::stderr()));
    }
    let file = private(OpenOptions::new().append(true).create(true)).open(path)?;
    keep_private(&file)?;
    Ok(trace(file))
}

fn trace(sink: impl Write + Send + 'static) -> Trace {
    let sink = Mutex::new(sink);
    Trace::new(move |direction, frame| {
        let arrow = match direction {
            Direction::In => "<-",
            Direction::Out => "->",
        };
        let line = format!("{arrow} {frame}\n");
        // A full disk is no reason to stop serving.
        let _ = lock(&sink).write_all(line.as_bytes());
    })
}

/// Options for files that only their owner can access, and that must not be symbolic links.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits();
        // The flags of open(2) fit in its type.
        options.mode(0o600).custom_flags(no_follow as i32);
    }
    options
}

/// Removes other users' access to a file that existed before.
fn keep_private(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        use std::os::unix::fs::PermissionsExt;
        return file.set_permissions(PermissionsExt::from_mode(0o600));
    }
    let _ = file;
    Ok(())
}

/// Creates a folder, and those above it, for its owner only; an existing folder is not changed.
fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Creates a file whose name begins with `stem` and cannot be guessed.
fn file_in(folder: &Path, stem: &str) -> io::Result<File> {
    let random = unguessable::name().ok_or_else(|| io::Error::other("no randomness"))?;
    make_folder(folder)?;
    let mut options = OpenOptions::new();
    let options = private(options.append(true).create_new(true));
    options.open(folder.join(format!("{stem}-{random}.trace")))
}

/// Adds the trace that [`TRACE_VARIABLE`] asks for, if it is set and there is no trace yet. Connections
/// that this crate opens or accepts do so automatically.
///
/// # Errors
/// When the folder or the file in it cannot be created.
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
    let folder = Path::new(&folder);
    let file = file_in(folder, &format!("{side}-{}-{number}", std::process::id()));
    let file = file.map_err(|error| {
        let folder = folder.display();
        io::Error::new(error.kind(), format!("{TRACE_VARIABLE}: {folder}: {error}"))
    })?;
    Ok(Arc::new(Config {
        trace: Some(trace(file)),
        ..Config::clone(&config)
    }))
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> Option<u32> {
        fs::metadata(path).map(|it| it.mode() & 0o777).ok()
    }

    /// Other users cannot read a trace, nor have one written through a link of theirs.
    #[test]
    fn traces_are_private_and_follow_no_link() {
        let name = format!("mcpbolt-trace-{}", unguessable::name().unwrap());
        let root = std::env::temp_dir().join(name);
        let folder = root.join("traces");
        for _ in 0..2 {
            file_in(&folder, "server-1-0").unwrap();
        }
        assert_eq!((mode(&root), mode(&folder)), (Some(0o700), Some(0o700)));
        let files: Vec<_> = fs::read_dir(&folder).unwrap().map(Result::unwrap).collect();
        assert_eq!(files.len(), 2, "each connection has a file of its own");
        for file in &files {
            assert_eq!(mode(&file.path()), Some(0o600));
            let name = file.file_name().into_string().unwrap();
            assert!(name.starts_with("server-1-0-") && name.ends_with(".trace"));
            assert!(name.len() > 32, "{name}");
        }

        let plain = root.join("plain.trace");
        fs::write(&plain, "before\n").unwrap();
        fs::set_permissions(&plain, PermissionsExt::from_mode(0o644)).unwrap();
        trace_to(&plain).unwrap();
        assert_eq!(mode(&plain), Some(0o600));
        assert_eq!(fs::read(&plain).unwrap(), b"before\n");

        let target = root.join("target");
        fs::write(&target, "").unwrap();
        for (to, link) in [(&target, "link"), (&root.join("nothing"), "dangling")] {
            symlink(to, root.join(link)).unwrap();
            assert!(trace_to(&root.join(link)).is_err(), "{link}");
        }
        assert!(!root.join("nothing").exists());
        fs::remove_dir_all(root).unwrap();
    }
}
