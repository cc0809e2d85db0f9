//! The open questions of tasks to their clients.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcpbolt::error::RequestError;
use pyo3::prelude::*;

/// A future answer, as JSON.
pub type Question = Pin<Box<dyn Future<Output = Result<String, RequestError>> + Send>>;

/// The open questions of tasks, each with the Python future that waits for the answer.
#[derive(Default)]
pub struct Questions {
    open: Mutex<HashMap<u64, (Question, Py<PyAny>)>>,
    next: AtomicU64,
}

impl Questions {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, (Question, Py<PyAny>)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a question; returns its number.
    pub fn add(&self, question: Question, future: Py<PyAny>) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.put_back(number, question, future);
        number
    }

    /// Takes a question out, to poll it.
    pub fn take(&self, number: u64) -> Option<(Question, Py<PyAny>)> {
        self.open().remove(&number)
    }

    /// Puts a question back that has no answer yet.
    pub fn put_back(&self, number: u64, question: Question, future: Py<PyAny>) {
        self.open().insert(number, (question, future));
    }
}
