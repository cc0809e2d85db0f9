//! One message, whose parts are parsed when they are accessed.

use std::sync::OnceLock;

use bytes::Bytes;
use mcpbolt::message::{Envelope, Field, Kind, Message as Owned, encode};
use mcpbolt::scan;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::codec;
use crate::read;

/// A message whose parts become Python objects when they are first accessed.
#[pyclass(frozen, module = "mcpbolt.engine")]
pub struct Message {
    body: Body,
    envelope: Envelope,
    /// The parsed params, result or error: a valid message has only one of them.
    value: OnceLock<Py<PyAny>>,
}

/// The owner of a message's bytes.
enum Body {
    /// A Python object.
    Given(Py<PyBytes>),
    /// The engine.
    Came(Bytes),
}

impl Message {
    /// A message over bytes of a Python object, with the spans that were found in them.
    pub fn given(bytes: Bound<'_, PyBytes>, envelope: Envelope) -> Self {
        Self::new(Body::Given(bytes.unbind()), envelope)
    }

    /// A message that came on a connection.
    pub fn came(message: Owned) -> Self {
        let envelope = *message.as_ref().envelope();
        Self::new(Body::Came(message.to_bytes()), envelope)
    }

    fn new(body: Body, envelope: Envelope) -> Self {
        Self {
            body,
            envelope,
            value: OnceLock::new(),
        }
    }

    pub fn bytes<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        match &self.body {
            Body::Given(bytes) => bytes.as_bytes(py),
            Body::Came(bytes) => bytes,
        }
    }

    pub fn json<'a>(&'a self, py: Python<'a>, field: Field) -> Option<&'a str> {
        part(self.bytes(py), &self.envelope, field)
    }

    fn text<'py>(&self, py: Python<'py>, field: Field) -> Option<Bound<'py, PyAny>> {
        let json = self.json(py, field).filter(|json| json.starts_with('"'));
        json.and_then(|json| read::name(py, json).ok())
    }

    /// A part as Python objects. It is cached if the message is one of `kinds`; an invalid message, which
    /// may have several parts, caches none.
    fn value<'py>(
        &self,
        py: Python<'py>,
        field: Field,
        kinds: [Kind; 2],
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(json) = self.json(py, field) else {
            return Ok(None);
        };
        if !kinds.contains(&self.envelope.kind()) {
            return read::value(py, json).map(Some);
        }
        let value = match self.value.get() {
            Some(value) => value,
            None => {
                let made = read::value(py, json)?.unbind();
                // If another thread was first, its value is used.
                self.value.get_or_init(|| made)
            }
        };
        Ok(Some(value.bind(py).clone()))
    }

    fn raw<'py>(&self, py: Python<'py>, field: Field) -> Option<Bound<'py, PyBytes>> {
        let span = self.envelope.span(field);
        span.get(self.bytes(py))
            .map(|bytes| PyBytes::new(py, bytes))
    }
}

/// The JSON text of a part of a message.
pub fn part<'a>(bytes: &'a [u8], envelope: &Envelope, field: Field) -> Option<&'a str> {
    scan::text(envelope.span(field).get(bytes)?)
}

/// The name of a message's kind.
pub fn kind<'py>(py: Python<'py>, kind: Kind) -> Bound<'py, PyString> {
    let word = match kind {
        Kind::Request => intern!(py, "request"),
        Kind::Notification => intern!(py, "notification"),
        Kind::Response => intern!(py, "response"),
        Kind::Error => intern!(py, "error"),
        Kind::Batch => intern!(py, "batch"),
        Kind::Invalid => intern!(py, "invalid"),
    };
    word.clone()
}

#[pymethods]
impl Message {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.value.get())
    }

    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        kind(py, self.envelope.kind())
    }

    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let token = self.json(py, Field::Id);
        token.map(|token| read::value(py, token)).transpose()
    }

    #[getter]
    fn raw_id<'a>(&'a self, py: Python<'a>) -> Option<&'a str> {
        self.json(py, Field::Id)
    }

    #[getter]
    fn method<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.text(py, Field::Method)
    }

    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.value(py, Field::Params, [Kind::Request, Kind::Notification])
    }

    #[getter]
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.value(py, Field::Result, [Kind::Response; 2])
    }

    #[getter]
    fn error<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.value(py, Field::Error, [Kind::Error; 2])
    }

    #[getter]
    fn raw_params<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.raw(py, Field::Params)
    }

    #[getter]
    fn raw_result<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.raw(py, Field::Result)
    }

    #[getter]
    fn raw_arguments<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.raw(py, Field::Arguments)
    }

    #[getter(raw)]
    fn whole<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        match &self.body {
            Body::Given(bytes) => bytes.bind(py).clone(),
            Body::Came(bytes) => PyBytes::new(py, bytes),
        }
    }

    #[getter]
    fn name<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.text(py, Field::Name)
    }

    #[getter]
    fn uri<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.text(py, Field::Uri)
    }

    #[getter]
    fn progress_token<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let token = self.json(py, Field::ProgressToken);
        token.map(|token| read::value(py, token)).transpose()
    }

    #[getter]
    fn fault(&self) -> Option<&'static str> {
        self.envelope.fault().map(|fault| fault.message())
    }

    #[getter]
    fn code(&self) -> Option<i32> {
        self.envelope.fault().map(|fault| fault.code())
    }

    #[getter]
    fn invites_answer(&self) -> bool {
        self.envelope.invites_answer()
    }

    /// The messages of a batch; an empty list for any other message.
    #[pyo3(signature = (max_depth = None))]
    fn messages(&self, py: Python<'_>, max_depth: Option<usize>) -> PyResult<Vec<Self>> {
        codec::elements(py, self.bytes(py), max_depth)
    }

    /// Returns the message with another id, otherwise byte for byte the same.
    fn with_id<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let token = codec::id_token(id)?;
        let bytes = match &self.body {
            Body::Given(bytes) => Bytes::copy_from_slice(bytes.as_bytes(py)),
            Body::Came(bytes) => bytes.clone(),
        };
        let own = Owned::from_bytes(bytes, self.envelope);
        let mut out = Vec::new();
        encode::with_id(&mut out, own.as_ref(), codec::id(&token)?);
        Ok(PyBytes::new(py, &out))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let word = |field| self.json(py, field).unwrap_or_default().to_owned();
        let parts = [
            kind(py, self.envelope.kind()).to_string(),
            word(Field::Id),
            word(Field::Method),
        ];
        let shown: Vec<_> = parts
            .iter()
            .filter(|part| !part.is_empty())
            .map(String::as_str)
            .collect();
        Ok(format!("<Message {}>", shown.join(" ")))
    }
}
