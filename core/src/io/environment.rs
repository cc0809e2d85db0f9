//! The environment variables that a child inherits by default.
//!
//! A server that a user configures is third-party code, which must not see the tokens and keys in the
//! client's environment. The list is that of the official clients, plus variables for the locale and
//! for temporary files.

use std::ffi::{OsStr, OsString};

/// The names that a child inherits by default.
#[cfg(not(windows))]
pub const INHERITED: &[&str] = &[
    "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ",
    "USER",
];

/// The names that a child inherits by default.
#[cfg(windows)]
pub const INHERITED: &[&str] = &[
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// The values of the named variables of this process. A value that begins like an exported shell
/// function is left out, since some shells run it.
pub(super) fn inherited<'a>(
    names: impl IntoIterator<Item = &'a OsStr>,
) -> impl Iterator<Item = (&'a OsStr, OsString)> {
    let named = names.into_iter();
    named
        .filter_map(|name| std::env::var_os(name).map(|value| (name, value)))
        .filter(|(_, value)| !value.as_encoded_bytes().starts_with(b"()"))
}
