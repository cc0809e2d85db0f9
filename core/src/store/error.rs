//! Failures of a store.

use std::fmt;

use crate::error::{Origin, Scope};

/// The kind of a [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreFault {
    /// The store cannot be reached, or serves nobody at present.
    Unavailable,
    /// The connection to the store broke off before its answer came.
    Broken,
    /// The store did not answer in time.
    TimedOut,
    /// The store accepts no such request: wrong credentials, missing rights, or a replica that only reads.
    Refused,
    /// The store has no room for more.
    Full,
    /// An argument exceeds its bounds. Nothing was sent.
    Misuse,
    /// The content is not what this version, with its keys, has written.
    Unreadable,
}

impl StoreFault {
    /// A stable identifier for programs, such as `timed_out`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Broken => "broken",
            Self::TimedOut => "timed_out",
            Self::Refused => "refused",
            Self::Full => "full",
            Self::Misuse => "misuse",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Why a verb of a store failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    fault: StoreFault,
    why: Box<str>,
}

impl StoreError {
    /// An error with a description, which contains neither secrets nor contents.
    pub fn new(fault: StoreFault, why: impl Into<Box<str>>) -> Self {
        Self {
            fault,
            why: why.into(),
        }
    }

    /// The kind of failure.
    pub fn fault(&self) -> StoreFault {
        self.fault
    }

    /// Whether the verb may have been carried out all the same: its answer was lost.
    pub fn may_have_happened(&self) -> bool {
        matches!(self.fault, StoreFault::Broken | StoreFault::TimedOut)
    }

    /// How much the error ends.
    pub fn scope(&self) -> Scope {
        Scope::Request
    }

    /// The side that caused the error.
    pub fn origin(&self) -> Origin {
        match self.fault {
            StoreFault::Misuse => Origin::Caller,
            StoreFault::Unavailable | StoreFault::Broken | StoreFault::TimedOut => Origin::Io,
            StoreFault::Refused | StoreFault::Full | StoreFault::Unreadable => Origin::Engine,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for StoreError {}
