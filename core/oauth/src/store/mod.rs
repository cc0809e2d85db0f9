//! Where credentials are kept between logins.
//!
//! ```
//! use mcpbolt_oauth::store::{CredentialStore, FileStore, MemoryStore};
//! let forgetful: Box<dyn CredentialStore> = Box::new(MemoryStore::default());
//! let lasting: Box<dyn CredentialStore> = Box::new(FileStore::at("/var/lib/agent/credentials"));
//! ```

mod apart;
mod document;
mod file;
mod folder;
mod memory;
mod turns;

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;

pub use file::FileStore;
pub use folder::FOLDER_VARIABLE;
pub use memory::MemoryStore;

/// A future of a [`CredentialStore`].
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// Keeps small secret documents by key: clients' registrations, tokens, and what was discovered about
/// servers. Keys and documents are texts made by this crate; a store does not interpret them.
///
/// Several processes may use one store. A caller that reads a document, changes it and writes it back
/// holds the key's [lock](Self::lock) meanwhile, so that a refresh token is used once. `load`, `save` and
/// `remove` do not take the lock themselves.
pub trait CredentialStore: Send + Sync + 'static {
    /// The document of `key`, or `None`.
    ///
    /// # Errors
    /// When there is a document that cannot be read. The store leaves such a document as it is.
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<String>>;

    /// Replaces the document of `key`: whole, or, if the process dies meanwhile, not at all.
    fn save<'a>(&'a self, key: &'a str, document: &'a str) -> Stored<'a, ()>;

    /// Removes the document of `key`, if there is one.
    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()>;

    /// Waits until nobody else holds `key`, in this process or another. Other keys can be held meanwhile:
    /// whoever logs in keeps tokens during the login. The lock of a process that dies is released. A future
    /// that is dropped before it is ready takes no lock.
    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, KeyLock>;
}

/// A lock on one key, released on drop.
pub struct KeyLock(#[expect(dead_code, reason = "held until it is dropped")] Box<dyn Any + Send>);

impl KeyLock {
    /// A lock that is released when `held` is dropped.
    pub fn new(held: impl Send + 'static) -> Self {
        Self(Box::new(held))
    }
}

impl fmt::Debug for KeyLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLock(..)")
    }
}
