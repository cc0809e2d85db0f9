//! Converts messages and JSON texts between bytes and Python objects.

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

/// Decodes one message: validates all of it; its parts become Python objects when they are accessed.
#[pyfunction]
#[pyo3(signature = (data, /, max_depth = None))]
pub fn decode(data: &Bound<'_, PyAny>, max_depth: Option<usize>) -> PyResult<Message> {
    let bytes = bytes_of(data)?;
    let envelope = envelope_of(bytes.as_bytes(), data.py(), max_depth)?;
    Ok(Message::given(bytes, envelope))
}

/// Decodes one message completely, faster than accessing each part after `decode`. Returns its kind, its
/// id, its method, and its params, result, error or messages.
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

/// A message's kind, its id, its method, and its params, result, error or messages.
pub type Parts<'py> = (
    Bound<'py, PyString>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
);

/// Makes the parts of a message from the spans that were found in its bytes.
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
    // A method that is not valid Unicode matches no method name; it becomes `None`.
    let method = part(bytes, envelope, Field::Method);
    let method = method.and_then(|json| read::name(py, json).ok());
    Ok((kind(py, envelope.kind()), value(Field::Id)?, method, body))
}

/// Parses any JSON text into Python objects.
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
        // The engine reports the fault, unless the text is valid JSON that only Python rejects.
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

/// Serializes Python objects to JSON text without whitespace.
#[pyfunction]
#[pyo3(signature = (value, /))]
pub fn dumps<'py>(py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    write::bytes(py, |out| write::append(out, value))
}

/// Encodes a request, without a line end. Params are a dict, or the bytes of a JSON object, which are
/// validated.
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

/// Encodes a notification.
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

/// Encodes the response to a request.
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

/// Encodes the error response to a request; `None` as the id, if it could not be read, becomes `null`.
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

/// The messages of a batch, one by one; an element that is not a message is invalid and has a fault.
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

/// Makes the package's `DecodeError`, for bytes that are not a message or not JSON.
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

/// The bytes of a bytes-like object or, as UTF-8, of a `str`.
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

/// An id as it is written on the wire.
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

/// Calls `then` with an id; small integers are formatted without the detour over [`id_token`].
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

/// A value given as a JSON object.
enum Given<'a, 'py> {
    Value(&'a Bound<'py, PyAny>),
    /// Text that was validated to be a JSON object.
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

/// The text of a JSON object: a mapping is serialized, bytes are validated and used as they are.
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
