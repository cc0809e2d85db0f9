//! Plain types, such as `int` and `list[str] | None`: values that have exactly these types need no validator.
//!
//! pydantic takes such values as they are, so that calls of functions with a plain signature need not import
//! it. It decides about all other values: it may convert them. The types are read from the JSON Schemas that
//! the Python package makes of the hints.

use mcpbolt::json::reader;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};
use serde_json::Value;

use crate::settings::wrong;

/// A plain type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Any,
    Null,
    Bool,
    Int,
    Float,
    Text,
    List(Box<Self>),
    /// A dict with strings as keys.
    Dict(Box<Self>),
    /// A type, or `None`.
    Optional(Box<Self>),
    Union(Vec<Self>),
}

/// Which values are converted, as pydantic does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Converts {
    /// Integers become floats, also in lists and dicts.
    Within,
    /// Integers become floats, but lists and dicts stay as they are.
    Outside,
    /// None: each member of a union takes only values of its own type at first.
    Nothing,
}

impl Kind {
    /// Reads the schema of a plain type; `None` if the type is another.
    pub fn of(schema: &Value) -> Option<Self> {
        let part = |name| match schema.get(name) {
            None | Some(Value::Bool(true)) => Some(Box::new(Self::Any)),
            Some(part) => Self::of(part).map(Box::new),
        };
        if let Some(members) = schema.get("anyOf") {
            let members = members.as_array()?.iter().map(Self::of);
            let mut members = members.collect::<Option<Vec<_>>>()?;
            let len = members.len();
            members.retain(|member| *member != Self::Null);
            let has_null = members.len() < len;
            let inner = match members.len() {
                1 => members.pop()?,
                _ => Self::Union(members),
            };
            return Some(match has_null {
                true => Self::Optional(Box::new(inner)),
                false => inner,
            });
        }
        Some(match schema.get("type").map(Value::as_str) {
            None => Self::Any,
            Some(Some("null")) => Self::Null,
            Some(Some("boolean")) => Self::Bool,
            Some(Some("integer")) => Self::Int,
            Some(Some("number")) => Self::Float,
            Some(Some("string")) => Self::Text,
            Some(Some("array")) => Self::List(part("items")?),
            Some(Some("object")) => Self::Dict(part("additionalProperties")?),
            Some(_) => return None,
        })
    }

    /// The value that a function gets for an argument that was just parsed; `None` if pydantic decides.
    fn argument<'py>(&self, value: Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        self.taken(value, Converts::Within)
    }

    /// The value that a function's return value stands for; `None` if pydantic decides.
    pub fn returned<'py>(&self, value: Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        self.taken(value, Converts::Outside)
    }

    fn taken<'py>(&self, value: Bound<'py, PyAny>, how: Converts) -> Option<Bound<'py, PyAny>> {
        let py = value.py();
        let is_it = match self {
            Self::Any => true,
            Self::Null => value.is_none(),
            Self::Bool => value.is_exact_instance_of::<PyBool>(),
            Self::Int => value.is_exact_instance_of::<PyInt>(),
            Self::Text => value.is_exact_instance_of::<PyString>(),
            Self::Float if value.is_exact_instance_of::<PyFloat>() => true,
            Self::Float => {
                if how == Converts::Nothing || !value.is_exact_instance_of::<PyInt>() {
                    return None;
                }
                let float = value.extract().ok()?;
                return Some(PyFloat::new(py, float).into_any());
            }
            Self::Optional(inner) => {
                return match value.is_none() {
                    true => Some(value),
                    false => inner.taken(value, how),
                };
            }
            Self::Union(members) => {
                let take = |member: &Self| member.taken(value.clone(), Converts::Nothing);
                return members.iter().find_map(take);
            }
            Self::List(item) => {
                let list = value.cast_exact::<PyList>().ok()?;
                if **item != Self::Any {
                    for (index, old) in list.iter().enumerate() {
                        let new = item.taken(old.clone(), how)?;
                        if !new.is(&old) {
                            if how != Converts::Within {
                                return None;
                            }
                            list.set_item(index, new).ok()?;
                        }
                    }
                }
                true
            }
            Self::Dict(member) => {
                let dict = value.cast_exact::<PyDict>().ok()?;
                // Keys of parsed objects are strings.
                if **member != Self::Any || how != Converts::Within {
                    // The copy of the items allows changes of the dict meanwhile.
                    for item in dict.items() {
                        let (key, old) = item
                            .extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()
                            .ok()?;
                        if !key.is_exact_instance_of::<PyString>() {
                            return None;
                        }
                        let new = member.taken(old.clone(), how)?;
                        if !new.is(&old) {
                            if how != Converts::Within {
                                return None;
                            }
                            dict.set_item(key, new).ok()?;
                        }
                    }
                }
                true
            }
        };
        is_it.then_some(value)
    }
}

/// The parameters of a function, all of plain types.
#[derive(Debug)]
pub struct Parameters(Vec<Parameter>);

#[derive(Debug)]
struct Parameter {
    name: Py<PyString>,
    kind: Kind,
    is_required: bool,
}

impl Parameters {
    /// Reads the input schema of a tool whose parameters, with these names, have plain types.
    pub fn of(py: Python<'_>, schema: &str, names: &[Py<PyString>]) -> PyResult<Option<Self>> {
        let schema: Value = serde_json::from_str(schema).map_err(wrong)?;
        let required = schema.get("required").and_then(Value::as_array);
        let mut all = Vec::with_capacity(names.len());
        for name in names {
            let text = name.bind(py).to_str()?;
            let Some(kind) = schema["properties"].get(text).and_then(Kind::of) else {
                return Ok(None);
            };
            all.push(Parameter {
                name: name.clone_ref(py),
                kind,
                is_required: required.is_some_and(|all| all.iter().any(|one| one == text)),
            });
        }
        Ok(Some(Self(all)))
    }

    /// Whether pydantic would take these arguments, which were just parsed. Converts them as it would.
    pub fn take(&self, arguments: &Bound<'_, PyDict>) -> bool {
        let py = arguments.py();
        let mut known = 0;
        let mut take = |parameter: &Parameter| -> Option<()> {
            let name = parameter.name.bind(py);
            let Some(old) = arguments.get_item(name).ok()? else {
                return (!parameter.is_required).then_some(());
            };
            known += 1;
            let new = parameter.kind.argument(old.clone())?;
            if !new.is(&old) {
                arguments.set_item(name, new).ok()?;
            }
            Some(())
        };
        self.0.iter().all(|one| take(one).is_some()) && known == arguments.len()
    }
}

/// The plain type of a function's return value.
#[derive(Clone, Debug)]
pub struct Returns {
    pub kind: Kind,
    /// Whether the structured content has the value as its member `result`.
    pub wraps: bool,
}

impl Returns {
    /// Reads the output schema of a tool whose return value has a plain type.
    pub fn of(schema: &str, wraps: bool) -> Option<Self> {
        let schema = match wraps {
            true => reader::find_path(schema, &["properties", "result"])?,
            false => schema,
        };
        let schema: Value = serde_json::from_str(schema).ok()?;
        Some(Self {
            kind: Kind::of(&schema)?,
            wraps,
        })
    }

    /// Whether text is a value of the type.
    pub fn takes_text(&self) -> bool {
        let is_text = |kind: &Kind| *kind == Kind::Text;
        match &self.kind {
            Kind::Optional(inner) => is_text(inner),
            Kind::Union(members) => members.iter().any(is_text),
            kind => is_text(kind),
        }
    }
}
