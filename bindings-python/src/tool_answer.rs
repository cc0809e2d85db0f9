//! Converts a tool's return value to its result.

use std::sync::Arc;

use mcpbolt::connection::ResultWriter;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::blocks::{append_text, fitted, write_text};
use crate::target::Target;
use crate::write;

/// A tool's return value.
pub enum ToolAnswer<'py> {
    /// Text, the most frequent value.
    Text(Bound<'py, PyString>),
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
}

impl<'py> ToolAnswer<'py> {
    pub fn of(target: &Target, value: Bound<'py, PyAny>) -> PyResult<Self> {
        let value = match value.cast_into_exact::<PyString>() {
            Ok(text) if target.is_checked => text.into_any(),
            Ok(text) => {
                // A lone surrogate is an error of the function, found here.
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
        if let Ok(finished) = value.cast::<Finished>() {
            return Ok(Self::Made(finished.get().lowered.clone()));
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
        self.lowered().is_some_and(|lowered| lowered.is_error)
    }

    /// The structured content.
    pub fn structured(&self) -> Option<&str> {
        self.lowered()?.structured.as_deref()
    }

    fn lowered(&self) -> Option<&Lowered> {
        match self {
            Self::Text(_) => None,
            Self::Lowered(lowered) => Some(lowered),
            Self::Made(lowered) => Some(lowered),
        }
    }

    pub fn write(&self, result: &mut ResultWriter<'_>) {
        match self {
            Self::Text(text) => write_text(result, text.to_str().unwrap_or_default(), false),
            Self::Lowered(lowered) => lowered.write(result),
            Self::Made(lowered) => lowered.write(result),
        }
    }

    /// Converts the value for the result cache.
    pub fn into_lowered(self) -> Arc<Lowered> {
        match self {
            Self::Text(text) => {
                let mut content = Vec::new();
                append_text(&mut content, text.to_str().unwrap_or_default());
                Arc::new(Lowered {
                    content: String::from_utf8(content).ok(),
                    ..Lowered::default()
                })
            }
            Self::Lowered(lowered) => Arc::new(lowered),
            Self::Made(lowered) => lowered,
        }
    }
}

impl Lowered {
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

impl Finished {
    /// A result that was cached.
    pub fn cached(lowered: Arc<Lowered>) -> Self {
        Self {
            lowered,
            is_good: true,
        }
    }
}
