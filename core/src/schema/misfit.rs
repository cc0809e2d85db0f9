//! Validation errors in parts.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use super::compiled::wording;
use super::{Misfit, Schema};

impl Schema {
    /// Checks a validated JSON text; `None` if it is valid.
    pub(crate) fn misfit(&self, json: &str) -> Option<Misfit> {
        if self.accepts_at_once(json) {
            return None;
        }
        let value: Value = match serde_json::from_str(json) {
            Ok(value) => value,
            Err(error) => return Some(Misfit::of_all(error.to_string())),
        };
        let validator = match self.full.as_ref() {
            Ok(validator) => validator,
            Err(error) => return Some(Misfit::of_all(error.to_string())),
        };
        let mut errors = validator.iter_errors(&value).peekable();
        let first = Misfit::of(errors.peek()?);
        // A wrong value is more telling than a missing one.
        let wrong = errors.find(|error| !is_absence(error));
        Some(wrong.map_or(first, |error| Misfit::of(&error)))
    }
}

fn is_absence(error: &jsonschema::ValidationError<'_>) -> bool {
    matches!(error.kind(), ValidationErrorKind::Required { .. })
}

impl Misfit {
    /// An error about no particular member.
    fn of_all(sentence: String) -> Self {
        Self {
            sentence,
            parameter: None,
            types: None,
            is_absence: false,
        }
    }

    fn of(error: &jsonschema::ValidationError<'_>) -> Self {
        let mut path: Vec<String> = error
            .instance_path()
            .as_str()
            .split('/')
            .skip(1)
            .map(|step| step.replace("~1", "/").replace("~0", "~"))
            .collect();
        let mut types = None;
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                path.extend(property.as_str().map(str::to_owned));
            }
            ValidationErrorKind::Type { kind } => {
                let expected = match kind {
                    TypeKind::Single(one) => vec![one.as_str()],
                    TypeKind::Multiple(all) => all.iter().map(|one| one.as_str()).collect(),
                };
                types = Some((expected, type_of(error.instance())));
            }
            _ => {}
        }
        let parameter = (!path.is_empty()).then(|| path.join("."));
        let sentence = match (&parameter, &types) {
            (Some(name), Some((expected, actual))) => {
                let expected = expected.join(" or ");
                format!("Invalid type for parameter '{name}'. Expected {expected}, got {actual}.")
            }
            (Some(name), None) if is_absence(error) => {
                format!("The required parameter '{name}' is missing.")
            }
            _ => wording(error),
        };
        Self {
            sentence,
            parameter,
            types,
            is_absence: is_absence(error),
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
