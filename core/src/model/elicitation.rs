//! Elicitation: asks the user for input, in a form or at a web page.

use serde_json::{Map, Value, json};

use super::{Other, declared};
use crate::error::RequestError;
use crate::mcp::Revision;

/// A question to the user: the params of `elicitation/create`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Elicitation {
    /// Asks the user to fill in a form. Not for secrets (R-ELI-05).
    Form {
        /// The purpose, shown to the user.
        message: String,
        /// The fields: a flat object schema of strings, numbers, booleans and choices (R-ELI-04).
        schema: Value,
    },
    /// Asks the user to visit a page, whose input the client does not see (from 2025-11-25).
    Url {
        /// The purpose, shown to the user.
        message: String,
        /// The page's URL.
        url: String,
        /// The server's id of this elicitation, which `notifications/elicitation/complete` repeats;
        /// not sent from 2026-07-28 on.
        id: Option<String>,
    },
}

/// The user's response: the result of `elicitation/create`.
#[derive(Clone, Debug, PartialEq)]
pub enum Elicited {
    /// The user agreed. Holds the form's content; empty for a page (R-ELI-07).
    Accepted(Other),
    /// The user declined.
    Declined,
    /// The user dismissed the request without a choice.
    Cancelled,
}

impl Elicitation {
    /// A form; `schema` describes its fields.
    pub fn form(message: impl Into<String>, schema: Value) -> Self {
        Self::Form {
            message: message.into(),
            schema,
        }
    }

    /// A page to visit. `id` identifies this elicitation and must be unique.
    pub fn url(message: impl Into<String>, url: impl Into<String>, id: impl Into<String>) -> Self {
        Self::Url {
            message: message.into(),
            url: url.into(),
            id: Some(id.into()),
        }
    }

    /// Checks that a client with these capabilities may be asked this in that revision.
    ///
    /// # Errors
    /// The client did not declare the mode (R-ELI-02), the revision does not have the mode, the
    /// form is not flat (R-ELI-04), or the page's URL is not http(s).
    pub fn check(&self, revision: Revision, capabilities: &str) -> Result<(), RequestError> {
        let rules = revision.rules();
        if !rules.elicitation {
            return Err(RequestError::Unsupported("elicitation"));
        }
        declared(capabilities, &["elicitation"], "elicitation")?;
        let has = |mode| declared(capabilities, &["elicitation", mode], "elicitation");
        match self {
            Self::Form { schema, .. } => {
                // A client that declares no mode supports forms (R-CAP-04).
                if rules.elicitation_modes && has("url").is_ok() && has("form").is_err() {
                    return Err(RequestError::Unsupported("elicitation.form"));
                }
                match is_flat(schema, rules.elicitation_modes) {
                    true => Ok(()),
                    false => Err(RequestError::Misuse(
                        "a form is a flat object of strings, numbers, booleans and choices",
                    )),
                }
            }
            Self::Url { url, .. } => {
                if !rules.elicitation_modes {
                    return Err(RequestError::Unsupported("elicitation.url"));
                }
                declared(capabilities, &["elicitation", "url"], "elicitation.url")?;
                // R-ELI-08
                let rest = ["https://", "http://"]
                    .iter()
                    .find_map(|s| url.strip_prefix(s));
                match rest
                    .is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
                {
                    true => Ok(()),
                    false => Err(RequestError::Misuse("the page is not at an http(s) URL")),
                }
            }
        }
    }

    /// The params in that revision, as JSON.
    pub fn to_json(&self, revision: Revision) -> Value {
        let rules = revision.rules();
        match self {
            Self::Form { message, schema } => {
                let mut params = json!({ "message": message, "requestedSchema": schema });
                if rules.elicitation_modes {
                    params["mode"] = "form".into();
                } else if let Some(fields) = params["requestedSchema"].get_mut("properties") {
                    name_choices(fields);
                }
                params
            }
            Self::Url { message, url, id } => {
                let mut params = json!({ "mode": "url", "message": message, "url": url });
                if let Some(id) = id.as_deref().filter(|_| rules.elicitation_ids) {
                    params["elicitationId"] = id.into();
                }
                params
            }
        }
    }

    /// Parses params of any revision.
    ///
    /// # Errors
    /// Says which member is missing or malformed.
    pub fn parse(json: &str) -> Result<Self, &'static str> {
        let params: Value =
            serde_json::from_str(json).map_err(|_| "the params are not readable")?;
        let text = |name| params.get(name).and_then(Value::as_str).map(str::to_owned);
        let message = text("message").ok_or("the message is missing")?;
        // R-ELI-03
        match text("mode").as_deref().unwrap_or("form") {
            "form" => Ok(Self::Form {
                message,
                schema: params
                    .get("requestedSchema")
                    .cloned()
                    .ok_or("the form is missing")?,
            }),
            "url" => Ok(Self::Url {
                message,
                url: text("url").ok_or("the url is missing")?,
                id: text("elicitationId"),
            }),
            _ => Err("the mode is neither form nor url"),
        }
    }
}

impl Elicited {
    /// A form that is filled in with these values.
    ///
    /// ```
    /// use mcpbolt::model::Elicited;
    /// use serde_json::{Value, json};
    ///
    /// let filled = Elicited::accepted([("name", Value::from("Ada")), ("age", Value::from(36))]);
    /// assert_eq!(filled.to_json(true)["content"], json!({"name": "Ada", "age": 36}));
    /// ```
    pub fn accepted<N: Into<String>, V: Into<Value>>(
        values: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let values = values.into_iter();
        Self::Accepted(
            values
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }

    /// The result as JSON; `form` says whether a form was requested.
    pub fn to_json(&self, form: bool) -> Value {
        match self {
            Self::Accepted(content) if form => json!({ "action": "accept", "content": content }),
            Self::Accepted(_) => json!({ "action": "accept" }),
            Self::Declined => json!({ "action": "decline" }),
            Self::Cancelled => json!({ "action": "cancel" }),
        }
    }

    /// Parses a result.
    ///
    /// # Errors
    /// [`RequestError::BadAnswer`] if the JSON is not an elicitation result.
    pub fn parse(json: &str) -> Result<Self, RequestError> {
        let wrong = RequestError::BadAnswer("a result of another shape");
        let mut result: Value = serde_json::from_str(json).map_err(|_| wrong.clone())?;
        match result["action"].as_str() {
            Some("accept") => Ok(Self::Accepted(match result["content"].take() {
                Value::Object(content) => content,
                Value::Null => Map::new(),
                _ => return Err(wrong),
            })),
            Some("decline") => Ok(Self::Declined),
            Some("cancel") => Ok(Self::Cancelled),
            _ => Err(wrong),
        }
    }
}

/// Writes choices with titles as 2025-06-18 has them: `enum` and `enumNames`.
fn name_choices(fields: &mut Value) {
    let fields = fields.as_object_mut().into_iter().flatten();
    for field in fields.filter_map(|(_, field)| field.as_object_mut()) {
        let choices = field.get("oneOf").and_then(Value::as_array);
        let choices = choices.into_iter().flatten().filter_map(|choice| {
            let value = choice.get("const")?.clone();
            let title = choice.get("title").unwrap_or(&value).clone();
            Some((value, title))
        });
        let (values, titles): (Vec<_>, Vec<_>) = choices.unzip();
        if !values.is_empty() {
            field.remove("oneOf");
            field.insert("enum".to_owned(), values.into());
            field.insert("enumNames".to_owned(), titles.into());
        }
    }
}

/// Whether the form is a flat object schema. R-ELI-04.
fn is_flat(schema: &Value, choices: bool) -> bool {
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
        return false;
    };
    let plain = |field: &Value| match field["type"].as_str() {
        Some("string" | "number" | "integer" | "boolean") => true,
        Some("array") => choices && field["items"].is_object(),
        _ => false,
    };
    schema["type"] == "object" && fields.values().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_is_no_object_is_passed_on_as_it_is() {
        for schema in [
            json!(true),
            json!("?"),
            json!([1]),
            json!({"type": "object"}),
        ] {
            let form = Elicitation::form("?", schema.clone());
            for revision in Revision::ALL {
                assert_eq!(form.to_json(revision)["requestedSchema"], schema);
            }
        }
    }

    /// R-ELI-02.
    #[test]
    fn a_mode_is_used_only_if_the_client_declared_it() {
        let form = Elicitation::form("?", json!({"type": "object", "properties": {}}));
        let page = Elicitation::url("?", "https://example.com/x", "1");
        let both = r#"{"elicitation":{"form":{},"url":{}}}"#;
        let plain = r#"{"elicitation":{}}"#;
        let pages = r#"{"elicitation":{"url":{}}}"#;
        use Revision::*;
        for (what, revision, capabilities, missing) in [
            (&form, V2025_11_25, both, None),
            (&form, V2025_11_25, plain, None),
            (&form, V2025_06_18, plain, None),
            (&form, V2025_11_25, pages, Some("elicitation.form")),
            (&form, V2025_11_25, "{}", Some("elicitation")),
            (&form, V2025_03_26, both, Some("elicitation")),
            (&page, V2026_07_28, pages, None),
            (&page, V2025_11_25, plain, Some("elicitation.url")),
            (&page, V2025_06_18, pages, Some("elicitation.url")),
        ] {
            let expected = missing.map_or(Ok(()), |name| Err(RequestError::Unsupported(name)));
            let verdict = what.check(revision, capabilities);
            assert_eq!(verdict, expected, "{what:?} {revision} {capabilities}");
        }
    }

    /// R-ELI-04, R-ELI-08.
    #[test]
    fn forms_are_flat_and_pages_are_on_the_web() {
        let both = r#"{"elicitation":{"form":{},"url":{}}}"#;
        let field = |field: Value| {
            let schema = json!({"type": "object", "properties": {"x": field}});
            Elicitation::form("?", schema).check(Revision::V2025_11_25, both)
        };
        let choice = json!({"type": "array", "items": {"enum": ["a", "b"]}});
        assert_eq!(field(json!({"type": "string", "format": "email"})), Ok(()));
        assert_eq!(field(choice), Ok(()));
        assert!(field(json!({"type": "object"})).is_err());
        assert!(field(json!({})).is_err());
        for url in [
            "",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://",
            "https://a b",
        ] {
            let page = Elicitation::url("?", url, "1");
            assert!(page.check(Revision::V2025_11_25, both).is_err(), "{url}");
        }
    }

    /// R-ELI-04.
    #[test]
    fn choices_with_titles_are_written_as_each_revision_has_them() {
        let choices = json!([{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]);
        let newer = json!({"type": "string", "oneOf": choices});
        let older = json!({"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]});
        let form = json!({"type": "object", "properties": {"size": newer}});
        let form = Elicitation::form("?", form);
        for (revision, field) in [
            (Revision::V2025_06_18, older),
            (Revision::V2025_11_25, newer.clone()),
            (Revision::V2026_07_28, newer),
        ] {
            let params = form.to_json(revision);
            assert_eq!(params["requestedSchema"]["properties"]["size"], field);
        }
    }

    /// R-ELI-03, R-ELI-07.
    #[test]
    fn params_and_results_are_read_as_they_are_written() {
        let page = Elicitation::url("?", "https://example.com", "1");
        let json = page.to_json(Revision::V2025_11_25).to_string();
        assert_eq!(Elicitation::parse(&json), Ok(page.clone()));
        assert!(
            page.to_json(Revision::V2026_07_28)
                .get("elicitationId")
                .is_none()
        );
        let content = Map::from_iter([("a".to_owned(), json!([1]))]);
        for result in [
            Elicited::Accepted(content),
            Elicited::Declined,
            Elicited::Cancelled,
        ] {
            let json = result.to_json(true).to_string();
            assert_eq!(Elicited::parse(&json), Ok(result));
        }
        assert!(Elicited::parse(r#"{"action":"?"}"#).is_err());
    }
}
