//! The pending operations of a client, and their outcomes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mcpbolt::client::PendingRequest;
use mcpbolt::error::RequestError;
use mcpbolt::message::Message;
use pyo3::prelude::*;

/// A pending operation.
#[expect(clippy::large_enum_variant, reason = "the small one is rare")]
pub enum Operation {
    /// A request, the most frequent operation.
    Request(PendingRequest),
    /// Anything else.
    Other(Pin<Box<dyn Future<Output = Result<Outcome, RequestError>> + Send>>),
}

/// Makes an object, or raises the exception that the operation ends with.
pub type MakeObject = Box<dyn for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>> + Send>;

/// The successful outcome of an operation.
#[allow(
    clippy::large_enum_variant,
    reason = "it is moved once, to its converter"
)]
pub enum Outcome {
    Answer(Message),
    Json(String),
    Bytes(Vec<u8>),
    /// An object of a class that is made on the event loop's thread.
    Object(MakeObject),
    Nothing,
}

impl Operation {
    pub fn other<T>(future: impl Future<Output = Result<T, RequestError>> + Send + 'static) -> Self
    where
        T: Into<Outcome>,
    {
        Self::Other(Box::pin(async move { future.await.map(Into::into) }))
    }

    /// Cancels the operation; the server is notified.
    pub fn cancel(self, reason: Option<&str>) {
        if let Self::Request(asking) = self {
            asking.cancel(reason);
        }
    }
}

impl Future for Operation {
    type Output = Result<Outcome, RequestError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Request(asking) => Pin::new(asking)
                .poll(cx)
                .map(|outcome| outcome.map(Outcome::Answer)),
            Self::Other(future) => future.as_mut().poll(cx),
        }
    }
}

impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self::Nothing
    }
}

impl From<Message> for Outcome {
    fn from(answer: Message) -> Self {
        Self::Answer(answer)
    }
}

impl Outcome {
    /// An outcome that becomes an object on the event loop's thread.
    pub fn object<F>(make: F) -> Self
    where
        F: for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, PyAny>> + Send + 'static,
    {
        Self::Object(Box::new(make))
    }
}
