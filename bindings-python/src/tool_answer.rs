//! What a tool gave back, as its result.

use mcpbolt::connection::ResultWriter;
use mcpbolt::json::string;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::blocks::fitted;
use crate::target::Target;
use crate::write;

/// What a tool gave back.
pub enum ToolAnswer<'py> {
    /// Text, the most frequent.
    Text(Bound<'py, PyString>),
    /// Anything else.
    Lowered(Lowered),
}

/// A result in JSON.
#[derive(Default)]
pub struct Lowered {
    content: Option<String>,
    structured: Option<String>,
    meta: Option<String>,
    is_error: bool,
}

impl<'py> ToolAnswer<'py> {
    pub fn of(target: &Target, value: Bound<'py, PyAny>) -> PyResult<Self> {
        let value = match value.cast_into_exact::<PyString>() {
            Ok(text) if target.is_checked => text.into_any(),
            Ok(text) => {
                // What is no Unicode is the function's fault, and found here.
                text.to_str()?;
                return Ok(Self::Text(text));
            }
            Err(other) => other.into_inner(),
        };
        if value.is_exact_instance_of::<PyDict>() {
            let structured = Some(write::json(&value)?);
            return Ok(Self::Lowered(Lowered {
                structured,
                ..Lowered::default()
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
            meta: part(2)?,
            is_error: lowered.get_item(3)?.is_truthy()?,
        }))
    }

    pub fn is_error(&self) -> bool {
        matches!(self, Self::Lowered(lowered) if lowered.is_error)
    }

    /// Its structured content.
    pub fn structured(&self) -> Option<&str> {
        match self {
            Self::Text(_) => None,
            Self::Lowered(lowered) => lowered.structured.as_deref(),
        }
    }

    pub fn write(&self, result: &mut ResultWriter<'_>) {
        match self {
            Self::Text(text) => write_text(result, text.to_str().unwrap_or_default(), false),
            Self::Lowered(lowered) => lowered.write(result),
        }
    }
}

impl Lowered {
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

/// One block of text, as the content of a result.
pub fn append_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"[{\"type\":\"text\",\"text\":");
    string::append(out, text);
    out.extend_from_slice(b"}]");
}

/// The members of a result that is one block of text.
pub fn write_text(result: &mut ResultWriter<'_>, text: &str, is_error: bool) {
    result.with("content", |out| append_text(out, text));
    if is_error {
        result.raw("isError", "true");
    }
}
