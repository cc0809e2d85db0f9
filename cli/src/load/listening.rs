//! The processes that listen at an address of this machine. They are known on Linux alone.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use mcpbolt::io::Address;

/// The state of a TCP socket that listens, in `/proc/net/tcp`.
const TCP_LISTENS: &str = "0A";

/// The flag of a Unix socket that listens, in `/proc/net/unix`.
const UNIX_LISTENS: &str = "00010000";

/// The processes that listen at an address, as far as this user may see them; none for an address of another machine.
pub fn processes(address: &Address) -> Vec<u32> {
    let sockets = match (address, port(address)) {
        (_, Some(port)) => {
            let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
            let lines = tables.map(|table| lines(table, |line| of_tcp(line, port)));
            lines.concat()
        }
        (Address::Unix { path, .. }, _) => lines("/proc/net/unix", |line| of_unix(line, path)),
        _ => Vec::new(),
    };
    if sockets.is_empty() {
        return Vec::new();
    }
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let holds = |process: &u32| {
        let open = fs::read_dir(format!("/proc/{process}/fd"));
        let open = open.into_iter().flatten().flatten();
        let mut links = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        links.any(|link| {
            link.to_str()
                .is_some_and(|link| sockets.iter().any(|socket| socket == link))
        })
    };
    processes.filter(holds).collect()
}

/// The port of an address of this machine.
fn port(address: &Address) -> Option<u16> {
    let (host, port) = match address {
        Address::Http(url) | Address::WebSocket(url) => (&url.host, url.port),
        Address::Tcp { host, port, .. } => (host, *port),
        _ => return None,
    };
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    is_here.then_some(port)
}

/// The sockets that are found in the lines of a table.
fn lines(table: &str, socket: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let table = fs::read_to_string(table).unwrap_or_default();
    table.lines().skip(1).filter_map(socket).collect()
}

/// The name of the socket of a line of `/proc/net/tcp`, if it listens on the port.
fn of_tcp(line: &str, port: u16) -> Option<String> {
    let fields: Vec<_> = line.split_whitespace().collect();
    let (_, own) = fields.get(1)?.rsplit_once(':')?;
    let is_it = u16::from_str_radix(own, 16) == Ok(port) && fields.get(3) == Some(&TCP_LISTENS);
    is_it.then(|| fields.get(9).map(|inode| format!("socket:[{inode}]")))?
}

/// The name of the socket of a line of `/proc/net/unix`, if it listens at the path.
fn of_unix(line: &str, path: &Path) -> Option<String> {
    let fields: Vec<_> = line.splitn(8, ' ').collect();
    let [_, _, _, flags, _, _, inode, at] = fields.as_slice() else {
        return None;
    };
    // Inodes are aligned to the right.
    let (inode, at) = match inode.is_empty() {
        true => at.trim_start().split_once(' ')?,
        false => (*inode, *at),
    };
    let is_it = *flags == UNIX_LISTENS && Path::new(at) == path;
    is_it.then(|| format!("socket:[{inode}]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_have_ports() {
        for (address, here) in [
            ("http://localhost/mcp", Some(80)),
            ("https://127.0.0.1/mcp", Some(443)),
            ("ws://[::1]:8000/mcp", Some(8000)),
            ("tcp:127.0.0.2:9", Some(9)),
            ("http://example.com/mcp", None),
            ("unix:/run/mcp.sock", None),
        ] {
            let address: Address = address.parse().unwrap();
            assert_eq!(port(&address), here, "{address}");
        }
    }

    #[test]
    fn sockets_that_listen_are_found_in_the_tables() {
        let tcp = "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 52 1 0 100 0 0 10 0";
        assert_eq!(of_tcp(tcp, 8000).as_deref(), Some("socket:[52]"));
        assert_eq!(of_tcp(tcp, 8001), None);
        assert_eq!(of_tcp(&tcp.replace(" 0A ", " 01 "), 8000), None);
        let unix = |flags: &str, inode: &str| {
            format!("0000000000000000: 00000002 00000000 {flags} 0001 01 {inode} /run/a socket")
        };
        let path = Path::new("/run/a socket");
        for inode in ["   52", "52"] {
            let found = of_unix(&unix(UNIX_LISTENS, inode), path);
            assert_eq!(found.as_deref(), Some("socket:[52]"));
        }
        assert_eq!(of_unix(&unix("00000000", "52"), path), None);
        assert_eq!(
            of_unix(&unix(UNIX_LISTENS, "52"), Path::new("/run/a")),
            None
        );
    }
}
