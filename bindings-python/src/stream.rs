//! The stream of a client's subscription to changes.

use std::sync::{Mutex, PoisonError};

use mcpbolt::client::{Interests, Listening};
use mcpbolt::error::RequestError;
use pyo3::prelude::*;

use crate::client::Link;
use crate::operation::Outcome;

/// A stream on which a server reports changes. Dropping it ends it.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Stream(Mutex<Option<Listening>>);

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

/// Subscribes to changes; `future` gets the stream of the subscription.
#[pyfunction]
pub fn listen(
    link: &Link,
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: Vec<String>,
    future: Py<PyAny>,
) -> u64 {
    let client = link.client.clone();
    let interests = Interests {
        tools,
        prompts,
        resources,
        uris,
    };
    link.start(future, async move {
        let stream = Stream(Mutex::new(Some(client.listen(interests).await?)));
        Ok(Outcome::object(|py| Ok(Bound::new(py, stream)?.into_any())))
    })
}
