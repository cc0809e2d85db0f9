//! What a service manager such as systemd hands to a service: listening sockets (`sd_listen_fds(3)`) and a socket on which
//! the service says how far it is (`sd_notify(3)`).

use std::collections::HashSet;
use std::env;
use std::io;
use std::sync::Mutex;

use anyhow::{Result, bail};
use listenfd::ListenFd;
use mcpbolt::io::Listener;

/// The name of the socket for MCP, if there are several (`FileDescriptorName=` of the socket's unit).
pub const MCP: &str = "mcp";

/// The name of the socket for the addresses of health.
pub const HEALTH: &str = "health";

/// The sockets that this process was started with, each until it is taken.
pub struct Handed(Mutex<Vec<(String, Option<Taken>)>>);

enum Taken {
    Tcp(std::net::TcpListener),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixListener),
}

impl Handed {
    /// Reads the environment, which has no such sockets afterwards.
    ///
    /// # Errors
    /// When a descriptor is no listening socket, or there are several that their names do not tell apart.
    pub fn new() -> Result<Self> {
        let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut fds = ListenFd::from_env();
        let mut all = Vec::new();
        for index in 0..fds.len() {
            let name = names.next().unwrap_or_default().to_owned();
            all.push((name, Some(taken(&mut fds, index)?)));
        }
        let is_named = |(name, _): &(String, _)| name == MCP || name == HEALTH;
        if all.len() > 1 && !all.iter().all(is_named) {
            bail!(
                "the service manager handed over {} sockets; name them {MCP} and {HEALTH} by FileDescriptorName=",
                all.len()
            );
        }
        if let Some(name) = repeated(all.iter().map(|(name, _)| name.as_str())) {
            bail!(
                "the service manager handed over several sockets named {name}; one is served, so give the socket unit one ListenStream="
            );
        }
        Ok(Self(Mutex::new(all)))
    }

    /// The socket for MCP: the one of that name, or the only one.
    pub fn mcp(&self) -> Result<Option<Listener>> {
        let found = self.take(|name| name != HEALTH);
        Ok(match found {
            None => None,
            // The descriptor is checked: it must listen.
            #[cfg(unix)]
            Some(Taken::Tcp(listener)) => {
                Some(Listener::try_from(std::os::fd::OwnedFd::from(listener))?)
            }
            #[cfg(unix)]
            Some(Taken::Unix(listener)) => {
                Some(Listener::try_from(std::os::fd::OwnedFd::from(listener))?)
            }
            #[cfg(not(unix))]
            Some(Taken::Tcp(listener)) => Some(listener.into()),
        })
    }

    /// The socket for the addresses of health.
    ///
    /// # Errors
    /// When it is no TCP socket.
    pub fn health(&self) -> Result<Option<std::net::TcpListener>> {
        match self.take(|name| name == HEALTH) {
            None => Ok(None),
            Some(Taken::Tcp(listener)) => Ok(Some(listener)),
            #[cfg(unix)]
            Some(Taken::Unix(_)) => bail!(
                "the service manager handed over a Unix socket named {HEALTH}; health is answered over TCP, as with ListenStream=127.0.0.1:9090"
            ),
        }
    }

    fn take(&self, is_it: impl Fn(&str) -> bool) -> Option<Taken> {
        let mut all = self.0.lock().ok()?;
        let found = all.iter_mut().find(|(name, _)| is_it(name))?;
        found.1.take()
    }
}

/// A name that occurs more than once.
fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = HashSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

fn taken(fds: &mut ListenFd, index: usize) -> io::Result<Taken> {
    let missing = || io::Error::other("the service manager handed over no socket");
    #[cfg(unix)]
    if let Ok(Some(listener)) = fds.take_unix_listener(index) {
        return Ok(Taken::Unix(listener));
    }
    fds.take_tcp_listener(index)?
        .map(Taken::Tcp)
        .ok_or_else(missing)
}

/// Tells the service manager how far the service is; nothing if it has not asked.
pub fn notify(state: &str) {
    #[cfg(unix)]
    if let Some(path) = env::var_os("NOTIFY_SOCKET") {
        // A manager that does not listen is not told.
        let _ = send(&path, state);
    }
    #[cfg(not(unix))]
    let _ = state;
}

#[cfg(unix)]
fn send(path: &std::ffi::OsStr, state: &str) -> io::Result<()> {
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let socket = UnixDatagram::unbound()?;
    let to = match path.to_string_lossy().strip_prefix('@') {
        #[cfg(target_os = "linux")]
        Some(name) => {
            use std::os::linux::net::SocketAddrExt;
            SocketAddr::from_abstract_name(name)?
        }
        _ => SocketAddr::from_pathname(path)?,
    };
    socket.send_to_addr(state.as_bytes(), &to)?;
    Ok(())
}
