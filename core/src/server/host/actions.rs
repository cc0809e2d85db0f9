//! Requests of the action dialect: each tool is an action with the tool's schemas (R-ACT-41).

#[cfg(feature = "http")]
use crate::action::BATCH;
use crate::action::encode::ActionError;
use crate::action::{ErrorType, GET_DATA, TOOL, Version};
use crate::connection::{
    Answer, Disposition, Implementation, IncomingRequest, Operation, Principal, References,
};
use crate::json::{number, reader, string};
use crate::mcp::{ErrorKind, Method};
use crate::model::object_writer::ObjectWriter;
use crate::schema::Misfit;
use crate::server::access::Access;
use crate::server::registry::actions::{standards, write_standard};
use crate::server::registry::{Registry, page, quoted};

/// Returns the `data` of `mcp.get_schema` for one action; `None` if there is no such action.
fn schema(registry: &Registry, name: &str, who: Option<&Principal>) -> Option<String> {
    let mut out = b"{\"actions\":{".to_vec();
    string::append(&mut out, name);
    out.push(b':');
    let shown = Some(name).filter(|name| registry.shows_action(name, who));
    let number = shown.and_then(|name| registry.tool(name));
    match number.and_then(|number| registry.tool_at(number)) {
        Some(tool) => tool.write_action(&mut out),
        None => {
            let mut own = standards(registry.references().is_some());
            let [_, description, params, data] = own.find(|[own, ..]| *own == name)?;
            write_standard(&mut out, description, params, data);
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

/// The server that receives an action, and its caller.
pub(super) struct Receiver<'a> {
    pub registry: &'a Registry,
    /// The server's name and version, a JSON object.
    pub implementation: &'a Implementation,
    pub principal: Option<&'a str>,
}

impl Receiver<'_> {
    /// Answers an action, unless it is a call of a tool, which may run (R-ACT-06, R-ACT-07,
    /// R-ACT-09).
    ///
    /// # Errors
    /// The answer was written.
    pub fn receive<'b>(
        &self,
        request: &IncomingRequest<'_>,
        answer: Answer<'b>,
    ) -> Result<(Operation, Answer<'b>), Disposition> {
        let (message, registry) = (request.message, self.registry);
        // A name that is not valid Unicode matches no action.
        let action = message.name().unwrap_or_default();
        let params = message.arguments().unwrap_or("{}");
        let number = match message.decoded(TOOL) {
            None => registry.tool(&action),
            Some(tool) => match of_tool(registry, self.implementation, &tool, &action) {
                Some(number) => number,
                None => {
                    let why = format!("there is no tool {} here", quoted(&tool));
                    let details = detail("tool", &tool);
                    let kind = ErrorType::ActionNotFound;
                    return Err(fail(answer, kind, &why, Some(&details)));
                }
            },
        };
        let Some(number) = number else {
            return Err(self.standard(&action, params, answer));
        };
        let access = Access {
            method: Method::CallTool,
            name: &action,
            principal: self.principal,
            arguments: Some(params),
        };
        if let Some(guard) = registry.guard()
            && let Err(refusal) = guard.check(&access)
        {
            let kind = match refusal.kind() {
                ErrorKind::ToolNotFound | ErrorKind::MethodNotFound => ErrorType::ActionNotFound,
                ErrorKind::Overloaded => ErrorType::RateLimitExceeded,
                _ => ErrorType::AuthorizationFailed,
            };
            // R-ACT-31
            let said = refusal.action_type().unwrap_or(kind.name());
            return Err(answer.action_error(&ActionError {
                kind: said,
                code: ErrorType::parse(said).map(ErrorType::code),
                details: refusal.data(),
                ..ActionError::new(kind, &refusal.to_string())
            }));
        }
        let misfit = registry.entry(number).and_then(|tool| tool.misfit(params));
        match misfit {
            Some(misfit) => Err(refuse(answer, &misfit)),
            None => Ok((Operation::CallTool(number), answer)),
        }
    }

    /// R-ACT-12, R-ACT-13, R-ACT-14
    fn standard(&self, action: &str, params: &str, answer: Answer<'_>) -> Disposition {
        match action {
            "mcp.get_schema" => match reader::find(params, "action_name") {
                None => match page(
                    &self.registry.action_schemas(answer.principal()),
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
                    Some(name) => match schema(self.registry, &name, answer.principal()) {
                        Some(data) => answer.action_data(&data),
                        None => unknown(answer, &name),
                    },
                },
            },
            "mcp.get_version" => answer.action_data(&self.version()),
            "mcp.health_check" => {
                let health = self.registry.health();
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
            GET_DATA => match self.registry.references() {
                Some(references) => self.data(references, params, answer),
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
        match references.part(reference, offset, self.principal) {
            Some(part) => answer.action_data(&part),
            None => {
                let why =
                    "no such data: the id is unknown or expired, or the offset is past the end";
                let details = detail("reference", reference);
                fail(answer, ErrorType::ResourceNotFound, why, Some(&details))
            }
        }
    }

    fn version(&self) -> String {
        let own = |name| reader::find(self.implementation, name).unwrap_or("\"\"");
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

/// Returns whether a GET with this action is served. A tool must allow GET; names that match no
/// tool run nothing and are served, except a batch.
#[cfg(feature = "http")]
pub(super) fn runs_on_get(
    registry: &Registry,
    implementation: &Implementation,
    tool: Option<&str>,
    action: &str,
) -> bool {
    let number = match tool {
        None => registry.tool(action),
        Some(tool) => of_tool(registry, implementation, tool, action).flatten(),
    };
    let tool = number.and_then(|number| registry.tool_at(number));
    tool.map_or(action != BATCH, |tool| tool.on_get)
}

/// Returns the number of an action of `tool`, which is this server's name or the part of action
/// names before the first dot; `None` when it is neither.
fn of_tool(
    registry: &Registry,
    implementation: &Implementation,
    tool: &str,
    action: &str,
) -> Option<Option<u32>> {
    let within = format!("{tool}.");
    if let Some(number) = registry.tool(&format!("{within}{action}")) {
        return Some(Some(number));
    }
    if implementation.name() == Some(tool) {
        return Some(registry.tool(action));
    }
    let mut tools = registry.tools().into_iter();
    let is_namespace = tools.any(|it| it.name.starts_with(&within));
    is_namespace.then(|| {
        registry
            .tool(action)
            .filter(|_| action.starts_with(&within))
    })
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
