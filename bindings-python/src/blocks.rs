//! Blocks of content as the revision in force knows them.

use std::borrow::Cow;

use mcpbolt::json::{reader, string};
use mcpbolt::mcp::Revision;

/// Blocks, as an array: a sound is a resource before 2025-03-26, a link is text before 2025-06-18.
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

/// The messages of a prompt, likewise.
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
