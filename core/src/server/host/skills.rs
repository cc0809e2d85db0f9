//! Requests of clients about skills, answered from memory.

use crate::connection::{Answer, Disposition, IncomingRequest};
use crate::json::reader;
use crate::mcp::{ErrorKind, Method};
use crate::message::Field;
use crate::model::object_writer::ObjectWriter;
use crate::model::{ResourceContents, write_contents};
use crate::server::registry::{Registry, page};
use crate::server::skills::{File, Skills};

/// Answers a method of the skills extension.
pub fn answer(
    registry: &Registry,
    method: Method,
    request: &IncomingRequest<'_>,
    answer: Answer<'_>,
) -> Disposition {
    let (skills, hints) = (registry.skills(), registry.cache_hints());
    let paging = registry.paging(&hints);
    let uri = request.message.uri();
    let uri = uri.as_deref().unwrap_or_default();
    let pages = match method {
        Method::GetSkill => {
            let Some(entry) = skills.entry(uri) else {
                return answer.error(ErrorKind::InvalidParams, "no such skill", None);
            };
            let members = format!("\"skill\":{entry}{hints}");
            return answer.result(|result| result.encoded(&members));
        }
        Method::ReadDirectory => {
            let Some(children) = skills.children(uri) else {
                return answer.error(ErrorKind::InvalidParams, "not a folder", None);
            };
            let children: Vec<_> = children.into_iter().collect();
            let folder = uri.trim_end_matches('/');
            paging.of("resources", &children, |(name, file), out| {
                child(out, folder, name, *file);
            })
        }
        _ => paging.of("skills", &skills.entries(), |entry, out| {
            out.extend_from_slice(entry.as_bytes());
        }),
    };
    match page(&pages, request.message.raw(Field::Cursor)) {
        Some(members) => answer.result(|result| result.encoded(members)),
        None => answer.error(ErrorKind::InvalidParams, "unknown cursor", None),
    }
}

/// Answers a read of a skill's file.
pub fn read(uri: &str, file: &File, answer: Answer<'_>) -> Disposition {
    let text = std::str::from_utf8(&file.bytes).ok();
    let contents = match text.filter(|_| is_text(&file.mime_type)) {
        Some(text) => {
            let mut contents = ResourceContents::text(uri, text);
            contents.mime_type = Some(file.mime_type.clone());
            contents
        }
        None => ResourceContents::blob(uri, &file.bytes, &file.mime_type),
    };
    answer.result(|result| write_contents(&[contents], result))
}

fn is_text(mime_type: &str) -> bool {
    let others = [
        "application/json",
        "application/yaml",
        "application/xml",
        "application/javascript",
    ];
    mime_type.starts_with("text/") || others.iter().any(|other| mime_type.starts_with(other))
}

/// Writes a file or folder as a resource.
fn child(out: &mut Vec<u8>, folder: &str, name: &str, file: Option<&File>) {
    let mut object = ObjectWriter::begin(out);
    object.string("uri", &format!("{folder}/{name}"));
    object.string("name", name);
    match file {
        Some(file) => {
            object.string("mimeType", &file.mime_type);
            object.raw("size", Some(&file.bytes.len().to_string()));
        }
        None => object.string("mimeType", "inode/directory"),
    }
    object.end();
}

/// Returns the URI of a read request and the skill file there, if there is one.
pub fn file_of<'a>(
    skills: &'a Skills,
    request: &IncomingRequest<'_>,
) -> Option<(String, &'a File)> {
    let params = request.message.params()?;
    let uri = reader::find(params, "uri").and_then(reader::as_str)?;
    Some((uri.to_string(), skills.file(&uri)?))
}
