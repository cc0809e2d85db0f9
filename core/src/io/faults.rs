//! Errors of the caller: a value that is not valid, and a feature that is not built in.

use std::error::Error;
use std::io;

/// An error about a value that is not valid.
pub(super) fn invalid(why: impl Into<Box<dyn Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// An error about something that this system, this address or this build does not support.
#[cfg(feature = "net")]
pub(super) fn unsupported(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, why)
}
