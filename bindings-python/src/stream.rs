//! The stream of a client's subscription to changes.

use std::sync::{Mutex, PoisonError};

use mcpbolt::client::Listening;
use mcpbolt::error::RequestError;
use pyo3::prelude::*;

use crate::client::Link;

/// A stream on which a server reports changes. Dropping it ends it.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Stream(Mutex<Option<Listening>>);

impl Stream {
    pub fn new(listening: Listening) -> Self {
        Self(Mutex::new(Some(listening)))
    }
}

#[pymethods]
impl Stream {
    /// Waits for the end: `future` gets `None` when the server ends the stream normally. Returns a number
    /// to end it by.
    fn attend(&self, link: &Link, future: Py<PyAny>) -> u64 {
        let listening = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        link.start(future, async move {
            let attended = RequestError::Misuse("somebody attends to it already");
            listening.ok_or(attended)?.await
        })
    }
}
