//! Makes the answer to a call from the function's return value or exception.

use mcpbolt::chain::refusal;
use mcpbolt::connection::{Operation, ResultWriter};
use mcpbolt::error::{PeerError, RequestError};
use mcpbolt::handler::HandlerError;
use mcpbolt::json::{reader, string};
use mcpbolt::mcp::{ErrorKind, Revision};
use mcpbolt::message::Dialect;
use mcpbolt::server::{IntoToolResult, ToolResult};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::blocks::{fitted_messages, write_text};
use crate::exceptions::errors;
use crate::hub::Event;
use crate::kernel::KernelEvent;
use crate::outbox::Outbox;
use crate::panics::Panicked;
use crate::session::{Session, Work};
use crate::target::Target;
use crate::tool_answer::ToolAnswer;
use crate::{failures, write};

/// Puts the answer into the outbox, or into the MCP task that the call has become. Returns the bytes that
/// wait in the outbox; 0 if nothing was put there.
pub fn answer(
    py: Python<'_>,
    work: &Work,
    outcome: PyResult<Bound<'_, PyAny>>,
    outbox: &Outbox,
) -> usize {
    if work.call.cancel.is_cancelled() {
        return 0;
    }
    if work.target.is_native {
        return native(py, work, outcome, outbox);
    }
    if let Operation::CallTool(number) = work.call.operation {
        let made = outcome.and_then(|value| ToolAnswer::of(&work.target, value));
        return match &made {
            Ok(made) => match misfit(&work.session, &work.target, number, made) {
                None => settle(work, outbox, made.is_error(), |out| made.write(out)),
                Some(why) => refuse(work, outbox, &Failure::of(ErrorKind::Internal, why)),
            },
            Err(error) => fail_tool(py, work, outbox, error),
        };
    }
    let uri = work.call.message.as_ref().uri().unwrap_or_default();
    let lowered = outcome.and_then(|value| {
        let lowered = work.target.lower.bind(py).call1((value, &*uri))?;
        write::json(&lowered)
    });
    match lowered {
        Ok(json) => settle(work, outbox, false, |out| {
            if let Operation::GetPrompt(_) = work.call.operation {
                return write_prompt(out, &json);
            }
            // `json` is an object with the members of the result.
            out.object(&json);
            let reads = matches!(
                work.call.operation,
                Operation::ReadResource(_) | Operation::ReadTemplate(_)
            );
            if reads && out.revision().rules().cache_hints {
                out.raw("ttlMs", "0");
                out.raw("cacheScope", "\"private\"");
            }
        }),
        Err(error) => {
            let failure = Failure::protocol(py, &error, &uri).unwrap_or_else(|| {
                let text = told(py, work, &error);
                let text = text.unwrap_or_else(|| "the handler failed unexpectedly".into());
                Failure::of(ErrorKind::Internal, text)
            });
            refuse(work, outbox, &failure)
        }
    }
}

/// Answers a call in which this package panicked; returns the bytes that wait in the outbox.
pub fn panicked(work: &Work, panic: &Panicked, outbox: &Outbox) -> usize {
    refuse(
        work,
        outbox,
        &Failure::of(ErrorKind::Internal, panic.to_string()),
    )
}

/// Answers a call of a function that returns a result in JSON.
fn native(
    py: Python<'_>,
    work: &Work,
    outcome: PyResult<Bound<'_, PyAny>>,
    outbox: &Outbox,
) -> usize {
    let outcome = match (work.straight(), outcome) {
        (None, outcome) => outcome,
        (Some(straight), Ok(value)) => {
            if let Some(plain) = straight.plain(&value) {
                return settle(work, outbox, false, |out| straight.write(&plain, out));
            }
            let revision = work.call.reply.revision().rules().name;
            straight.finish.bind(py).call1((value, revision))
        }
        (Some(straight), Err(error)) => straight.fail.bind(py).call1((error.into_value(py),)),
    };
    let result = outcome.and_then(|json| Ok(json.cast_into::<PyBytes>()?));
    match &result {
        Ok(json) => settle(work, outbox, false, |out| {
            out.object(str::from_utf8(json.as_bytes()).unwrap_or("{}"))
        }),
        Err(error) if errors(py).is_ok_and(|own| error.is_instance(py, own.hand_back.bind(py))) => {
            let event = KernelEvent::Request(work.call.clone());
            work.session
                .hub
                .inbox
                .push(Event::Kernel(work.session.clone(), event));
            0
        }
        Err(error) => {
            let failure = Failure::protocol(py, error, "").unwrap_or_else(|| {
                let text = failures::of_call(py, work, error);
                let text = text.unwrap_or_else(|| "the handler failed unexpectedly".into());
                Failure::of(ErrorKind::Internal, text)
            });
            refuse(work, outbox, &failure)
        }
    }
}

fn write_prompt(out: &mut ResultWriter<'_>, json: &str) {
    for (key, value) in reader::members(json) {
        match key.raw() {
            "messages" => out.raw("messages", &fitted_messages(value, out.revision())),
            key => out.raw(key, value),
        }
    }
}

fn settle(
    work: &Work,
    outbox: &Outbox,
    is_error: bool,
    write: impl FnOnce(&mut ResultWriter<'_>),
) -> usize {
    match work.task() {
        Some(task) => {
            task.end_with(is_error, write);
            0
        }
        None => outbox.put(&work.session, |replies| {
            replies.result(&work.call.reply, write)
        }),
    }
}

fn refuse(work: &Work, outbox: &Outbox, failure: &Failure) -> usize {
    let Failure { code, text, data } = failure;
    let (to, data) = (&work.call.reply, data.as_deref());
    match (work.task(), code) {
        (Some(task), Code::Of(kind)) => drop(task.fail(*kind, text, data)),
        (Some(task), Code::Own(_)) => drop(task.fail(ErrorKind::Internal, text, data)),
        (None, Code::Of(kind)) => {
            return outbox.put(&work.session, |replies| {
                replies.error(to, *kind, text, data)
            });
        }
        (None, Code::Own(code)) => {
            return outbox.put(&work.session, |replies| {
                replies.error_code(to, *code, text, data)
            });
        }
    }
    0
}

fn fail_tool(py: Python<'_>, work: &Work, outbox: &Outbox, error: &PyErr) -> usize {
    let (reply, config) = (&work.call.reply, work.session.handle.config());
    let is_read = config.profile.arguments_are_tool_errors(reply.revision());
    let failure = Failure::protocol(py, error, "");
    // R-TOL-05
    let of_arguments =
        |failure: &Failure| matches!(failure.code, Code::Of(ErrorKind::ToolArguments));
    if let Some(failure) = &failure
        && !(of_arguments(failure) && is_read && reply.dialect() == Dialect::Rpc)
    {
        if of_arguments(failure) {
            failures::expected(py, work, error);
        }
        return refuse(work, outbox, failure);
    }
    if let Some(error) = typed(py, error) {
        // An action error is a result that the model reads.
        if let Ok(result) = Err::<(), _>(error).into_tool_result() {
            return settle(work, outbox, true, |out| result.write(out));
        }
    }
    let text = told(py, work, error).unwrap_or_else(|| "the tool failed unexpectedly".into());
    settle(work, outbox, true, |out| write_text(out, &text, true))
}

/// The engine's error for an `ActionError`; `None` for any other exception.
fn typed(py: Python<'_>, error: &PyErr) -> Option<HandlerError> {
    let value = error.value(py);
    if !error.is_instance(py, errors(py).ok()?.action_error.bind(py)) {
        return None;
    }
    let text = |name| value.getattr(name).ok()?.extract::<String>().ok();
    let mut typed = HandlerError::typed(text("type")?, text("message")?);
    let details = value.getattr("details").ok().filter(|it| !it.is_none());
    let details = details.and_then(|it| serde_json::from_str(&write::json(&it).ok()?).ok());
    if let Some(details) = details {
        typed = typed.with_data(&details);
    }
    if let Some(code) = value.getattr("code").ok().and_then(|it| it.extract().ok()) {
        typed = typed.with_code(code);
    }
    Some(match text("help_url") {
        Some(url) => typed.with_help_url(url),
        None => typed,
    })
}

/// Why a tool's result is not valid against its output schema (R-STR-01); `None` if it is valid.
pub fn misfit(
    session: &Session,
    target: &Target,
    number: u32,
    made: &ToolAnswer<'_>,
) -> Option<String> {
    if !target.is_checked || made.fits() {
        return None;
    }
    let result = ToolResult {
        structured: made.structured().map(str::to_owned),
        is_error: made.is_error(),
        ..ToolResult::default()
    };
    let registry = session.hub.served.live.snapshot().registry;
    registry.check_result(number, &result).err()
}

/// A protocol error.
struct Failure {
    code: Code,
    text: String,
    data: Option<String>,
}

enum Code {
    Of(ErrorKind),
    Own(i64),
}

impl Failure {
    fn of(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self {
            code: Code::Of(kind),
            text: text.into(),
            data: None,
        }
    }

    /// The protocol error that an exception stands for; `None` if it is not one for that purpose.
    fn protocol(py: Python<'_>, error: &PyErr, uri: &str) -> Option<Self> {
        let errors = errors(py).ok()?;
        if error.is_instance(py, errors.not_found.bind(py)) {
            let mut data = b"{\"uri\":".to_vec();
            string::append(&mut data, uri);
            data.push(b'}');
            return Some(Self {
                data: String::from_utf8(data).ok(),
                ..Self::of(ErrorKind::ResourceNotFound, "resource not found")
            });
        }
        if error.is_instance(py, errors.invalid_arguments.bind(py)) {
            let text = error.value(py).str().ok()?.to_string_lossy().into_owned();
            return Some(Self::of(ErrorKind::ToolArguments, text));
        }
        if !error.is_instance(py, errors.protocol_error.bind(py)) {
            return None;
        }
        let value = error.value(py);
        let kind = value.getattr("kind").ok()?;
        let code = match kind.extract::<i64>() {
            Ok(code) => Code::Own(code),
            Err(_) => Code::Of(match kind.extract::<String>().ok()?.as_str() {
                "invalid_params" => ErrorKind::InvalidParams,
                "not_found" => ErrorKind::ResourceNotFound,
                "missing_capability" => ErrorKind::MissingClientCapability,
                _ => ErrorKind::Internal,
            }),
        };
        let data = value.getattr("data").ok().filter(|data| !data.is_none());
        Some(Self {
            code,
            text: value.str().ok()?.to_string_lossy().into_owned(),
            data: data.and_then(|data| write::json(&data).ok()),
        })
    }
}

/// The error of a chain that an exception stands for; `None` for an unexpected one.
pub fn refused(py: Python<'_>, error: &PyErr, revision: Revision) -> Option<RequestError> {
    let value = error.value(py);
    let errors = errors(py).ok()?;
    let text = || Some(value.str().ok()?.to_string_lossy().into_owned());
    if let Some(failure) = Failure::protocol(py, error, "") {
        let code = match failure.code {
            Code::Of(kind) => kind.code(revision),
            Code::Own(code) => code,
        };
        return Some(RequestError::Peer(PeerError {
            code,
            message: failure.text.into(),
            data: failure.data.map(Into::into),
        }));
    }
    if error.is_instance(py, errors.peer_error.bind(py)) {
        let data = value.getattr("data").ok().filter(|data| !data.is_none());
        return Some(RequestError::Peer(PeerError {
            code: value.getattr("code").ok()?.extract().ok()?,
            message: value
                .getattr("message")
                .ok()?
                .extract::<String>()
                .ok()?
                .into(),
            data: data.and_then(|data| Some(write::json(&data).ok()?.into())),
        }));
    }
    let is_expected = error.is_instance(py, errors.tool_error.bind(py));
    is_expected.then(|| {
        refusal(
            ErrorKind::Internal.code(revision),
            text().unwrap_or_default(),
        )
    })
}

/// The text of an exception for the client, if it may see one. The exception is logged.
fn told(py: Python<'_>, work: &Work, error: &PyErr) -> Option<String> {
    let errors = errors(py).ok()?;
    if error.is_instance(py, errors.tool_error.bind(py)) {
        failures::expected(py, work, error);
        return Some(error.value(py).str().ok()?.to_string_lossy().into_owned());
    }
    failures::of_call(py, work, error)
}
