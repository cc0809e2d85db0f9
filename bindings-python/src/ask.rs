//! What functions ask the client while they serve a call.
//!
//! A task awaits the answer in a future of the event loop's, a plain function waits for it on its
//! worker's thread. From 2026-07-28 on a call ends with what is asked: the task is cancelled, or
//! the function unwound, after the client has been told; the call comes again with the answers.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Waiter, Poll, Wake, Waker};

use mcpbolt::client::block_on;
use mcpbolt::connection::RequestOptions;
use mcpbolt::error::RequestError;
use mcpbolt::mcp::{Elicitation, Sampling};
use mcpbolt::server;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use serde::Serialize;

use crate::answer::exception;
use crate::context::Context;
use crate::hub::{Event, Hub};
use crate::session::Session;
use crate::{future, read, worker, write};

/// The answer to come, as JSON.
type Question = Pin<Box<dyn Future<Output = Result<String, RequestError>> + Send>>;

/// What tasks have asked, and the futures that want the answers.
#[derive(Default)]
pub struct Questions {
    open: Mutex<HashMap<u64, (Question, Py<PyAny>)>>,
    next: AtomicU64,
}

impl Questions {
    fn open(&self) -> MutexGuard<'_, HashMap<u64, (Question, Py<PyAny>)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn forget(&self, number: u64) {
        let forgotten = self.open().remove(&number);
        drop(forgotten);
    }
}

/// Tells the event loop that an answer is there.
struct Bell {
    hub: Arc<Hub>,
    number: u64,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.hub.inbox.push(Event::Asked(self.number));
    }
}

/// What the face makes of a question: something to await, or to wait for.
pub fn asked<'py>(
    context: &Bound<'py, Context>,
    what: &str,
    arguments: &Bound<'py, PyTuple>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = context.py();
    let ask = py.import("mcpbolt._ask")?.getattr(what)?;
    let own = PyTuple::new(py, [context])?;
    let arguments = own
        .as_sequence()
        .concat(arguments.as_sequence())?
        .to_tuple()?;
    ask.call(arguments, options)
}

fn question(
    context: &server::Context,
    what: &str,
    params: &Bound<'_, PyAny>,
) -> PyResult<Question> {
    let params = write::json(params)?;
    let wrong = |error: serde_json::Error| PyValueError::new_err(error.to_string());
    let context = context.clone();
    Ok(match what {
        "sample" => {
            let sampling: Sampling = serde_json::from_str(&params).map_err(wrong)?;
            Box::pin(async move { to_json(&context.sample(sampling).await?) })
        }
        "elicit" => {
            let elicitation = Elicitation::parse(&params).map_err(PyValueError::new_err)?;
            Box::pin(
                async move { Ok(context.elicit(elicitation).await?.to_json(true).to_string()) },
            )
        }
        _ => Box::pin(async move { to_json(&context.roots().await?) }),
    })
}

fn to_json(value: &impl Serialize) -> Result<String, RequestError> {
    serde_json::to_string(value).map_err(|_| RequestError::BadAnswer("a result of another shape"))
}

/// What is raised in a function whose round is over. Its call is answered already, so that
/// nothing it does with this matters.
pub fn round_over(py: Python<'_>) -> PyErr {
    let made = py
        .import("mcpbolt._errors")
        .and_then(|errors| errors.getattr("RoundOver")?.call0());
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Asks for a task.
pub fn begin(
    py: Python<'_>,
    context: &Context,
    what: &str,
    params: &Bound<'_, PyAny>,
    future: Py<PyAny>,
) -> PyResult<u64> {
    let question = question(&context.inner, what, params)?;
    let hub = &context.session.hub;
    let number = hub.questions.next.fetch_add(1, Ordering::Relaxed);
    hub.questions.open().insert(number, (question, future));
    settle(py, hub, number)?;
    if context.inner.is_round_over(Waker::noop()) {
        end_soon(py, context)?;
    }
    Ok(number)
}

/// Asks anything, for a kernel: the params are a JSON object, and so is the answer.
pub fn any(
    py: Python<'_>,
    session: &Arc<Session>,
    (method, params): (&str, Option<&str>),
    options: RequestOptions,
    future: Py<PyAny>,
) -> PyResult<u64> {
    let response = session.handle.request(method, params, options);
    let response = response.map_err(|error| exception(py, &error))?;
    let question: Question = Box::pin(async move {
        let answer = response.await?;
        Ok(answer.as_ref().result().unwrap_or("{}").to_owned())
    });
    let hub = &session.hub;
    let number = hub.questions.next.fetch_add(1, Ordering::Relaxed);
    hub.questions.open().insert(number, (question, future));
    settle(py, hub, number)?;
    Ok(number)
}

/// Gives the future the answer, if it is there; else it will be an event.
pub fn settle(py: Python<'_>, hub: &Arc<Hub>, number: u64) -> PyResult<()> {
    let waker = Waker::from(Arc::new(Bell {
        hub: hub.clone(),
        number,
    }));
    let taken = hub.questions.open().remove(&number);
    let Some((mut question, waits)) = taken else {
        return Ok(());
    };
    match question.as_mut().poll(&mut Waiter::from_waker(&waker)) {
        Poll::Ready(answer) => future::settle(py, &waits, parsed(py, answer)),
        Poll::Pending => {
            hub.questions.open().insert(number, (question, waits));
            Ok(())
        }
    }
}

fn parsed(py: Python<'_>, answer: Result<String, RequestError>) -> PyResult<Bound<'_, PyAny>> {
    match answer {
        Ok(json) => read::value(py, &json),
        Err(error) => Err(exception(py, &error)),
    }
}

/// Ends the round when the event loop's turn is at its end, so that what is asked side by side
/// goes out together.
fn end_soon(py: Python<'_>, context: &Context) -> PyResult<()> {
    let Some(call_soon) = &context.session.hub.interpreter.call_soon else {
        return Err(PyRuntimeError::new_err("there is no event loop"));
    };
    let (session, inner) = (context.session.clone(), context.inner.clone());
    let end = PyCFunction::new_closure(py, None, None, move |arguments, _| -> PyResult<()> {
        let py = arguments.py();
        if inner.is_cancelled() {
            return Ok(());
        }
        let settled = &session.hub.settled;
        settled.put(&session, |replies| inner.end_round(replies));
        session.hub.hand_over(settled);
        session.cancel_task(py, &inner.reply_to().key())
    })?;
    call_soon.bind(py).call1((end,)).map(drop)
}

/// How a plain function's question ended.
enum End {
    Answered(Result<String, RequestError>),
    Cancelled,
    RoundOver,
}

/// Asks for a plain function.
pub fn wait<'py>(
    py: Python<'py>,
    context: &Context,
    what: &str,
    params: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut question = question(&context.inner, what, params)?;
    let mut cancelled = context.inner.cancel_token().cancelled();
    let mut end = |cx: &mut Waiter<'_>| {
        if let Poll::Ready(answer) = question.as_mut().poll(cx) {
            return Poll::Ready(End::Answered(answer));
        }
        if Pin::new(&mut cancelled).poll(cx).is_ready() {
            return Poll::Ready(End::Cancelled);
        }
        match context.inner.is_round_over(cx.waker()) {
            true => Poll::Ready(End::RoundOver),
            false => Poll::Pending,
        }
    };
    let hub = &context.session.hub;
    let end = py.detach(|| match end(&mut Waiter::from_waker(Waker::noop())) {
        Poll::Ready(end) => end,
        Poll::Pending => {
            hub.hand_over(&hub.answered);
            let spawn = || worker::spawn(hub);
            hub.workers.aside(spawn, || block_on(poll_fn(end)))
        }
    });
    match end {
        End::Answered(answer) => parsed(py, answer),
        End::Cancelled => Err(exception(py, &RequestError::Cancelled(None))),
        End::RoundOver => {
            hub.answered
                .put(&context.session, |replies| context.inner.end_round(replies));
            hub.hand_over(&hub.answered);
            Err(round_over(py))
        }
    }
}
