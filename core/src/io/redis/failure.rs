//! Errors of the library, as errors of a store. They show neither arguments nor credentials.

use redis::{ErrorKind, RedisError};

use crate::store::{StoreError, StoreFault};

/// The codes by which a server says why it refuses a command.
const CODES: [&str; 7] = [
    "OOM",
    "WRONGTYPE",
    "NOPERM",
    "NOAUTH",
    "WRONGPASS",
    "READONLY",
    "LOADING",
];

/// The code of an error. That of a command in a script stands within the text, where Redis 6 answers.
fn code(error: &RedisError) -> &str {
    let own = error.code().unwrap_or_default();
    let text = error.detail().unwrap_or_default();
    let mut words = text.split(|letter: char| !letter.is_ascii_uppercase());
    match own {
        "ERR" => words.find(|word| CODES.contains(word)).unwrap_or(own),
        own => own,
    }
}

/// An error of a command that was sent to `server`.
pub fn failed(server: &str, error: &RedisError) -> StoreError {
    let (fault, what) = match (error.kind(), code(error)) {
        _ if error.is_timeout() => (StoreFault::TimedOut, "did not answer in time".to_owned()),
        (ErrorKind::Io, _) => (
            StoreFault::Broken,
            format!("broke off the connection ({error})"),
        ),
        (_, "OOM") => (
            StoreFault::Full,
            "has no memory left (maxmemory)".to_owned(),
        ),
        (ErrorKind::AuthenticationFailed, _) | (_, "NOAUTH" | "WRONGPASS") => (
            StoreFault::Refused,
            "does not accept the user and the password".to_owned(),
        ),
        (_, "NOPERM") => (
            StoreFault::Refused,
            "does not give the user the rights that a store needs".to_owned(),
        ),
        (_, "READONLY") => (
            StoreFault::Refused,
            "is a replica, which cannot be written to".to_owned(),
        ),
        (_, "WRONGTYPE") => (
            StoreFault::Unreadable,
            "has a key of another program under this prefix".to_owned(),
        ),
        (_, "MOVED") => (
            StoreFault::Refused,
            "is a node of a cluster; write redis+cluster:// in its address".to_owned(),
        ),
        (ErrorKind::Parse | ErrorKind::UnexpectedReturnType, _) => (
            StoreFault::Unreadable,
            "answered something that this version does not know".to_owned(),
        ),
        (ErrorKind::Server(_) | ErrorKind::Extension, code) => (
            StoreFault::Unavailable,
            format!("answered with the error {code}"),
        ),
        _ => (
            StoreFault::Unavailable,
            format!("cannot be used ({})", error.category()),
        ),
    };
    StoreError::new(fault, format!("the store at {server} {what}"))
}

/// An error of a connection that was not established.
pub fn unreachable(server: &str, error: &RedisError) -> StoreError {
    let told = failed(server, error);
    match told.fault() {
        StoreFault::Broken | StoreFault::TimedOut => StoreError::new(
            StoreFault::Unavailable,
            format!("the store at {server} cannot be reached ({error})"),
        ),
        _ => told,
    }
}

/// Whether the connection is of no more use. A server that has become a replica keeps its connections, while its address
/// may lead to the one that took its place.
pub fn is_broken(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_unrecoverable_error()
        || error.kind() == ErrorKind::ClusterConnectionNotFound
        || code(error) == "READONLY"
}
