//! Checks that the JSON members of a definition have the shape that clients expect.

use serde_json::Value;

use super::{Prompt, Resource, Tool};
use crate::json;
use crate::mcp::header::{self, HeaderParam};

/// Maximum nesting depth of the JSON in a definition.
const MAX_DEPTH: usize = 64;

impl Tool {
    /// Returns the name of a malformed member, if any.
    pub(in crate::server) fn fault(&self) -> Option<&'static str> {
        let object = [
            ("output_schema", &self.output_schema),
            ("annotations", &self.annotations),
            ("meta", &self.meta),
            ("action", &self.action),
        ];
        let wrong = object.into_iter().find(|(_, json)| !is_object(json));
        wrong
            .map(|(name, _)| name)
            .or_else(|| icons_fault(&self.icons))
    }

    /// Returns whether its annotations say `"readOnlyHint":true`.
    pub(in crate::server) fn is_read_only(&self) -> bool {
        let annotations = self.annotations.as_deref().unwrap_or("{}");
        json::reader::find(annotations, "readOnlyHint") == Some("true")
    }

    /// Returns the HTTP headers that carry copies of its arguments (R-HDR-07).
    ///
    /// # Errors
    /// A sentence about the invalid `x-mcp-header` in the schema.
    pub(in crate::server) fn header_params(&self) -> Result<Vec<HeaderParam>, &'static str> {
        if !self.input_schema.contains("x-mcp-header") {
            return Ok(Vec::new());
        }
        let schema: Value = serde_json::from_str(&self.input_schema).unwrap_or_default();
        header::params(&schema)
    }
}

impl Resource {
    /// Returns the name of a malformed member, if any.
    pub(in crate::server) fn fault(&self) -> Option<&'static str> {
        let audience = || self.annotations.as_deref().is_none_or(are_annotations);
        match () {
            () if !is_object(&self.annotations) || !audience() => Some("annotations"),
            () if !is_object(&self.meta) => Some("meta"),
            () => icons_fault(&self.icons),
        }
    }
}

impl Prompt {
    /// Returns the name of a malformed member, if any.
    pub(in crate::server) fn fault(&self) -> Option<&'static str> {
        match is_object(&self.meta) {
            true => icons_fault(&self.icons),
            false => Some("meta"),
        }
    }
}

fn is_object(json: &Option<String>) -> bool {
    json.as_deref().map(str::trim_start).is_none_or(|json| {
        json.starts_with('{') && json::validate(json.as_bytes(), MAX_DEPTH).is_ok()
    })
}

/// R-ANN-01
fn are_annotations(json: &str) -> bool {
    let Ok(annotations) = serde_json::from_str::<Value>(json) else {
        return false;
    };
    let is_role = |role: &Value| *role == "user" || *role == "assistant";
    let audience = annotations.get("audience").map(|all| {
        let all = all.as_array();
        all.is_some_and(|all| all.iter().all(is_role))
    });
    let priority = annotations.get("priority").map(Value::as_f64);
    let is_share = |priority: Option<f64>| priority.is_some_and(|p| (0.0..=1.0).contains(&p));
    audience.unwrap_or(true) && priority.is_none_or(is_share)
}

/// R-ICO-01
fn icons_fault(json: &Option<String>) -> Option<&'static str> {
    let json = json.as_deref()?;
    let is_size = |size: &Value| {
        let Some(size) = size.as_str() else {
            return false;
        };
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let pair = size.split_once('x');
        size == "any" || pair.is_some_and(|(width, height)| number(width) && number(height))
    };
    let is_icon = |icon: &Value| {
        let src = icon["src"].as_str().unwrap_or_default();
        let known = ["https://", "http://", "data:"];
        let sizes = icon.get("sizes").map(Value::as_array);
        let sizes = sizes.is_none_or(|sizes| sizes.is_some_and(|all| all.iter().all(is_size)));
        known.iter().any(|scheme| src.starts_with(scheme)) && sizes
    };
    let icons: Option<Vec<Value>> = serde_json::from_str(json).ok();
    let good = icons.is_some_and(|icons| icons.iter().all(is_icon));
    (!good).then_some("icons")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-ANN-01.
    #[test]
    fn annotations_say_what_they_may() {
        let of = |json: &str| Resource::new("a:1", "a").annotations(json).fault();
        for good in [
            "{}",
            r#"{"audience":["user","assistant"],"priority":0.5}"#,
            r#"{"priority":1,"lastModified":"2026-01-01T00:00:00Z"}"#,
        ] {
            assert_eq!(of(good), None, "{good}");
        }
        for bad in [
            "[]",
            "{",
            r#"{"priority":1.1}"#,
            r#"{"priority":-0.1}"#,
            r#"{"priority":"1"}"#,
            r#"{"audience":["system"]}"#,
            r#"{"audience":"user"}"#,
        ] {
            assert_eq!(of(bad), Some("annotations"), "{bad}");
        }
    }

    #[test]
    fn definitions_are_bounded_in_depth() {
        let of = |levels: usize| {
            let (open, shut) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
            Tool::new("a")
                .meta(format!("{{\"x\":{open}{shut}}}"))
                .fault()
        };
        assert_eq!(of(MAX_DEPTH), None);
        assert_eq!(of(MAX_DEPTH + 1), Some("meta"));
    }

    /// R-ICO-01.
    #[test]
    fn icons_are_pictures_on_the_web_or_at_hand() {
        let of = |json: &str| Prompt::new("a").icons(json).fault();
        for good in [
            "[]",
            r#"[{"src":"https://example.com/a.png","sizes":["48x48","any"]}]"#,
            r#"[{"src":"data:image/png;base64,AA==","mimeType":"image/png"}]"#,
        ] {
            assert_eq!(of(good), None, "{good}");
        }
        for bad in [
            "{}",
            "[{}]",
            r#"[{"src":"javascript:alert(1)"}]"#,
            r#"[{"src":"file:///a.png"}]"#,
            r#"[{"src":"https://example.com","sizes":"48x48"}]"#,
            r#"[{"src":"https://example.com","sizes":["48"]}]"#,
        ] {
            assert_eq!(of(bad), Some("icons"), "{bad}");
            assert_eq!(Tool::new("a").icons(bad).fault(), Some("icons"));
        }
        assert_eq!(Prompt::new("a").meta("[]").fault(), Some("meta"));
        assert_eq!(Tool::new("a").meta("{").fault(), Some("meta"));
    }
}
