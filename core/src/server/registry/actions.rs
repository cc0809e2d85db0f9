//! The standard actions of the action dialect: the schemas of the server's actions, and its health check.

use std::fmt;
use std::sync::Arc;

use super::pages::{Pages, cursor};
use crate::action::{BATCH, GET_DATA};
use crate::handler::HandlerError;
use crate::json::string;
use crate::model::Tool;
use crate::model::object_writer::ObjectWriter;
use crate::panics::contain;

/// The standard actions: name, description, schemas of params and data. Only servers whose answers
/// use references have `mcp.get_data`. The protocol layer runs `batch.execute`.
const STANDARD: [[&str; 4]; 5] = [
    [
        "mcp.get_schema",
        "Shows the actions of this server and their schemas: all, or the one that is named.",
        r#"{"type":"object","properties":{"action_name":{"type":"string"},"cursor":{"type":"string"}}}"#,
        r#"{"type":"object","properties":{"actions":{"type":"object"},"next_cursor":{"type":"string"}},"required":["actions"]}"#,
    ],
    [
        "mcp.get_version",
        "Shows the version of this server and those of the protocol that it speaks.",
        r#"{"type":"object"}"#,
        r#"{"type":"object","required":["protocol_version","server_id","server_version","supported_versions"]}"#,
    ],
    [
        "mcp.health_check",
        "Says whether this server is in working order. DEPENDENCY_ERROR when it is not.",
        r#"{"type":"object"}"#,
        r#"{"type":"object","properties":{"healthy":{"const":true}},"required":["healthy"]}"#,
    ],
    [
        GET_DATA,
        "Gives data that an answer refers to as {\"mcp.reference\": {\"id\", \"bytes\", \"expires_in_seconds\"}}: their JSON in parts, from 0 to where there is no next_offset. RESOURCE_NOT_FOUND when their time is over.",
        r#"{"type":"object","properties":{"reference":{"type":"string"},"offset":{"type":"integer","minimum":0,"default":0}},"required":["reference"]}"#,
        r#"{"type":"object","properties":{"part":{"type":"string"},"bytes":{"type":"integer"},"next_offset":{"type":"integer"}},"required":["part","bytes"]}"#,
    ],
    [
        BATCH,
        "Carries operations out in their order, each on its own (best effort: what was done stays done); stops at the first that fails unless continue_on_error is true. No batches within a batch.",
        r#"{"type":"object","properties":{"operations":{"type":"array","items":{"type":"object","required":["action","params"]}},"continue_on_error":{"type":"boolean","default":false}},"required":["operations"]}"#,
        r#"{"type":"object","required":["results","success_count","error_count"]}"#,
    ],
];

/// The program's health check.
#[derive(Clone)]
pub(in crate::server) struct Health(Arc<dyn Fn() -> Result<(), HandlerError> + Send + Sync>);

impl Health {
    pub fn new(health: impl Fn() -> Result<(), HandlerError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(health))
    }

    pub fn check(&self) -> Result<(), HandlerError> {
        let verdict = contain("a health check", || (self.0)());
        verdict.unwrap_or_else(|| Err(HandlerError::new("the check failed unexpectedly")))
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Health(..)")
    }
}

/// The `data` of `mcp.get_schema` for all actions, in pages of `size` (R-ACT-15). A tool replaces
/// the standard action with the same name.
pub(super) fn schemas<'a>(
    tools: impl Iterator<Item = &'a Tool> + Clone,
    refers: bool,
    size: usize,
) -> Pages {
    let entry = |name: &str, write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        string::append(&mut out, name);
        out.push(b':');
        write(&mut out);
        out
    };
    let own = tools
        .clone()
        .map(|tool| entry(&tool.name, &|out| tool.write_action(out)));
    let standard = standards(refers)
        .filter(|[name, ..]| tools.clone().all(|tool| tool.name != *name))
        .map(|[name, description, params, data]| {
            entry(name, &|out| write_standard(out, description, params, data))
        });
    let all: Vec<_> = own.chain(standard).collect();
    let pages = all.chunks(size).enumerate().map(|(i, page)| {
        let mut out = b"{\"actions\":{".to_vec();
        out.extend(page.join(&b','));
        out.push(b'}');
        if (i + 1) * size < all.len() {
            out.extend(format!(",\"next_cursor\":\"{}\"", cursor(i + 1)).into_bytes());
        }
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default().into()
    });
    pages.collect()
}

/// The standard actions of a server; `refers` tells whether its answers use references.
pub(in crate::server) fn standards(
    refers: bool,
) -> impl Iterator<Item = &'static [&'static str; 4]> {
    let all = STANDARD.iter();
    all.filter(move |[name, ..]| refers || *name != GET_DATA)
}

pub(in crate::server) fn write_standard(
    out: &mut Vec<u8>,
    description: &str,
    params: &str,
    data: &str,
) {
    let mut object = ObjectWriter::begin(out);
    object.string("description", description);
    object.raw("params_schema", Some(params));
    object.raw("data_schema", Some(data));
    object.raw("examples", Some("[]"));
    object.end();
}
