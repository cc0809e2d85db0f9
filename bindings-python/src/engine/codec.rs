//! Messages and whole texts between bytes and Python objects.

use mcpbolt::json;
use mcpbolt::limits::Limits;
use mcpbolt::message::encode::{self, ErrorId};
use mcpbolt::message::{
    self, Envelope, Field, Frame, Kind, RequestId, decode as scan_frame, decode_unpadded,
};
use mcpbolt::scan;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyInt, PyMemoryView, PyString};

use super::message::{Message, kind, part};
use crate::{read, write};

/// One message, validated whole; its parts become objects when they are looked at.
#[pyfunction]
#[pyo3(signature = (data, /, max_depth = None))]
pub fn decode(data: &Bound<'_, PyAny>, max_depth: Option<usize>) -> PyResult<Message> {
    let bytes = bytes_of(data)?;
    let envelope = envelope_of(bytes.as_bytes(), data.py(), max_depth)?;
    Ok(Message::given(bytes, envelope))
}

/// One message with all that is in it: what it is, its id, its method, and its params, result,
/// error or messages.
#[pyfunction]
#[pyo3(signature = (data, /, max_depth = None))]
pub fn unpack<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    max_depth: Option<usize>,
) -> PyResult<Parts<'py>> {
    let given = bytes_of(data)?;
    let envelope = envelope_of(given.as_bytes(), py, max_depth)?;
    parts(py, given.as_bytes(), &envelope, max_depth)
}

/// What a message is, its id, its method and the rest.
pub type Parts<'py> = (
    Bound<'py, PyString>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
);

/// The parts of a message, from what was found in its bytes.
pub fn parts<'py>(
    py: Python<'py>,
    bytes: &[u8],
    envelope: &Envelope,
    max_depth: Option<usize>,
) -> PyResult<Parts<'py>> {
    let value = |field| {
        let json = part(bytes, envelope, field);
        json.map(|json| read::value(py, json)).transpose()
    };
    let body = match envelope.kind() {
        Kind::Request | Kind::Notification => value(Field::Params)?,
        Kind::Response => value(Field::Result)?,
        Kind::Error => value(Field::Error)?,
        Kind::Batch => Some(
            elements(py, bytes, max_depth)?
                .into_pyobject(py)?
                .into_any(),
        ),
        Kind::Invalid => {
            let fault = envelope.fault();
            let why = fault.map_or("not a message", |fault| fault.message());
            let code = fault.map_or(-32600, |fault| fault.code());
            return Err(bad(py, why, None, code, part(bytes, envelope, Field::Id)));
        }
    };
    // What is no Unicode is no method that anybody has.
    let method = part(bytes, envelope, Field::Method);
    let method = method.and_then(|json| read::name(py, json).ok());
    Ok((kind(py, envelope.kind()), value(Field::Id)?, method, body))
}

/// Any JSON text as Python objects.
#[pyfunction]
#[pyo3(signature = (data, /, max_depth = None))]
pub fn loads<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    max_depth: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let given = bytes_of(data)?;
    let bytes = given.as_bytes();
    let limit = depth(max_depth);
    let text = scan::text(bytes).ok_or(());
    match text.map(|text| read::unproved(py, text, limit)) {
        Ok(Ok(value)) => Ok(value),
        // What is wrong with it is the engine's to say, unless only Python objects to it.
        found => match (json::validate(bytes, limit), found) {
            (Err(error), _) => {
                let why = error.to_string();
                Err(bad(py, &why, Some(error.offset), error.code(), None))
            }
            (Ok(()), Ok(Err(error))) => Err(error),
            (Ok(()), _) => Err(PyValueError::new_err("not Unicode")),
        },
    }
}

/// Python objects as JSON text.
#[pyfunction]
#[pyo3(signature = (value, /))]
pub fn dumps<'py>(py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    write::bytes(py, |out| write::append(out, value))
}

/// A request. `params` is a dict, or the bytes of a JSON object.
#[pyfunction]
#[pyo3(signature = (id, method, params = None))]
pub fn encode_request<'py>(
    py: Python<'py>,
    id: &Bound<'py, PyAny>,
    method: &str,
    params: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    with_id(id, |id| match params.map(Given::of).transpose()? {
        Some(Given::Value(value)) => write::bytes(py, |out| {
            encode::request_by(out, id, method, |out| write::append_object(out, value))
        }),
        Some(Given::Text(text)) => written(py, |out| encode::request(out, id, method, Some(text))),
        None => written(py, |out| encode::request(out, id, method, None)),
    })
}

/// A notification.
#[pyfunction]
#[pyo3(signature = (method, params = None))]
pub fn encode_notification<'py>(
    py: Python<'py>,
    method: &str,
    params: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let params = params.map(object).transpose()?;
    written(py, |out| {
        encode::notification(out, method, params.as_deref())
    })
}

/// The answer to a request.
#[pyfunction]
pub fn encode_response<'py>(
    py: Python<'py>,
    id: &Bound<'py, PyAny>,
    result: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    with_id(id, |id| match Given::of(result)? {
        Given::Value(value) => write::bytes(py, |out| {
            encode::response_by(out, id, |out| write::append_object(out, value))
        }),
        Given::Text(text) => written(py, |out| encode::response(out, id, text)),
    })
}

/// The error that answers a request.
#[pyfunction]
#[pyo3(signature = (id, code, message, data = None))]
pub fn encode_error<'py>(
    py: Python<'py>,
    id: Option<&Bound<'py, PyAny>>,
    code: i64,
    message: &str,
    data: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let token = id.map(id_token).transpose()?;
    let id = match &token {
        Some(token) => ErrorId::Id(self::id(token)?),
        None => ErrorId::Null,
    };
    let data = data.map(write::json).transpose()?;
    written(py, |out| {
        encode::error(out, id, code, message, data.as_deref())
    })
}

fn written<'py>(
    py: Python<'py>,
    write: impl FnOnce(&mut Vec<u8>),
) -> PyResult<Bound<'py, PyBytes>> {
    write::bytes(py, |out| {
        write(out);
        Ok(())
    })
}

/// The messages of a batch, each on its own; what is no message says why.
pub fn elements(py: Python<'_>, bytes: &[u8], max_depth: Option<usize>) -> PyResult<Vec<Message>> {
    let Ok(whole) = message::Message::parse(bytes, depth(max_depth)) else {
        return Ok(Vec::new());
    };
    let frames = whole.frame().into_iter().flat_map(message::batch);
    let each = |frame: Frame<'_>| {
        let mut envelope = Envelope::new();
        // The whole was validated.
        let _ = scan_frame(frame, depth(max_depth), &mut envelope);
        Message::given(PyBytes::new(py, frame.bytes()), envelope)
    };
    Ok(frames.map(each).collect())
}

fn envelope_of(bytes: &[u8], py: Python<'_>, max_depth: Option<usize>) -> PyResult<Envelope> {
    let mut envelope = Envelope::new();
    match decode_unpadded(bytes, depth(max_depth), &mut envelope) {
        Ok(()) => Ok(envelope),
        Err(error) => {
            let id = part(bytes, &envelope, Field::Id);
            let why = error.to_string();
            Err(bad(py, &why, Some(error.offset), error.code(), id))
        }
    }
}

/// What the package raises for bytes that are no message, or no JSON.
pub fn bad(py: Python<'_>, why: &str, offset: Option<u32>, code: i32, id: Option<&str>) -> PyErr {
    let made = py
        .import("mcpbolt._errors")
        .and_then(|errors| errors.getattr("DecodeError"))
        .and_then(|class| class.call1((why, offset, code, id)));
    made.map_or_else(|error| error, PyErr::from_value)
}

fn depth(max_depth: Option<usize>) -> usize {
    max_depth.unwrap_or(Limits::STDIO.max_depth)
}

/// Bytes, or what holds some, or text.
pub fn bytes_of<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    let py = data.py();
    if let Ok(text) = data.cast::<PyString>() {
        return Ok(PyBytes::new(py, text.to_str()?.as_bytes()));
    }
    if data.is_instance_of::<PyByteArray>() || data.is_instance_of::<PyMemoryView>() {
        return Ok(py.get_type::<PyBytes>().call1((data,))?.cast_into()?);
    }
    Err(PyTypeError::new_err("bytes, or what holds some, or a str"))
}

/// An id as it stands on the wire.
pub fn id_token(id: &Bound<'_, PyAny>) -> PyResult<String> {
    let is_integer = id.is_instance_of::<PyInt>() && !id.is_instance_of::<PyBool>();
    match is_integer || id.is_instance_of::<PyString>() {
        true => write::json(id),
        false => Err(PyTypeError::new_err("an id is an int or a str")),
    }
}

pub fn id(token: &str) -> PyResult<RequestId<'_>> {
    RequestId::from_token(token).ok_or_else(|| PyValueError::new_err("the id is too long"))
}

/// The same of one that is a small number, without making a text of it first.
fn with_id<T>(
    id: &Bound<'_, PyAny>,
    then: impl FnOnce(RequestId<'_>) -> PyResult<T>,
) -> PyResult<T> {
    if let Ok(number) = id.cast_exact::<PyInt>()
        && let Ok(small) = number.extract::<i64>()
    {
        return then(self::id(itoa::Buffer::new().format(small))?);
    }
    then(self::id(&id_token(id)?)?)
}

/// What is to be a JSON object.
enum Given<'a, 'py> {
    Value(&'a Bound<'py, PyAny>),
    /// Bytes that are proved to be one.
    Text(&'a str),
}

impl<'a, 'py> Given<'a, 'py> {
    fn of(value: &'a Bound<'py, PyAny>) -> PyResult<Self> {
        let Ok(bytes) = value.cast::<PyBytes>() else {
            return Ok(Self::Value(value));
        };
        let bytes = bytes.as_bytes();
        json::validate(bytes, Limits::STDIO.max_depth)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let text = scan::text(bytes).unwrap_or_default().trim();
        match text.starts_with('{') {
            true => Ok(Self::Text(text)),
            false => Err(PyTypeError::new_err("a JSON object: a dict, or its bytes")),
        }
    }
}

/// A JSON object: a mapping as text, bytes as they are once they are proved to be one.
pub fn object(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match Given::of(value)? {
        Given::Text(text) => Ok(text.to_owned()),
        Given::Value(value) => {
            let mut out = Vec::new();
            write::append_object(&mut out, value)?;
            String::from_utf8(out).map_err(|_| PyValueError::new_err("not Unicode"))
        }
    }
}
