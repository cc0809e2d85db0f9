//! Unix sockets and their files.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use tokio::net::{UnixListener, UnixSocket};

/// Maximum number of connections waiting to be accepted.
const BACKLOG: u32 = 1024;

/// The file of a socket. Removed when dropped, unless another file has replaced it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode number of the file.
    identity: (u64, u64),
}

impl SocketFile {
    /// Removes the file, unless another one has replaced it.
    pub fn remove(&self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Listens at that path, accessible to this user only. A socket file that no server listens at is
/// replaced.
///
/// # Errors
/// When a server already listens there, or the file is not a socket; and as `bind`.
pub fn listen(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let listener = match bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            clear(path)?;
            bind(path)
        }
        bound => bound,
    };
    let named = |error: io::Error| {
        let path = path.display();
        io::Error::new(error.kind(), format!("{path}: {error}"))
    };
    let listener = listener.map_err(named)?;
    let file = SocketFile {
        path: path.to_owned(),
        identity: identity(path)?,
    };
    // For systems on which the mode of the socket does not carry over to its file.
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok((listener, file))
}

/// Binds and listens in one step: a file that nobody listens at may be replaced by another server.
fn bind(path: &Path) -> io::Result<UnixListener> {
    let socket = UnixSocket::new_stream()?;
    // Set before the file exists, so that no other user can open it in between.
    let _ = fchmod(&socket, Mode::RUSR | Mode::WUSR);
    socket.bind(path)?;
    socket.listen(BACKLOG)
}

/// Removes a socket file that nobody listens at.
fn clear(path: &Path) -> io::Result<()> {
    let in_use = |why: &str| {
        let path = path.display();
        io::Error::new(io::ErrorKind::AddrInUse, format!("{path}: {why}"))
    };
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(in_use("there is something else than a socket"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Err(in_use("a server listens there already")),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let file = fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}
