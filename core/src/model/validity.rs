//! Checks that the JSON members of a definition have the shape that clients expect.

use serde::Deserialize;

use super::{Icon, Prompt, RawJson, Resource, ResourceTemplate, Role, Tool};
use crate::json;
use crate::mcp::header::{self, HeaderParam};

/// Maximum nesting depth of the JSON in a definition.
const MAX_DEPTH: usize = 64;

impl Tool {
    /// Returns the name of a malformed member, if any.
    pub(crate) fn fault(&self) -> Option<&'static str> {
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
    pub(crate) fn is_read_only(&self) -> bool {
        let annotations = self.annotations.as_deref().unwrap_or("{}");
        json::reader::find(annotations, "readOnlyHint") == Some("true")
    }

    /// Returns the HTTP headers that carry copies of its arguments (R-HDR-07).
    ///
    /// # Errors
    /// A sentence about the invalid `x-mcp-header` in the schema.
    pub(crate) fn header_params(&self) -> Result<Vec<HeaderParam>, &'static str> {
        if !self.input_schema.contains("x-mcp-header") {
            return Ok(Vec::new());
        }
        header::params(&self.input_schema.read().unwrap_or_default())
    }
}

impl Resource {
    /// Returns the name of a malformed member, if any.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        resource_fault(&self.annotations, &self.meta, &self.icons)
    }
}

impl ResourceTemplate {
    /// Returns the name of a malformed member, if any.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        resource_fault(&self.annotations, &self.meta, &self.icons)
    }
}

fn resource_fault(
    annotations: &Option<RawJson>,
    meta: &Option<RawJson>,
    icons: &Option<RawJson>,
) -> Option<&'static str> {
    let are_good = annotations.as_ref().is_none_or(are_annotations);
    match () {
        () if !is_object(annotations) || !are_good => Some("annotations"),
        () if !is_object(meta) => Some("meta"),
        () => icons_fault(icons),
    }
}

impl Prompt {
    /// Returns the name of a malformed member, if any.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        match is_object(&self.meta) {
            true => icons_fault(&self.icons),
            false => Some("meta"),
        }
    }
}

fn is_object(json: &Option<RawJson>) -> bool {
    json.as_deref().map(str::trim_start).is_none_or(|json| {
        json.starts_with('{') && json::validate(json.as_bytes(), MAX_DEPTH).is_ok()
    })
}

/// R-ANN-01
fn are_annotations(json: &RawJson) -> bool {
    #[derive(Deserialize)]
    struct Annotations {
        #[serde(default, rename = "audience")]
        _audience: Vec<Role>,
        #[serde(default)]
        priority: f64,
    }
    let annotations = json.read::<Annotations>();
    annotations.is_ok_and(|annotations| (0.0..=1.0).contains(&annotations.priority))
}

/// R-ICO-01
fn icons_fault(json: &Option<RawJson>) -> Option<&'static str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_size = |size: &String| {
        let pair = size.split_once('x');
        size == "any" || pair.is_some_and(|(width, height)| is_number(width) && is_number(height))
    };
    let is_icon = |icon: &Icon| {
        let mut schemes = ["https://", "http://", "data:"].iter();
        schemes.any(|scheme| icon.src.starts_with(scheme)) && icon.sizes.iter().all(is_size)
    };
    let icons = json.as_ref()?.read::<Vec<Icon>>();
    let good = icons.is_ok_and(|icons| icons.iter().all(is_icon));
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
