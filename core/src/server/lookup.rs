//! Finds the operation that a request asks for, and the reasons to refuse one.

use std::borrow::Cow;

use super::completion_request::CompletionRequest;
use super::registry::{Registry, quoted};
use crate::connection::{Answer, Disposition, IncomingRequest, Operation};
use crate::json::{JsonStr, reader, string};
use crate::mcp::profile::Failure;
use crate::mcp::{Era, ErrorKind, Profile, TaskForm, TaskSupport, extension};
use crate::message::Field;
use crate::model::{CompletionTarget, Prompt, ToolResult};

/// Why a request is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    kind: ErrorKind,
    /// The name or URI in the request.
    about: String,
    why: String,
    /// The error's `data`, as JSON.
    data: Option<String>,
    /// Whether it is a tool error for the model to read rather than a protocol error.
    is_tool_error: bool,
}

impl Refusal {
    fn new(kind: ErrorKind, why: impl Into<String>) -> Self {
        Self {
            kind,
            about: String::new(),
            why: why.into(),
            data: None,
            is_tool_error: false,
        }
    }

    fn params(why: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidParams, why)
    }

    fn about(mut self, name: &str) -> Self {
        name.clone_into(&mut self.about);
        self
    }

    /// The server does not offer the method.
    pub fn method(request: &IncomingRequest<'_>) -> Self {
        let name = request.message.method().unwrap_or(Cow::Borrowed("?"));
        let why = format!("no method {} here", quoted(&name));
        Self::new(ErrorKind::MethodNotFound, why).about(&name)
    }

    /// The resource does not exist, or not for this client (R-ERR-09, R-ERR-10).
    pub fn resource(kind: ErrorKind, uri: &str) -> Self {
        let data = Some(missing_data(uri));
        Self {
            data,
            ..Self::new(kind, "resource not found").about(uri)
        }
    }

    /// The tool does not exist, or not for this client (R-ERR-11).
    pub fn tool(kind: ErrorKind, name: &str) -> Self {
        Self::new(kind, format!("unknown tool {}", quoted(name))).about(name)
    }

    /// The request needs an extension that the client did not declare (R-ERR-16, R-TSX-05).
    pub fn extension(id: &str) -> Self {
        let data = format!("{{\"requiredCapabilities\":{{\"extensions\":{{\"{id}\":{{}}}}}}}}");
        let why = format!("this needs the extension {id}");
        Self {
            data: Some(data),
            ..Self::new(ErrorKind::MissingClientCapability, why)
        }
    }

    /// Answers the request.
    pub fn send(self, answer: Answer<'_>) -> Disposition {
        if self.is_tool_error {
            return answer.result(|result| ToolResult::error(self.why).write(result));
        }
        answer.refuse(Failure {
            kind: self.kind,
            about: &self.about,
            why: &self.why,
            data: self.data.as_deref(),
        })
    }
}

/// The `data` of an error about a resource.
pub(super) fn missing_data(uri: &str) -> String {
    let mut data = b"{\"uri\":".to_vec();
    string::append(&mut data, uri);
    data.push(b'}');
    String::from_utf8(data).unwrap_or_default()
}

/// Returns whether the client declared this extension on the request (R-TSX-20).
pub(super) fn declares(request: &IncomingRequest<'_>, id: &str) -> bool {
    let declared = request.message.raw(Field::ClientCapabilities);
    extension::declared(declared.unwrap_or("{}"), id).is_some()
}

/// The tool of a call, with arguments that fit its schema; and whether the call may run inline.
/// `checks_later` tells whether the executor checks arguments of that length itself.
pub(super) fn call_tool(
    registry: &Registry,
    request: &IncomingRequest<'_>,
    profile: Profile,
    checks_later: impl FnOnce(Operation, usize) -> bool,
) -> Result<(Operation, bool), Refusal> {
    let name = request.message.name();
    let name = name.ok_or_else(|| Refusal::params("the name of the tool is missing"))?;
    let number = registry.tool(&name);
    let number = number.ok_or_else(|| Refusal::tool(ErrorKind::ToolNotFound, &name))?;
    // R-TOL-12
    let arguments = request.message.arguments().unwrap_or("{}");
    if !arguments.starts_with('{') {
        return Err(Refusal::params("arguments must be an object"));
    }
    let support = registry.task_support(number);
    if registry.has_tasks() {
        check_task(support, request)?;
    }
    let operation = Operation::CallTool(number);
    if !checks_later(operation, arguments.len())
        && let Err(why) = registry.check_arguments(number, arguments)
    {
        // R-TOL-05
        return Err(Refusal {
            is_tool_error: profile.arguments_are_tool_errors(request.revision),
            ..Refusal::new(ErrorKind::ToolArguments, why)
        });
    }
    Ok((operation, support == TaskSupport::Forbidden))
}

/// Checks that a call asks for a task if the tool requires one, and not if it has none (R-TSK-04,
/// R-TSX-04).
fn check_task(support: TaskSupport, request: &IncomingRequest<'_>) -> Result<(), Refusal> {
    let asks = || {
        let params = request.message.params().unwrap_or("{}");
        reader::find(params, "task").is_some()
    };
    let mismatch = |why: &str| Err(Refusal::new(ErrorKind::MethodNotFound, why));
    match (request.revision.rules().tasks, support) {
        (Some(TaskForm::Core), TaskSupport::Required) if !asks() => {
            mismatch("this tool can only be called as a task")
        }
        (Some(TaskForm::Core), TaskSupport::Forbidden) if asks() => {
            mismatch("this tool cannot be called as a task")
        }
        (Some(TaskForm::Extension), TaskSupport::Required)
            if !declares(request, extension::TASKS) =>
        {
            Err(Refusal::extension(extension::TASKS))
        }
        _ => Ok(()),
    }
}

/// The URI that a request names.
pub(super) fn uri<'a>(request: &IncomingRequest<'a>) -> Result<Cow<'a, str>, Refusal> {
    let uri = request.message.uri();
    uri.ok_or_else(|| Refusal::params("the uri is missing"))
}

/// The resource or template of a read.
pub(super) fn read(
    registry: &Registry,
    request: &IncomingRequest<'_>,
) -> Result<Operation, Refusal> {
    let uri = uri(request)?;
    let found = registry.read(&uri);
    found.ok_or_else(|| Refusal::resource(ErrorKind::ResourceNotFound, &uri))
}

/// The prompt of a request, with arguments that it declares.
pub(super) fn prompt(
    registry: &Registry,
    request: &IncomingRequest<'_>,
) -> Result<Operation, Refusal> {
    let name = request.message.name();
    let name = name.ok_or_else(|| Refusal::params("the name of the prompt is missing"))?;
    let number = registry.prompt(&name);
    let Some((number, prompt)) = number.and_then(|n| Some((n, registry.prompt_at(n)?))) else {
        let why = format!("unknown prompt {}", quoted(&name));
        return Err(Refusal::new(ErrorKind::PromptNotFound, why).about(&name));
    };
    let arguments = request.message.arguments().unwrap_or("{}");
    let checked = check_prompt_arguments(prompt, arguments);
    checked.map_err(Refusal::params)?;
    Ok(Operation::GetPrompt(number))
}

/// Checks that the arguments, a JSON object, are texts that the prompt declares (R-PRM-09), and all that it requires.
///
/// # Errors
/// One sentence that says what is wrong.
pub(super) fn check_prompt_arguments(prompt: &Prompt, arguments: &str) -> Result<(), String> {
    if reader::members(arguments).any(|(_, value)| reader::as_str(value).is_none()) {
        return Err("prompt arguments are strings".to_owned());
    }
    let decode = |name: &JsonStr<'_>| name.decode().unwrap_or_default().into_owned();
    let mut names = reader::members(arguments).map(|(name, _)| decode(&name));
    let is_declared = |name: &String| prompt.arguments.iter().any(|own| own.name == *name);
    if let Some(name) = names.find(|name| !is_declared(name)) {
        return Err(format!("there is no argument {}", quoted(&name)));
    }
    let mut required = prompt.arguments.iter().filter(|argument| argument.required);
    match required.find(|argument| reader::find(arguments, &argument.name).is_none()) {
        Some(missing) => Err(format!("the argument {} is missing", quoted(&missing.name))),
        None => Ok(()),
    }
}

/// The method of an extension, which no revision defines (R-EXT-04).
pub(super) fn extension_method(
    registry: &Registry,
    request: &IncomingRequest<'_>,
) -> Result<Operation, Refusal> {
    let name = request.message.method().unwrap_or_default();
    match registry.method(&name) {
        Some((number, id)) if request.revision.era() == Era::Stateless => {
            match declares(request, id) {
                true => Ok(Operation::Extension(number)),
                false => Err(Refusal::extension(id)),
            }
        }
        _ => Err(Refusal::method(request)),
    }
}

/// A completion of an argument that exists (R-CMP-03).
pub(super) fn completion(
    registry: &Registry,
    request: &IncomingRequest<'_>,
    profile: Profile,
) -> Result<Operation, Refusal> {
    let params = request.message.params().unwrap_or("{}");
    let profile = profile.in_revision(request.revision);
    let asked = CompletionRequest::parse(params, profile).map_err(Refusal::params)?;
    let (CompletionTarget::Prompt { name } | CompletionTarget::Resource { uri: name }) =
        &asked.target;
    match registry.has_argument(&asked.target, &asked.argument) {
        Some(true) => Ok(Operation::Complete),
        // R-CMP-04
        Some(false) => {
            let argument = quoted(&asked.argument);
            Err(Refusal::params(format!("there is no argument {argument}")))
        }
        None => Err(Refusal::params(format!(
            "nothing is called {}",
            quoted(name)
        ))),
    }
}
