//! Credentials in memory.

use std::collections::HashMap;
use std::fmt;
use std::future::ready;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::turns::KeyTurns;
use super::{CredentialStore, KeyLock, Stored};

/// Keeps credentials until it is dropped.
#[derive(Default)]
pub struct MemoryStore {
    documents: Mutex<HashMap<String, String>>,
    turns: KeyTurns,
}

impl MemoryStore {
    fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut HashMap<String, String>) -> T,
    ) -> Stored<'static, T> {
        let mut documents = self
            .documents
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Box::pin(ready(io::Result::Ok(work(&mut documents))))
    }
}

impl CredentialStore for MemoryStore {
    fn load<'a>(&'a self, key: &'a str) -> Stored<'a, Option<String>> {
        self.with(|documents| documents.get(key).cloned())
    }

    fn save<'a>(&'a self, key: &'a str, document: &'a str) -> Stored<'a, ()> {
        self.with(|documents| drop(documents.insert(key.to_owned(), document.to_owned())))
    }

    fn remove<'a>(&'a self, key: &'a str) -> Stored<'a, ()> {
        self.with(|documents| drop(documents.remove(key)))
    }

    fn lock<'a>(&'a self, key: &'a str) -> Stored<'a, KeyLock> {
        let turn = self.turns.turn(key);
        Box::pin(async move { Ok(KeyLock::new(turn.await)) })
    }
}

/// Omits keys and documents.
impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore(..)")
    }
}
