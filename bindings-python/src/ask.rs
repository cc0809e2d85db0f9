//! Questions of handlers to the client during a call: sampling, elicitation, roots.
//!
//! A coroutine function awaits the answer in a future of the event loop; a plain function blocks its
//! worker thread. From 2026-07-28 on the call is answered with its questions, which ends the round: the
//! task is then cancelled, or the function unwound. The client repeats the call with the replies.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Waiter, Poll, Wake, Waker};

use mcpbolt::client::block_on;
use mcpbolt::connection::RequestOptions;
use mcpbolt::error::RequestError;
use mcpbolt::model::{Elicitation, Sampling};
use mcpbolt::server;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use serde::Serialize;

use crate::exceptions::{exception, round_over};
use crate::hub::{Event, Hub};
use crate::questions::Question;
use crate::session::Session;
use crate::telemetry::sending;
use crate::{future, read, write};

/// The waker of a question: tells the event loop that its answer may be there.
struct AnswerWaker {
    hub: Arc<Hub>,
    number: u64,
}

impl Wake for AnswerWaker {
    fn wake(self: Arc<Self>) {
        self.hub.inbox.push(Event::Asked(self.number));
    }
}

/// Makes the Python `Asked` object of a question, to await or to wait for.
pub fn asked<'py>(
    context: &Bound<'py, PyAny>,
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

/// Sends a question for a coroutine function; `future` gets the answer. Returns the question's number.
pub fn begin(
    py: Python<'_>,
    (session, context): (&Arc<Session>, &server::Context),
    what: &str,
    params: &Bound<'_, PyAny>,
    future: Py<PyAny>,
) -> PyResult<u64> {
    let question = question(context, what, params)?;
    let hub = &session.hub;
    let number = hub.questions.add(question, future);
    settle(py, hub, number)?;
    if context.is_round_over(Waker::noop()) {
        end_soon(py, session, context)?;
    }
    Ok(number)
}

/// Sends any request, for a kernel; params and result are JSON objects. Returns the question's number.
pub fn any(
    py: Python<'_>,
    session: &Arc<Session>,
    (method, params): (&str, Option<&str>),
    options: RequestOptions,
    future: Py<PyAny>,
) -> PyResult<u64> {
    let response = sending(|| session.handle.request(method, params, options));
    let response = response.map_err(|error| exception(py, &error))?;
    let question: Question = Box::pin(async move {
        let answer = response.await?;
        Ok(answer.as_ref().result().unwrap_or("{}").to_owned())
    });
    let hub = &session.hub;
    let number = hub.questions.add(question, future);
    settle(py, hub, number)?;
    Ok(number)
}

/// Settles the future of a question, if the answer is there; otherwise an [`Event::Asked`] follows later.
pub fn settle(py: Python<'_>, hub: &Arc<Hub>, number: u64) -> PyResult<()> {
    let waker = Waker::from(Arc::new(AnswerWaker {
        hub: hub.clone(),
        number,
    }));
    let Some((mut question, waits)) = hub.questions.take(number) else {
        return Ok(());
    };
    match sending(|| question.as_mut().poll(&mut Waiter::from_waker(&waker))) {
        Poll::Ready(answer) => future::settle(py, &waits, parsed(py, answer)),
        Poll::Pending => {
            hub.questions.put_back(number, question, waits);
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

/// Ends the round at the end of the event loop's turn, so that concurrent questions are sent together.
fn end_soon(py: Python<'_>, session: &Arc<Session>, context: &server::Context) -> PyResult<()> {
    let (session, hub) = (session.clone(), session.hub.clone());
    let Some(call_soon) = &hub.interpreter.call_soon else {
        return Err(PyRuntimeError::new_err("there is no event loop"));
    };
    let inner = context.clone();
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

/// The ways in which a plain function's question ends.
enum End {
    Answered(Result<String, RequestError>),
    Cancelled,
    RoundOver,
}

/// Sends a question for a plain function, and blocks until the answer comes.
pub fn wait<'py>(
    py: Python<'py>,
    (session, context): (&Arc<Session>, &server::Context),
    what: &str,
    params: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut question = question(context, what, params)?;
    let mut cancelled = context.cancel_token().cancelled();
    let mut end = |cx: &mut Waiter<'_>| {
        if let Poll::Ready(answer) = question.as_mut().poll(cx) {
            return Poll::Ready(End::Answered(answer));
        }
        if Pin::new(&mut cancelled).poll(cx).is_ready() {
            return Poll::Ready(End::Cancelled);
        }
        match context.is_round_over(cx.waker()) {
            true => Poll::Ready(End::RoundOver),
            false => Poll::Pending,
        }
    };
    let hub = &session.hub;
    let end = py.detach(
        || match sending(|| end(&mut Waiter::from_waker(Waker::noop()))) {
            Poll::Ready(end) => end,
            Poll::Pending => {
                hub.hand_over(&hub.answered);
                hub.workers
                    .aside(|| hub.spawn_worker(), || block_on(poll_fn(end)))
            }
        },
    );
    match end {
        End::Answered(answer) => parsed(py, answer),
        End::Cancelled => Err(exception(py, &RequestError::Cancelled(None))),
        End::RoundOver => {
            hub.answered
                .put(session, |replies| context.end_round(replies));
            hub.hand_over(&hub.answered);
            Err(round_over(py))
        }
    }
}
