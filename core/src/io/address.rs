//! The addresses of servers, in one syntax for every transport, in every language and on the command
//! line.

use std::convert::Infallible;
use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::frame::Framing;

/// The address of a server.
///
/// | address | as a server | as a client |
/// |---|---|---|
/// | `stdio:` | this process's stdin and stdout | |
/// | `stdio:COMMAND ARGS…` | | a child process, its arguments quoted as in a shell |
/// | `unix:/path` | a Unix socket at that path | the same |
/// | `tcp:host:port` | a TCP socket; port 0 lets the system choose | the same |
/// | `http://host:port/path`, `https://…` | Streamable HTTP, and WebSocket at that path | Streamable HTTP |
/// | `ws://host:port/path`, `wss://…` | the same as `http`, `https` | WebSocket |
///
/// On Unix and TCP sockets each message is a line. With `?framing=length` after the address, four bytes
/// of length precede each message instead; with `?framing=detect` a server tells the two apart by the
/// first byte (R-STD-15, R-ACT-19).
///
/// ```
/// use mcpbolt::io::Address;
/// let address: Address = "tcp:localhost:7000?framing=length".parse()?;
/// assert_eq!(address.to_string(), "tcp:localhost:7000?framing=length");
/// assert!("ftp://example.com".parse::<Address>().is_err());
/// # Ok::<(), mcpbolt::io::AddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Address {
    /// A child process started with these words, or this process's own stdin and stdout if there are
    /// none.
    Stdio(Vec<String>),
    /// A Unix socket.
    Unix {
        /// Its path in the file system.
        path: PathBuf,
        /// How messages are delimited.
        framing: Framing,
    },
    /// A TCP socket.
    Tcp {
        /// A name or an IP address; IPv6 without its brackets.
        host: String,
        /// The port.
        port: u16,
        /// How messages are delimited.
        framing: Framing,
    },
    /// Streamable HTTP.
    Http(Url),
    /// WebSocket.
    WebSocket(Url),
}

/// The part of an `http`, `https`, `ws` or `wss` address that follows the scheme.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Url {
    /// Whether TLS is used: `https` and `wss`.
    pub secure: bool,
    /// A name or an IP address; IPv6 without its brackets.
    pub host: String,
    /// The port; 80, or 443 with TLS, if the address names none.
    pub port: u16,
    /// The path, with the query if there is one; at least `/`.
    pub path: String,
}

/// The error for a text that is not an address; it says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError {
    address: Box<str>,
    why: &'static str,
}

impl Address {
    /// What others may be told about it: without arguments, paths and queries, which may be secret.
    pub fn public_name(&self) -> String {
        let whole = self.to_string();
        match self {
            Self::Stdio(words) => {
                let program = words.first().map_or("stdio", String::as_str);
                let name = std::path::Path::new(program).file_name();
                name.unwrap_or_default().to_string_lossy().into_owned()
            }
            Self::Http(url) | Self::WebSocket(url) => {
                let scheme = whole.split(':').next().unwrap_or_default();
                format!("{scheme}://{}", url.authority())
            }
            _ => whole,
        }
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, why } = self;
        write!(f, "not an address, {address:?}: {why}")
    }
}

impl std::error::Error for AddressError {}

impl From<AddressError> for std::io::Error {
    fn from(error: AddressError) -> Self {
        Self::new(std::io::ErrorKind::InvalidInput, error)
    }
}

impl From<Infallible> for AddressError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl TryFrom<&str> for Address {
    type Error = AddressError;

    fn try_from(text: &str) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl TryFrom<&String> for Address {
    type Error = AddressError;

    fn try_from(text: &String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<&Self> for Address {
    fn from(address: &Self) -> Self {
        address.clone()
    }
}

const SCHEMES: &str = "it begins with stdio:, unix:, tcp:, http://, https://, ws:// or wss://";
const FRAMINGS: &str = "the framing is line, length or detect";
const PORT: &str = "a port, 0 to 65535, follows the host, as in tcp:localhost:7000";
const HOST: &str = "the host is a name in ASCII, an IPv4 number, or an IPv6 number in brackets";

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        parse(text).map_err(|why| AddressError {
            address: shown(text),
            why,
        })
    }
}

/// The text of an address without the part before an `@`, which may be a password.
fn shown(text: &str) -> Box<str> {
    let Some((before, after)) = text.rsplit_once('@') else {
        return text.into();
    };
    let (scheme, rest) = before.split_once(':').unwrap_or_default();
    let colon = if scheme.is_empty() { "" } else { ":" };
    let slashes = if rest.starts_with("//") { "//" } else { "" };
    format!("{scheme}{colon}{slashes}…@{after}").into()
}

fn parse(text: &str) -> Result<Address, &'static str> {
    let (scheme, rest) = text.split_once(':').ok_or(SCHEMES)?;
    let url = |secure| Url::parse(secure, rest);
    match scheme.to_ascii_lowercase().as_str() {
        "stdio" => Ok(Address::Stdio(words(rest)?)),
        "unix" => {
            let (path, framing) = framing(rest)?;
            let path = match path.strip_prefix("//") {
                // As in unix:///run/mcp.sock.
                Some(path) if path.starts_with('/') => path,
                _ => path,
            };
            match path {
                "" => Err("a path follows, as in unix:/run/mcp.sock"),
                path => Ok(Address::Unix {
                    path: path.into(),
                    framing,
                }),
            }
        }
        "tcp" => {
            let (authority, framing) = framing(rest)?;
            let authority = authority.strip_prefix("//").unwrap_or(authority);
            let (host, port) = host_and_port(authority)?;
            let port = port.ok_or(PORT)?;
            Ok(Address::Tcp {
                host,
                port,
                framing,
            })
        }
        "http" => Ok(Address::Http(url(false)?)),
        "https" => Ok(Address::Http(url(true)?)),
        "ws" => Ok(Address::WebSocket(url(false)?)),
        "wss" => Ok(Address::WebSocket(url(true)?)),
        _ => Err(SCHEMES),
    }
}

impl Url {
    fn parse(secure: bool, rest: &str) -> Result<Self, &'static str> {
        let rest = rest
            .strip_prefix("//")
            .ok_or("two slashes and a host follow, as in http://localhost:8000/mcp")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err("a name and a password are not part of an address: they are credentials");
        }
        if path.contains('#') {
            return Err("it has no fragment");
        }
        let visible = |byte: u8| byte.is_ascii_graphic();
        if !path.bytes().all(visible) {
            return Err("the path is in ASCII without spaces: percent-encode the rest");
        }
        let (host, port) = host_and_port(authority)?;
        Ok(Self {
            secure,
            host,
            port: port.unwrap_or(default_port(secure)),
            path: match path.starts_with('/') {
                true => path.to_owned(),
                false => format!("/{path}"),
            },
        })
    }

    /// The host as `Host` contains it, without a port.
    #[cfg(feature = "http")]
    pub(super) fn bracketed_host(&self) -> String {
        bracketed(&self.host).to_string()
    }

    /// The host and, unless it is the default of the scheme, the port: the value of `Host`.
    pub fn authority(&self) -> String {
        let host = bracketed(&self.host);
        match self.port == default_port(self.secure) {
            true => host.to_string(),
            false => format!("{host}:{}", self.port),
        }
    }
}

fn default_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

/// Splits the framing off an address.
fn framing(text: &str) -> Result<(&str, Framing), &'static str> {
    let Some((before, name)) = text.rsplit_once("?framing=") else {
        return Ok((text, Framing::Line));
    };
    Ok((before, Framing::parse(name).ok_or(FRAMINGS)?))
}

fn host_and_port(authority: &str) -> Result<(String, Option<u16>), &'static str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or(HOST)?;
            host.parse::<Ipv6Addr>().map_err(|_| HOST)?;
            let port = match rest {
                "" => None,
                rest => Some(rest.strip_prefix(':').ok_or(PORT)?),
            };
            (host, port)
        }
        None => {
            let (host, port) = match authority.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            };
            let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            if host.is_empty() || !host.bytes().all(of_name) {
                return Err(HOST);
            }
            (host, port)
        }
    };
    // `parse` alone would accept a sign.
    let read = |port: &str| match port.bytes().all(|byte| byte.is_ascii_digit()) {
        true => port.parse().map_err(|_| PORT),
        false => Err(PORT),
    };
    Ok((host.to_owned(), port.map(read).transpose()?))
}

/// Splits a command into words at spaces. `'…'` quotes everything; in `"…"` and in bare text a
/// backslash escapes.
fn words(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => {
                let c = rest.next().ok_or("nothing follows the last backslash")?;
                word.get_or_insert_default().push(c);
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed");
    }
    words.extend(word);
    match words.first() {
        Some(program) if program.is_empty() => Err("the command has no name"),
        _ => Ok(words),
    }
}

/// A host as an address contains it.
fn bracketed(host: &str) -> impl fmt::Display + '_ {
    let (open, close) = match host.contains(':') {
        true => ("[", "]"),
        false => ("", ""),
    };
    fmt::from_fn(move |f| write!(f, "{open}{host}{close}"))
}

fn suffix(framing: Framing) -> &'static str {
    match framing {
        Framing::Length => "?framing=length",
        Framing::Detect => "?framing=detect",
        _ => "",
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = |f: &mut fmt::Formatter<'_>, scheme: &str, url: &Url| {
            let s = if url.secure { "s" } else { "" };
            write!(f, "{scheme}{s}://{}{}", url.authority(), url.path)
        };
        match self {
            Self::Stdio(words) => {
                f.write_str("stdio:")?;
                for (at, word) in words.iter().enumerate() {
                    let space = if at > 0 { " " } else { "" };
                    write!(f, "{space}{}", quoted(word))?;
                }
                Ok(())
            }
            Self::Unix { path, framing } => {
                write!(f, "unix:{}{}", path.display(), suffix(*framing))
            }
            Self::Tcp {
                host,
                port,
                framing,
            } => write!(f, "tcp:{}:{port}{}", bracketed(host), suffix(*framing)),
            Self::Http(of) => url(f, "http", of),
            Self::WebSocket(of) => url(f, "ws", of),
        }
    }
}

/// A word as a command contains it.
fn quoted(word: &str) -> std::borrow::Cow<'_, str> {
    let special = |c: char| c.is_whitespace() || "'\"\\".contains(c);
    match word.is_empty() || word.contains(special) {
        true => format!("'{}'", word.replace('\'', r"'\''")).into(),
        false => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_alike() {
        for (text, canonical) in [
            ("stdio:", ""),
            ("stdio:python server.py --quiet", ""),
            (
                r#"stdio:a 'b c' "d \" e" f\ g ''"#,
                r#"stdio:a 'b c' 'd " e' 'f g' ''"#,
            ),
            (r"stdio:it\'s", r"stdio:'it'\''s'"),
            ("unix:/run/mcp.sock", ""),
            ("unix:///run/mcp.sock", "unix:/run/mcp.sock"),
            ("unix:here.sock?framing=length", ""),
            ("unix:/odd?name", ""),
            ("tcp:127.0.0.1:7000", ""),
            (
                "tcp://localhost:0?framing=detect",
                "tcp:localhost:0?framing=detect",
            ),
            ("tcp:[::1]:7000?framing=line", "tcp:[::1]:7000"),
            ("http://localhost:8000/mcp", ""),
            ("HTTP://localhost:80/mcp", "http://localhost/mcp"),
            ("https://example.com", "https://example.com/"),
            (
                "https://example.com:80?key=v",
                "https://example.com:80/?key=v",
            ),
            ("ws://[::1]:8000/mcp", ""),
            ("wss://example.com:443/mcp", "wss://example.com/mcp"),
        ] {
            let address: Address = text.parse().unwrap();
            let canonical = if canonical.is_empty() {
                text
            } else {
                canonical
            };
            assert_eq!(address.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(address), "{canonical}");
        }
    }

    #[test]
    fn what_is_no_address_is_told_what_would_be() {
        for (text, why) in [
            ("", SCHEMES),
            ("localhost", SCHEMES),
            ("localhost:8000", SCHEMES),
            ("ftp://example.com", SCHEMES),
            ("unix:", "a path follows"),
            ("tcp:localhost", PORT),
            ("tcp:localhost:", PORT),
            ("tcp:localhost:+1", PORT),
            ("tcp:localhost:65536", PORT),
            ("tcp:[::1]7000", PORT),
            ("tcp:::1:7000", HOST),
            ("tcp::7000", HOST),
            ("tcp:[::x]:7000", HOST),
            ("tcp:localhost:7000?framing=none", FRAMINGS),
            ("http:localhost", "two slashes"),
            ("http:///mcp", HOST),
            ("http://localhost/mcp#top", "fragment"),
            ("http://localhost/m cp", "percent-encode"),
            ("http://bücher.example/mcp", HOST),
            ("stdio:'open", "not closed"),
            ("stdio:'' a", "no name"),
            (r"stdio:a \", "backslash"),
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.why.contains(why), "{text:?}: {error}");
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn a_password_in_what_is_no_address_is_not_shown() {
        for (text, shown) in [
            ("https://me:hunter2@host/mcp", "https://…@host/mcp"),
            ("https://me:hunter2@in@host/mcp", "https://…@host/mcp"),
            ("http:me:hunter2@host", "http:…@host"),
            ("ftp://me:hunter2@host", "ftp://…@host"),
            ("tcp:me:hunter2@host:1", "tcp:…@host:1"),
            ("me:hunter2@host", "me:…@host"),
            ("hunter2@host", "…@host"),
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.to_string().contains(&format!("{shown:?}")), "{error}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{text}");
        }
        let error = "http://me:hunter2@host".parse::<Address>().unwrap_err();
        assert!(error.why.contains("credentials"), "{error}");
    }

    #[test]
    fn the_parts_are_what_they_say() {
        assert_eq!(
            "stdio:a 'b c'".parse(),
            Ok(Address::Stdio(vec!["a".into(), "b c".into()]))
        );
        let Ok(Address::Http(url)) = "https://[::1]/mcp?x=1".parse() else {
            panic!("no URL");
        };
        assert_eq!((url.host.as_str(), url.port), ("::1", 443));
        assert_eq!(
            (url.path.as_str(), url.authority().as_str()),
            ("/mcp?x=1", "[::1]")
        );
    }
}
