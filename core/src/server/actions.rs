//! Requests of the action dialect: each tool is an action with the tool's schemas (R-ACT-41).

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::access::Access;
use super::definition::{ObjectWriter, Tool};
use super::host::ServerHost;
use super::registry::{Pages, Registry, cursor, page, quoted};
use crate::action::encode::ActionError;
use crate::action::{BATCH, ErrorType, GET_DATA, TOOL, Version};
use crate::connection::References;
use crate::connection::{Answer, Disposition, IncomingRequest, Operation};
use crate::handler::{Executor, HandlerError};
use crate::json::{number, reader, string};
use crate::mcp::{ErrorKind, Method};
use crate::schema::Misfit;

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
pub(super) struct Health(Arc<dyn Fn() -> Result<(), HandlerError> + Send + Sync>);

impl Health {
    pub fn new(health: impl Fn() -> Result<(), HandlerError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(health))
    }

    fn check(&self) -> Result<(), HandlerError> {
        let verdict = catch_unwind(AssertUnwindSafe(|| (self.0)()));
        verdict.unwrap_or_else(|_| Err(HandlerError::new("the check failed unexpectedly")))
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
            entry(name, &|out| standard(out, description, params, data))
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
fn standards(refers: bool) -> impl Iterator<Item = &'static [&'static str; 4]> {
    let all = STANDARD.iter();
    all.filter(move |[name, ..]| refers || *name != GET_DATA)
}

fn standard(out: &mut Vec<u8>, description: &str, params: &str, data: &str) {
    let mut object = ObjectWriter::begin(out);
    object.string("description", description);
    object.raw("params_schema", Some(params));
    object.raw("data_schema", Some(data));
    object.raw("examples", Some("[]"));
    object.end();
}

/// Returns the `data` of `mcp.get_schema` for one action; `None` if there is no such action.
fn schema(registry: &Registry, name: &str) -> Option<String> {
    let mut out = b"{\"actions\":{".to_vec();
    string::append(&mut out, name);
    out.push(b':');
    let shown = Some(name).filter(|name| registry.shows_action(name));
    let number = shown.and_then(|name| registry.tool(name));
    match number.and_then(|number| registry.tool_at(number)) {
        Some(tool) => tool.write_action(&mut out),
        None => {
            let mut own = standards(registry.references.is_some());
            let [_, description, params, data] = own.find(|[own, ..]| *own == name)?;
            standard(&mut out, description, params, data);
        }
    }
    out.extend_from_slice(b"}}");
    String::from_utf8(out).ok()
}

fn fail(answer: Answer<'_>, kind: ErrorType, message: &str, details: Option<&str>) -> Disposition {
    answer.action_error(&ActionError {
        details,
        ..ActionError::new(kind, message)
    })
}

/// Encodes details with one member.
fn detail(name: &str, value: &str) -> String {
    let mut out = Vec::new();
    let mut object = ObjectWriter::begin(&mut out);
    object.string(name, value);
    object.end();
    String::from_utf8(out).unwrap_or_default()
}

impl<E: Executor> ServerHost<E> {
    /// R-ACT-06, R-ACT-07, R-ACT-09
    pub(super) fn action(
        &mut self,
        request: IncomingRequest<'_>,
        answer: Answer<'_>,
    ) -> Disposition {
        let message = request.message;
        // A name that is not valid Unicode matches no action.
        let action = message.name().unwrap_or_default();
        let tool = message.decoded(TOOL);
        let params = message.arguments().unwrap_or("{}");
        let number = match &tool {
            None => self.registry().tool(&action),
            Some(tool) => match self.of_tool(tool, &action) {
                Some(number) => number,
                None => {
                    let why = format!("there is no tool {} here", quoted(tool));
                    let details = detail("tool", tool);
                    return fail(answer, ErrorType::ActionNotFound, &why, Some(&details));
                }
            },
        };
        let Some(number) = number else {
            return self.standard(&action, params, answer);
        };
        let registry = self.shared_registry();
        if registry.has_guard()
            && let Err(refusal) = {
                let access = Access {
                    method: Method::CallTool,
                    name: &action,
                    principal: self.principal(&answer),
                    arguments: Some(params),
                };
                registry.admits(&access)
            }
        {
            let kind = match refusal.kind() {
                ErrorKind::ToolNotFound | ErrorKind::MethodNotFound => ErrorType::ActionNotFound,
                ErrorKind::Overloaded => ErrorType::RateLimitExceeded,
                _ => ErrorType::AuthorizationFailed,
            };
            // R-ACT-31
            let said = refusal.action_type().unwrap_or(kind.name());
            return answer.action_error(&ActionError {
                kind: said,
                code: ErrorType::parse(said).map(ErrorType::code),
                details: refusal.data(),
                ..ActionError::new(kind, &refusal.to_string())
            });
        }
        if let Some(misfit) = registry.misfit(number, params) {
            return refuse(answer, &misfit);
        }
        self.operate(Operation::CallTool(number), request, answer)
    }

    /// Returns whether a GET with this action is served. A tool must allow GET; names that match no
    /// tool run nothing and are served, except a batch.
    #[cfg(feature = "http")]
    pub(crate) fn runs_on_get(&mut self, tool: Option<&str>, action: &str) -> bool {
        let number = match tool {
            None => self.registry().tool(action),
            Some(tool) => self.of_tool(tool, action).flatten(),
        };
        let tool = number.and_then(|number| self.registry().tool_at(number));
        tool.map_or(action != BATCH, |tool| tool.on_get)
    }

    /// Returns the number of an action of `tool`, which is this server's name or the part of action
    /// names before the first dot; `None` when it is neither.
    fn of_tool(&mut self, tool: &str, action: &str) -> Option<Option<u32>> {
        let is_own = self.implementation().name() == Some(tool);
        let registry = self.registry();
        let within = format!("{tool}.");
        let is_namespace = || {
            registry
                .tools()
                .iter()
                .any(|it| it.name.starts_with(&within))
        };
        if let Some(number) = registry.tool(&format!("{within}{action}")) {
            return Some(Some(number));
        }
        match is_own {
            true => Some(registry.tool(action)),
            false if is_namespace() => Some(
                registry
                    .tool(action)
                    .filter(|_| action.starts_with(&within)),
            ),
            false => None,
        }
    }

    /// R-ACT-12, R-ACT-13, R-ACT-14
    fn standard(&mut self, action: &str, params: &str, answer: Answer<'_>) -> Disposition {
        match action {
            "mcp.get_schema" => match reader::find(params, "action_name") {
                None => match page(
                    self.registry().action_schemas(),
                    reader::find(params, "cursor"),
                ) {
                    Some(data) => answer.action_data(data),
                    None => {
                        let details = detail("parameter", "cursor");
                        let kind = ErrorType::Validation;
                        fail(answer, kind, "unknown cursor", Some(&details))
                    }
                },
                Some(name) => match reader::as_str(name) {
                    None => {
                        let why = "Invalid type for parameter 'action_name'. Expected string.";
                        let details = detail("parameter", "action_name");
                        fail(answer, ErrorType::Validation, why, Some(&details))
                    }
                    Some(name) => match schema(self.registry(), &name) {
                        Some(data) => answer.action_data(&data),
                        None => unknown(answer, &name),
                    },
                },
            },
            "mcp.get_version" => answer.action_data(&self.version()),
            "mcp.health_check" => {
                let health = self.registry().health.clone();
                match health.map_or(Ok(()), |health| health.check()) {
                    Ok(()) => answer.action_data("{\"healthy\":true}"),
                    Err(why) => {
                        let cause = why.data().unwrap_or("null");
                        let details = format!("{{\"healthy\":false,\"cause\":{cause}}}");
                        let kind = ErrorType::Dependency;
                        fail(answer, kind, &why.to_string(), Some(&details))
                    }
                }
            }
            GET_DATA => match self.registry().references.clone() {
                Some(references) => self.data(&references, params, answer),
                None => unknown(answer, action),
            },
            _ => unknown(answer, action),
        }
    }

    /// R-ACT-29
    fn data(&self, references: &References, params: &str, answer: Answer<'_>) -> Disposition {
        let offset = match reader::find(params, "offset") {
            None => Some(0),
            Some(offset) => number::as_u64(offset).and_then(|offset| offset.try_into().ok()),
        };
        let reference = reader::find(params, "reference").and_then(reader::as_str);
        let (Some(reference), Some(offset)) = (&reference, offset) else {
            let (name, wanted) = match reference {
                None => ("reference", "a string"),
                Some(_) => ("offset", "a whole number"),
            };
            let why = format!("Parameter '{name}' must be {wanted}.");
            let details = detail("parameter", name);
            return fail(answer, ErrorType::Validation, &why, Some(&details));
        };
        match references.part(reference, offset, self.principal(&answer)) {
            Some(part) => answer.action_data(&part),
            None => {
                let why = "there are no such data, or not any more, or nothing behind the offset";
                let details = detail("reference", reference);
                fail(answer, ErrorType::ResourceNotFound, why, Some(&details))
            }
        }
    }

    fn version(&self) -> String {
        let own = |name| reader::find(self.implementation(), name).unwrap_or("\"\"");
        let newest = Version::SUPPORTED.last().copied();
        let all: Vec<_> = Version::SUPPORTED
            .iter()
            .map(|it| format!("\"{it}\""))
            .collect();
        let newest = newest.map(|it| it.to_string()).unwrap_or_default();
        format!(
            "{{\"protocol_version\":\"{newest}\",\"server_id\":{},\"server_version\":{},\"supported_versions\":[{}]}}",
            own("name"),
            own("version"),
            all.join(",")
        )
    }
}

fn unknown(answer: Answer<'_>, action: &str) -> Disposition {
    let why = format!(
        "Action '{}' not supported",
        quoted(action).trim_matches('"')
    );
    let details = detail("action", action);
    fail(answer, ErrorType::ActionNotFound, &why, Some(&details))
}

/// R-ACT-07
fn refuse(answer: Answer<'_>, misfit: &Misfit) -> Disposition {
    let mut details = Vec::new();
    let mut object = ObjectWriter::begin(&mut details);
    object.optional("parameter", misfit.parameter.as_deref());
    if let Some((expected, actual)) = &misfit.types {
        object.string("expected_type", &expected.join(" or "));
        object.string("actual_type", actual);
    }
    object.end();
    let details = String::from_utf8(details).unwrap_or_default();
    let kind = match misfit.is_absence {
        true => ErrorType::ParameterMissing,
        false => ErrorType::Validation,
    };
    fail(
        answer,
        kind,
        &misfit.sentence,
        Some(&details).map(|it| it.as_str()),
    )
}
