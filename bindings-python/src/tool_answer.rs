//! Converts a tool's return value to its result.

use std::sync::Arc;

use mcpbolt::connection::ResultWriter;
use mcpbolt::json::string;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};

use crate::blocks::{append_text, fitted, write_text};
use crate::target::Target;
use crate::{read, write};

/// A tool's return value.
pub enum ToolAnswer<'py> {
    /// Text, the most frequent value; and whether it is structured content, too.
    Text(Bound<'py, PyString>, bool),
    /// Any other value, converted.
    Lowered(Lowered),
    /// A result that was converted before.
    Made(Arc<Lowered>),
}

/// The members of a tool result, as JSON.
#[derive(Default)]
pub struct Lowered {
    content: Option<String>,
    structured: Option<String>,
    meta: Option<String>,
    is_error: bool,
    /// Whether the value is known to be valid against the tool's output schema.
    fits: bool,
}

impl<'py> ToolAnswer<'py> {
    pub fn of(target: &Target, value: Bound<'py, PyAny>) -> PyResult<Self> {
        let plain = target.returns.as_ref();
        let value = match value.cast_into_exact::<PyString>() {
            Ok(text) if plain.is_some_and(|plain| plain.takes_text()) || !target.is_checked => {
                // A lone surrogate is an error of the function, found here.
                text.to_str()?;
                return Ok(Self::Text(text, target.is_checked));
            }
            Ok(text) => text.into_any(),
            Err(other) => other.into_inner(),
        };
        if let Some(plain) = plain
            && let Some(value) = plain.kind.returned(value.clone())
        {
            return Lowered::plain(&value, plain.wraps).map(Self::Lowered);
        }
        if !target.is_checked && value.is_exact_instance_of::<PyDict>() {
            return Lowered::free(write::json(&value), &value).map(Self::Lowered);
        }
        if let Ok(finished) = value.cast::<Finished>() {
            return Ok(Self::Made(finished.get().lowered.clone()));
        }
        let lowered = target.lower.bind(value.py()).call1((&value,))?;
        let lowered = lowered.cast::<PyTuple>()?;
        let is_data = lowered.get_item(0)?.is_none() && lowered.get_item(1)?.is(&value);
        if !target.is_checked && is_data {
            return Lowered::free(write::json(&value), &value).map(Self::Lowered);
        }
        let part = |index| -> PyResult<Option<String>> {
            let part = lowered.get_item(index)?;
            (!part.is_none()).then(|| write::json(&part)).transpose()
        };
        Ok(Self::Lowered(Lowered {
            content: part(0)?,
            structured: part(1)?,
            meta: part(2)?,
            is_error: lowered.get_item(3)?.is_truthy()?,
            fits: false,
        }))
    }

    /// Whether the value is known to be valid against the tool's output schema.
    pub fn fits(&self) -> bool {
        self.lowered().is_none_or(|lowered| lowered.fits)
    }

    pub fn is_error(&self) -> bool {
        self.lowered().is_some_and(|lowered| lowered.is_error)
    }

    /// The structured content.
    pub fn structured(&self) -> Option<&str> {
        self.lowered()?.structured.as_deref()
    }

    fn lowered(&self) -> Option<&Lowered> {
        match self {
            Self::Text(..) => None,
            Self::Lowered(lowered) => Some(lowered),
            Self::Made(lowered) => Some(lowered),
        }
    }

    pub fn write(&self, result: &mut ResultWriter<'_>) {
        match self {
            Self::Text(text, is_structured) => {
                let text = text.to_str().unwrap_or_default();
                write_text(result, text, false);
                if *is_structured && result.revision().rules().structured_content {
                    result.with("structuredContent", |out| {
                        wrap(out, |out| string::append(out, text))
                    });
                }
            }
            Self::Lowered(lowered) => lowered.write(result),
            Self::Made(lowered) => lowered.write(result),
        }
    }

    /// Converts the value for the result cache.
    pub fn into_lowered(self) -> Arc<Lowered> {
        match self {
            Self::Text(text, is_structured) => {
                let text = text.to_str().unwrap_or_default();
                Arc::new(Lowered {
                    content: Some(text_block(text)),
                    structured: is_structured
                        .then(|| written(|out| wrap(out, |out| string::append(out, text)))),
                    fits: true,
                    ..Lowered::default()
                })
            }
            Self::Lowered(lowered) => Arc::new(lowered),
            Self::Made(lowered) => lowered,
        }
    }
}

/// Appends an object with a value as its member `result`.
fn wrap(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"{\"result\":");
    write(out);
    out.push(b'}');
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// A `content` array with one text block.
fn text_block(text: &str) -> String {
    written(|out| append_text(out, text))
}

/// A `content` array with a text block for each item of a list; `None` if some item is not text.
fn text_blocks(list: &Bound<'_, PyList>) -> Option<String> {
    let mut blocks = Vec::with_capacity(list.len());
    for item in list {
        let text = item.cast_into_exact::<PyString>().ok()?;
        blocks.push(text_block(text.to_str().ok()?));
    }
    // Each is an array of one block.
    let blocks: Vec<_> = blocks.iter().map(|one| &one[1..one.len() - 1]).collect();
    Some(format!("[{}]", blocks.join(",")))
}

/// The error for a result that is not JSON.
fn unserializable(py: Python<'_>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    let why = error.value(py).to_string();
    let made = PyTypeError::new_err(format!("Could not serialize the result: {why}"));
    made.set_cause(py, Some(error));
    made
}

impl Lowered {
    /// Converts a value of the plain type that the tool's return hint says.
    fn plain(value: &Bound<'_, PyAny>, wraps: bool) -> PyResult<Self> {
        let json = write::json(value).map_err(|error| unserializable(value.py(), error))?;
        let mut content = None;
        if value.is_none() {
            content = Some("[]".to_owned());
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            content = text_blocks(list);
        }
        Ok(Self {
            content: content.or_else(|| wraps.then(|| text_block(&json))),
            structured: Some(match wraps {
                true => format!("{{\"result\":{json}}}"),
                false => json,
            }),
            fits: true,
            ..Self::default()
        })
    }

    /// Converts a value of a tool without a schema, given as JSON. A value that is not JSON serializable becomes text.
    fn free(json: PyResult<String>, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = value.py();
        match json {
            Ok(json) => Ok(Self {
                structured: Some(json),
                ..Self::default()
            }),
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                let text = py.import("mcpbolt._jsonable")?.getattr("text")?;
                let text: String = text.call1((value,))?.extract()?;
                Ok(Self {
                    content: Some(text_block(&text)),
                    ..Self::default()
                })
            }
            Err(error) => Err(error),
        }
    }

    /// The memory that the result takes, in bytes.
    pub fn held_bytes(&self) -> usize {
        let parts = [&self.content, &self.structured, &self.meta];
        let parts: usize = parts.into_iter().flatten().map(String::len).sum();
        size_of::<Self>() + parts
    }

    fn write(&self, result: &mut ResultWriter<'_>) {
        let rules = result.revision().rules();
        match (&self.content, &self.structured) {
            (Some(content), _) => result.raw("content", &fitted(content, result.revision())),
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
        if let Some(meta) = &self.meta {
            result.meta(meta);
        }
    }
}

/// A tool's return value, converted to its result.
#[pyclass(frozen, module = "mcpbolt._core")]
pub struct Finished {
    pub lowered: Arc<Lowered>,
    /// Whether it is a success and is valid against the tool's output schema.
    #[pyo3(get)]
    pub is_good: bool,
}

#[pymethods]
impl Finished {
    /// The content blocks, the structured content, the `_meta`, and whether the tool failed.
    pub fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Lowered {
            content,
            structured,
            meta,
            is_error,
            ..
        } = &*self.lowered;
        let parsed = |json: &Option<String>| match json {
            Some(json) => read::value(py, json),
            None => Ok(py.None().into_bound(py)),
        };
        let is_error = PyBool::new(py, *is_error).to_owned().into_any();
        PyTuple::new(
            py,
            [
                parsed(content)?,
                parsed(structured)?,
                parsed(meta)?,
                is_error,
            ],
        )
    }
}

impl Finished {
    /// A result that was cached.
    pub fn cached(lowered: Arc<Lowered>) -> Self {
        Self {
            lowered,
            is_good: true,
        }
    }
}
