//! Content blocks: writes text, and converts blocks to types that the revision in force has.

use std::borrow::Cow;

use mcpbolt::connection::ResultWriter;
use mcpbolt::json::{reader, string};
use mcpbolt::mcp::Revision;

/// Converts an array of blocks: audio becomes a resource before 2025-03-26, a resource link becomes text
/// before 2025-06-18.
pub fn fitted(blocks: &str, revision: Revision) -> Cow<'_, str> {
    let rules = revision.rules();
    if rules.annotations && rules.resource_links {
        return Cow::Borrowed(blocks);
    }
    let blocks: Vec<_> = reader::elements(blocks)
        .map(|block| fitted_block(block, revision))
        .collect();
    Cow::Owned(format!("[{}]", blocks.join(",")))
}

/// Converts the blocks in the messages of a prompt in the same way.
pub fn fitted_messages(messages: &str, revision: Revision) -> String {
    let message = |message| {
        let member = |name| reader::find(message, name).unwrap_or("null");
        let content = fitted_block(member("content"), revision);
        format!("{{\"role\":{},\"content\":{content}}}", member("role"))
    };
    let messages: Vec<_> = reader::elements(messages).map(message).collect();
    format!("[{}]", messages.join(","))
}

fn fitted_block(block: &str, revision: Revision) -> Cow<'_, str> {
    let rules = revision.rules();
    let member = |name| reader::find(block, name).unwrap_or("\"\"");
    match member("type") {
        "\"audio\"" if !rules.annotations => {
            let (kind, data) = (member("mimeType"), member("data"));
            let contents =
                format!("{{\"uri\":\"audio:inline\",\"mimeType\":{kind},\"blob\":{data}}}");
            format!("{{\"type\":\"resource\",\"resource\":{contents}}}").into()
        }
        "\"resource_link\"" if !rules.resource_links => {
            let text = |name| reader::as_str(member(name)).unwrap_or_default();
            let mut out = b"{\"type\":\"text\",\"text\":".to_vec();
            string::append(&mut out, &format!("{}: {}", text("name"), text("uri")));
            out.push(b'}');
            String::from_utf8(out).unwrap_or_default().into()
        }
        _ => block.into(),
    }
}

/// Appends a `content` array with one text block.
pub fn append_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"[{\"type\":\"text\",\"text\":");
    string::append(out, text);
    out.extend_from_slice(b"}]");
}

/// Writes the members of a result with one text block.
pub fn write_text(result: &mut ResultWriter<'_>, text: &str, is_error: bool) {
    result.with("content", |out| append_text(out, text));
    if is_error {
        result.raw("isError", "true");
    }
}
