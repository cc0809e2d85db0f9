//! Filters of streams of changes: what a client listens to (R-SUB-01).

use std::collections::BTreeSet;

use super::params::{json_text, push};
use crate::json::{JsonStr, reader};
use crate::mcp::Method;

/// The kinds of list, each with the name of its capability, of its filter and of its notification.
pub(super) const LISTS: [(&str, &str, Method); 3] = [
    ("tools", "toolsListChanged", Method::ToolsChanged),
    ("prompts", "promptsListChanged", Method::PromptsChanged),
    (
        "resources",
        "resourcesListChanged",
        Method::ResourcesChanged,
    ),
];

/// Whether the member of a filter asks for changes of a list.
pub(super) fn is_list(name: JsonStr<'_>) -> bool {
    LISTS.iter().any(|(_, filter, _)| name == *filter)
}

/// The filter of these lists and resources.
pub(super) fn granted(kinds: &[&(&str, &str, Method)], uris: &BTreeSet<Box<str>>) -> String {
    let mut members: Vec<_> = kinds
        .iter()
        .map(|(_, name, _)| format!("\"{name}\":true"))
        .collect();
    if !uris.is_empty() {
        let uris: Vec<_> = uris.iter().map(|uri| json_text(uri)).collect();
        members.push(format!("\"resourceSubscriptions\":[{}]", uris.join(",")));
    }
    format!("{{{}}}", members.join(","))
}

/// Params with another filter.
pub(super) fn with_filter(params: &str, filter: &str) -> String {
    let mut out = vec![b'{'];
    for (name, value) in reader::members(params) {
        let value = if name == "notifications" {
            filter
        } else {
            value
        };
        push(&mut out, name.raw(), value);
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}
