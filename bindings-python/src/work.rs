//! The pending operations of a client, and their outcomes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use mcpbolt::client::{ActionAnswer, ActionFailure, Asking, Listening, Started, Task};
use mcpbolt::error::RequestError;
use mcpbolt::message::Message;

/// A pending operation.
#[expect(clippy::large_enum_variant, reason = "the small one is rare")]
pub enum Work {
    /// A request, the most frequent operation.
    Asking(Asking),
    /// Anything else.
    Other(Pin<Box<dyn Future<Output = Result<Made, RequestError>> + Send>>),
}

/// The successful outcome of an operation.
#[derive(Debug)]
pub enum Made {
    Answer(Message),
    Task(Task),
    Listening(Listening),
    Json(String),
    Bytes(Vec<u8>),
    Action(Box<Result<ActionAnswer, ActionFailure>>),
    Nothing,
}

impl Work {
    pub fn other<T>(future: impl Future<Output = Result<T, RequestError>> + Send + 'static) -> Self
    where
        T: Into<Made>,
    {
        Self::Other(Box::pin(async move { future.await.map(Into::into) }))
    }

    /// Cancels the operation; the server is notified.
    pub fn cancel(self, reason: Option<&str>) {
        if let Self::Asking(asking) = self {
            asking.cancel(reason);
        }
    }
}

impl Future for Work {
    type Output = Result<Made, RequestError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Asking(asking) => Pin::new(asking)
                .poll(cx)
                .map(|outcome| outcome.map(Made::Answer)),
            Self::Other(future) => future.as_mut().poll(cx),
        }
    }
}

impl From<()> for Made {
    fn from((): ()) -> Self {
        Self::Nothing
    }
}

impl From<Listening> for Made {
    fn from(listening: Listening) -> Self {
        Self::Listening(listening)
    }
}

impl From<Message> for Made {
    fn from(answer: Message) -> Self {
        Self::Answer(answer)
    }
}

impl From<Started<Message>> for Made {
    fn from(started: Started<Message>) -> Self {
        match started {
            Started::Done(answer) => Self::Answer(answer),
            Started::Task(task) => Self::Task(task),
            _ => Self::Nothing,
        }
    }
}
