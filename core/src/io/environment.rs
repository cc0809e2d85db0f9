//! Which of this process's variables a child sees when nothing else is asked for.
//!
//! A server that a user configures is other people's code: tokens and keys in the environment of
//! the client are not its business. The list is the one of the official clients, plus what the
//! locale and temporary files need.

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

/// The listed variables of this process. A value that begins like an exported shell function is
/// left out: some shells run it.
pub(super) fn inherited<'a>(
    names: impl IntoIterator<Item = &'a OsStr>,
) -> impl Iterator<Item = (&'a OsStr, OsString)> {
    let named = names.into_iter();
    named
        .filter_map(|name| std::env::var_os(name).map(|value| (name, value)))
        .filter(|(_, value)| !value.as_encoded_bytes().starts_with(b"()"))
}
