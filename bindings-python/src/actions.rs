//! Calls in the action dialect, and their outcomes.

use mcpbolt::action::ErrorType;
use mcpbolt::client::{ActionAnswer, ActionFailure};
use mcpbolt::settings::{ActionSettings, Seconds};
use pyo3::prelude::*;
use pyo3::types::PyList;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::Link;
use crate::client_events::ClientEvent;
use crate::exceptions::exception;
use crate::operation::Outcome;
use crate::settings::{self, wrong};
use crate::{read, write};

/// Calls an action; `future` gets its `ActionAnswer`. `params` and `options` are JSON. Returns a number to
/// cancel it by.
#[pyfunction]
pub fn call_action(
    link: &Link,
    name: &str,
    params: String,
    options: &str,
    on_partial: Option<Py<PyAny>>,
    future: Py<PyAny>,
) -> PyResult<u64> {
    let params = RawValue::from_string(params).map_err(wrong)?;
    let options: ActionSettings<Seconds> = settings::read(options)?;
    let mut call = options.call(&link.client, name, &params);
    let wants_partials = on_partial.is_some();
    Ok(
        link.start_watched(future, on_partial, |number, inbox| async move {
            if wants_partials {
                let report =
                    move |part: &str| inbox.push(ClientEvent::State(number, part.to_owned()));
                call = call.on_partial(report);
            }
            let outcome = call.await;
            Ok(Outcome::object(move |py| self::outcome(py, outcome)))
        }),
    )
}

/// Gets the schemas of the server's actions; from now on params are validated against them.
#[pyfunction]
pub fn action_schemas(link: &Link, future: Py<PyAny>) -> u64 {
    let client = link.client.clone();
    link.start(future, async move {
        Ok(match client.action_schemas().await {
            Ok(all) => {
                let member = |(name, schema)| format!("{}:{schema}", Value::String(name));
                let members: Vec<_> = all.into_iter().map(member).collect();
                Outcome::Json(format!("{{{}}}", members.join(",")))
            }
            Err(failure) => Outcome::object(move |py| Err(failed(py, &failure))),
        })
    })
}

/// Makes the package's `ActionAnswer` or exception of an outcome.
fn outcome<'py>(
    py: Python<'py>,
    outcome: Result<ActionAnswer, ActionFailure>,
) -> PyResult<Bound<'py, PyAny>> {
    let answer = outcome.map_err(|failure| failed(py, &failure))?;
    let partials: Vec<_> = answer
        .partials
        .iter()
        .map(|part| read::value(py, part))
        .collect::<PyResult<_>>()?;
    let data = read::value(py, &answer.data)?;
    let metadata = read::value(py, &answer.metadata)?;
    let class = py.import("mcpbolt._actions")?.getattr("ActionAnswer")?;
    class.call1((data, metadata, PyList::new(py, partials)?))
}

fn failed(py: Python<'_>, failure: &ActionFailure) -> PyErr {
    let made = (|| {
        let errors = py.import("mcpbolt._errors")?;
        let made = match failure {
            ActionFailure::Answered(error) => {
                let details = error.details.as_deref();
                let details = details.map(|json| read::value(py, json)).transpose()?;
                let (kind, url) = (&error.spelling, &error.help_url);
                let class = errors.getattr("ActionError")?;
                let made = class.call1((kind, &error.message, details, error.code, url))?;
                made.setattr("kind", error.kind().map(ErrorType::name))?;
                made.setattr("metadata", read::value(py, error.metadata())?)?;
                made
            }
            ActionFailure::Request(error) => exception(py, error)
                .into_value(py)
                .into_bound(py)
                .into_any(),
            ActionFailure::BreakerOpen => errors
                .getattr("BreakerOpen")?
                .call1((failure.to_string(),))?,
            ActionFailure::Invalid(_) => errors
                .getattr("InvalidParams")?
                .call1((failure.to_string(),))?,
            // The data is not valid against the schema.
            _ => errors.getattr("BadAnswer")?.call1((failure.to_string(),))?,
        };
        made.setattr("for_people", failure.for_people())?;
        made.setattr("is_transient", failure.is_transient())?;
        let wait = failure.retry_after().map(|wait| wait.as_secs_f64());
        made.setattr("retry_after", wait)?;
        Ok(made)
    })();
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// The results of a batch: the data or an `ActionError` for each operation that was carried out.
#[pyfunction]
pub fn action_results<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let answer = ActionAnswer {
        data: write::json(data)?,
        metadata: String::new(),
        partials: Vec::new(),
    };
    let one = |result: Result<String, _>| match result {
        Ok(data) => read::value(py, &data),
        Err(error) => Ok(failed(py, &ActionFailure::Answered(error))
            .into_value(py)
            .into_bound(py)
            .into_any()),
    };
    answer.results().into_iter().map(one).collect()
}
