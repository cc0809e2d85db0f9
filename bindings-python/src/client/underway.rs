//! The pending operations of a client: started, polled when their waker was called, settled once.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use mcpbolt::error::RequestError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::Link;
use crate::answer::{Answer, exception};
use crate::inbox::Inbox;
use crate::news::News;
use crate::remote_task::RemoteTask;
use crate::serving::shown;
use crate::stream::Stream;
use crate::work::{Made, Work};
use crate::{actions, future, read};

/// An operation, and the future that waits for its outcome.
pub(super) struct Waiting {
    pub work: Work,
    pub future: Py<PyAny>,
    pub progress: Option<Py<PyAny>>,
}

/// The waker of an operation, or, with `None`, of the opening.
struct Bell {
    inbox: Arc<Inbox<News>>,
    request: Option<u64>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.inbox.push(match self.request {
            Some(request) => News::Done(request),
            None => News::Opened,
        });
    }
}

impl Link {
    fn waker(&self, request: Option<u64>) -> Waker {
        Waker::from(Arc::new(Bell {
            inbox: self.inbox.clone(),
            request,
        }))
    }

    pub(super) fn look_for_opening(&self) {
        let waker = self.waker(None);
        let mut opened = self.client.handle().opened();
        if Pin::new(&mut opened)
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            self.inbox.push(News::Opened);
        }
    }

    pub(super) fn settle_opening(&self, py: Python<'_>) -> PyResult<()> {
        let mut opened = self.client.handle().opened();
        match Pin::new(&mut opened).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(_)) => {
                future::settle(py, &self.ears.opened, Ok(py.None().into_bound(py)))
            }
            Poll::Ready(Err(error)) => {
                future::settle(py, &self.ears.opened, Err(exception(py, &error)))
            }
            Poll::Pending => Ok(()),
        }
    }

    /// Starts an operation that is not a plain request; returns its number.
    pub fn start<T: Into<Made>>(
        &self,
        future: Py<PyAny>,
        work: impl Future<Output = Result<T, RequestError>> + Send + 'static,
    ) -> u64 {
        self.start_watched(future, None, |_, _| work)
    }

    /// Starts an operation with a callback for its progress, which `work` reports as news with the number
    /// that it is given.
    pub fn start_watched<T: Into<Made>, F>(
        &self,
        future: Py<PyAny>,
        progress: Option<Py<PyAny>>,
        work: impl FnOnce(u64, Arc<Inbox<News>>) -> F,
    ) -> u64
    where
        F: Future<Output = Result<T, RequestError>> + Send + 'static,
    {
        let number = self.number();
        let work = Work::other(work(number, self.inbox.clone()));
        self.begin(number, work, future, progress);
        number
    }

    /// The progress callback of an operation.
    pub(super) fn report(&self, py: Python<'_>, number: u64) -> Option<Py<PyAny>> {
        let waiting = lock(&self.waiting);
        let report = waiting.get(&number).and_then(|one| one.progress.as_ref());
        report.map(|report| report.clone_ref(py))
    }

    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn begin(
        &self,
        number: u64,
        work: Work,
        future: Py<PyAny>,
        progress: Option<Py<PyAny>>,
    ) {
        let waiting = Waiting {
            work,
            future,
            progress,
        };
        lock(&self.waiting).insert(number, waiting);
        if let Some(outcome) = self.poll(number) {
            // The outcome was there at once, but earlier progress reports may still be in the inbox.
            self.inbox.push(News::Outcome(number, Box::new(outcome)));
        }
    }

    /// The outcome, if it is there; otherwise [`News::Done`] follows later.
    pub(super) fn poll(&self, number: u64) -> Option<Result<Made, RequestError>> {
        let waker = self.waker(Some(number));
        let mut all = lock(&self.waiting);
        let work = &mut all.get_mut(&number)?.work;
        match Pin::new(work).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    /// Settles the future of an operation, unless the operation was cancelled meanwhile.
    pub(super) fn settle(&self, py: Python<'_>, number: u64, outcome: Result<Made, RequestError>) {
        let Some(waiting) = lock(&self.waiting).remove(&number) else {
            return;
        };
        let outcome = match outcome {
            Ok(Made::Answer(message)) => Bound::new(py, Answer(message)).map(Bound::into_any),
            Ok(Made::Task(task)) => Bound::new(py, RemoteTask(task)).map(Bound::into_any),
            Ok(Made::Json(json)) => read::value(py, &json),
            Ok(Made::Bytes(bytes)) => Ok(PyBytes::new(py, &bytes).into_any()),
            Ok(Made::Action(outcome)) => actions::outcome(py, *outcome),
            Ok(Made::Nothing) => Ok(py.None().into_bound(py)),
            Ok(Made::Listening(listening)) => {
                Bound::new(py, Stream::new(listening)).map(Bound::into_any)
            }
            Err(error) => Err(exception(py, &error)),
        };
        shown(py, future::settle(py, &waiting.future, outcome));
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
