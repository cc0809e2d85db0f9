//! Extensions: capabilities that both sides must declare before either uses them (2026-07-28).

use crate::json::reader;

/// Calls that continue as tasks.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Skills: instructions for models, with the files they need.
pub const SKILLS: &str = "io.modelcontextprotocol/skills";

/// Whether `id` may name an extension: a prefix of dotted labels, a slash and a name (R-CAP-06,
/// R-EXT-01).
///
/// ```
/// use mcpbolt::mcp::extension::is_id;
/// assert!(is_id("com.example/search") && is_id("io.modelcontextprotocol/tasks"));
/// assert!(!is_id("search") && !is_id("/search") && !is_id("com..example/search"));
/// ```
pub fn is_id(id: &str) -> bool {
    let Some((prefix, name)) = id.split_once('/') else {
        return false;
    };
    let ends = |text: &str| {
        let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        is_end(text.as_bytes().first()) && is_end(text.as_bytes().last())
    };
    let label = |label: &str| {
        let inner = label
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-');
        ends(label) && inner && label.starts_with(|c: char| c.is_ascii_alphabetic())
    };
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    prefix.split('.').all(label) && ends(name) && name.bytes().all(inner)
}

/// The settings that `capabilities` declare for an extension; `None` unless they are a JSON object.
pub fn declared<'a>(capabilities: &'a str, id: &str) -> Option<&'a str> {
    let settings = reader::find_path(capabilities, &["extensions", id])?;
    settings.starts_with('{').then_some(settings)
}
