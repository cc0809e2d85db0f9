//! One call: from its arguments to the function, from what that gives back to the answer.

use std::sync::Arc;

use mcpbolt::connection::{Call, Replies, ResultWriter};
use mcpbolt::handler::Operation;
use mcpbolt::json::string;
use mcpbolt::mcp::ErrorKind;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFloat, PyString, PyTuple};

use crate::catalog::Target;
use crate::context::Context;
use crate::session::{Outbox, Session};
use crate::{read, write};

/// Calls the function in variables of its own.
pub fn invoke<'py>(
    py: Python<'py>,
    session: &Arc<Session>,
    target: &Target,
    call: &Call,
) -> PyResult<Bound<'py, PyAny>> {
    let arguments = arguments(py, session, target, call)?;
    let function = target.function.bind(py);
    let context = session.interpreter.context.bind(py).call_method0("copy")?;
    context.call_method("run", (function,), Some(&arguments))
}

/// The arguments by name.
pub fn arguments<'py>(
    py: Python<'py>,
    session: &Arc<Session>,
    target: &Target,
    call: &Call,
) -> PyResult<Bound<'py, PyDict>> {
    let message = call.message.as_ref();
    let mut arguments = match Operation::from_target(call.target) {
        Operation::ReadResource(_) => PyDict::new(py),
        Operation::Complete => {
            let arguments = PyDict::new(py);
            let params = message.params().unwrap_or("{}");
            arguments.set_item("request", read::object(py, params)?)?;
            arguments
        }
        Operation::ReadTemplate(_) => {
            let uri = message.uri().unwrap_or_default();
            let registry = session.catalog.live.offer().registry;
            let matched = registry.template(&uri);
            let variables = PyDict::new(py);
            for (name, value) in matched.map(|(_, variables)| variables).unwrap_or_default() {
                variables.set_item(name, value)?;
            }
            variables
        }
        Operation::CallTool(_) | Operation::GetPrompt(_) => {
            read::object(py, message.arguments().unwrap_or("{}"))
                .map_err(|error| invalid(py, &error))?
        }
    };
    for name in &target.integers {
        // 1.0 is an integer to JSON Schema, and to JavaScript.
        if let Some(value) = arguments
            .get_item(name)?
            .filter(|v| v.is_exact_instance_of::<PyFloat>())
        {
            arguments.set_item(name, value.call_method0("__int__")?)?;
        }
    }
    if let Some(prepare) = &target.prepare {
        arguments = prepare.bind(py).call1((arguments,))?.cast_into()?;
    }
    if let Some(name) = &target.context {
        let context = Context::begin(py, session, call)?;
        arguments.set_item(name.bind(py), Bound::new(py, context)?)?;
    }
    Ok(arguments)
}

fn invalid(py: Python<'_>, error: &PyErr) -> PyErr {
    match errors(py) {
        Ok(errors) => {
            let text = format!("invalid arguments: {}", error.value(py));
            match errors.tool_error.bind(py).call1((text,)) {
                Ok(error) => PyErr::from_value(error),
                Err(error) => error,
            }
        }
        Err(error) => error,
    }
}

/// Puts the answer where it is handed over from; gives the bytes that wait there.
pub fn answer(
    py: Python<'_>,
    target: &Target,
    call: &Call,
    outcome: PyResult<Bound<'_, PyAny>>,
    outbox: &Outbox,
) -> usize {
    if call.cancel.is_cancelled() {
        return 0;
    }
    let to = &call.reply;
    if let Operation::CallTool(_) = Operation::from_target(call.target) {
        let result = outcome.and_then(|value| ToolAnswer::of(target, value));
        return match &result {
            Ok(ToolAnswer::Text(text)) => match text.to_str() {
                Ok(text) => {
                    outbox.put(|replies| replies.result(to, |out| write_text(out, text, false)))
                }
                Err(error) => outbox.put(|replies| fail_tool(py, replies, call, &error)),
            },
            Ok(ToolAnswer::Lowered(lowered)) => {
                outbox.put(|replies| replies.result(to, |out| lowered.write(out)))
            }
            Err(error) => outbox.put(|replies| fail_tool(py, replies, call, error)),
        };
    }
    let uri = call.message.as_ref().uri().unwrap_or_default();
    let lowered = outcome.and_then(|value| {
        let lowered = target.lower.bind(py).call1((value, &*uri))?;
        write::json(&lowered)
    });
    match lowered {
        Ok(json) => outbox.put(|replies| {
            replies.result(to, |out| {
                // An object of members that are the result's.
                out.object(&json);
                let operation = Operation::from_target(call.target);
                let reading = matches!(
                    operation,
                    Operation::ReadResource(_) | Operation::ReadTemplate(_)
                );
                if reading && out.revision().rules().cache_hints {
                    out.raw("ttlMs", "0");
                    out.raw("cacheScope", "\"private\"");
                }
            });
        }),
        Err(error) => {
            let (kind, text, data) = failure(py, &error, &uri);
            outbox.put(|replies| replies.error(to, kind, &text, data.as_deref()))
        }
    }
}

/// What a tool gave back.
enum ToolAnswer<'py> {
    /// Text, the most frequent.
    Text(Bound<'py, PyString>),
    /// Anything else.
    Lowered(Lowered),
}

/// A result in JSON.
struct Lowered {
    content: Option<String>,
    structured: Option<String>,
    is_error: bool,
}

impl<'py> ToolAnswer<'py> {
    fn of(target: &Target, value: Bound<'py, PyAny>) -> PyResult<Self> {
        let value = match value.cast_into_exact::<PyString>() {
            Ok(text) => return Ok(Self::Text(text)),
            Err(other) => other.into_inner(),
        };
        if value.is_exact_instance_of::<PyDict>() {
            let structured = Some(write::json(&value)?);
            return Ok(Self::Lowered(Lowered {
                content: None,
                structured,
                is_error: false,
            }));
        }
        let lowered = target.lower.bind(value.py()).call1((&value,))?;
        let lowered = lowered.cast::<PyTuple>()?;
        let part = |index| -> PyResult<Option<String>> {
            let part = lowered.get_item(index)?;
            (!part.is_none()).then(|| write::json(&part)).transpose()
        };
        Ok(Self::Lowered(Lowered {
            content: part(0)?,
            structured: part(1)?,
            is_error: lowered.get_item(2)?.is_truthy()?,
        }))
    }
}

impl Lowered {
    fn write(&self, result: &mut ResultWriter<'_>) {
        let rules = result.revision().rules();
        match (&self.content, &self.structured) {
            (Some(content), _) => result.raw("content", content),
            // R-STR-03
            (None, Some(structured)) => result.with("content", |out| append_text(out, structured)),
            (None, None) => result.raw("content", "[]"),
        }
        let fits = |json: &&str| rules.any_structured_content || json.starts_with('{');
        let structured = self.structured.as_deref().filter(fits);
        if let Some(structured) = structured.filter(|_| rules.structured_content) {
            result.raw("structuredContent", structured);
        }
        if self.is_error {
            result.raw("isError", "true");
        }
    }
}

fn append_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"[{\"type\":\"text\",\"text\":");
    string::append(out, text);
    out.extend_from_slice(b"}]");
}

fn write_text(result: &mut ResultWriter<'_>, text: &str, is_error: bool) {
    result.with("content", |out| append_text(out, text));
    if is_error {
        result.raw("isError", "true");
    }
}

fn fail_tool(py: Python<'_>, replies: &mut Replies, call: &Call, error: &PyErr) {
    let text = told(py, error).unwrap_or_else(|| "the tool failed unexpectedly".into());
    replies.result(&call.reply, |out| write_text(out, &text, true));
}

fn failure(py: Python<'_>, error: &PyErr, uri: &str) -> (ErrorKind, String, Option<String>) {
    let missing = errors(py).is_ok_and(|errors| error.is_instance(py, errors.not_found.bind(py)));
    if missing {
        let mut data = b"{\"uri\":".to_vec();
        string::append(&mut data, uri);
        data.push(b'}');
        let data = String::from_utf8(data).ok();
        return (
            ErrorKind::ResourceNotFound,
            "resource not found".into(),
            data,
        );
    }
    let text = told(py, error).unwrap_or_else(|| "the handler failed unexpectedly".into());
    (ErrorKind::Internal, text, None)
}

/// The text of an error that the client may see. Any other goes to stderr, with its traceback.
fn told(py: Python<'_>, error: &PyErr) -> Option<String> {
    let errors = errors(py).ok()?;
    if error.is_instance(py, errors.tool_error.bind(py)) {
        return Some(error.value(py).str().ok()?.to_string_lossy().into_owned());
    }
    error.display(py);
    None
}

struct Errors {
    tool_error: Py<PyAny>,
    not_found: Py<PyAny>,
}

fn errors(py: Python<'_>) -> PyResult<&Errors> {
    static ERRORS: PyOnceLock<Errors> = PyOnceLock::new();
    ERRORS.get_or_try_init(py, || {
        let module = py.import("mcpbolt._errors")?;
        let class = |name| module.getattr(name).map(Bound::unbind);
        Ok(Errors {
            tool_error: class("ToolError")?,
            not_found: class("ResourceNotFound")?,
        })
    })
}
