//! Operations that a request asks for: checked against the registry, then passed to the executor.

use std::borrow::Cow;

use super::completion::{CompletionRequest, CompletionTarget};
use super::content::ToolResult;
use super::host::ServerHost;
use super::registry::quoted;
use super::tasks::{Rule, declares, missing_extension};
use crate::connection::{Answer, Disposition, IncomingRequest, Operation};
use crate::handler::Executor;
use crate::json::{JsonStr, reader, string};
use crate::limits::CHECK_HERE_BYTES;
use crate::mcp::profile::Failure;
use crate::mcp::{Era, ErrorKind, TaskSupport, extension};

impl<E: Executor> ServerHost<E> {
    /// Answers at once if the executor runs the operation inline; otherwise defers the request.
    pub(super) fn operate(
        &mut self,
        operation: Operation,
        request: IncomingRequest<'_>,
        answer: Answer<'_>,
    ) -> Disposition {
        match self.executor().inline(operation, request, answer) {
            Ok(disposition) => disposition,
            Err(_answer) => Disposition::Deferred(operation),
        }
    }

    pub(super) fn call_tool(
        &mut self,
        request: IncomingRequest<'_>,
        answer: Answer<'_>,
    ) -> Disposition {
        let Some(name) = request.message.name() else {
            return answer.error(
                ErrorKind::InvalidParams,
                "the name of the tool is missing",
                None,
            );
        };
        let Some(number) = self.registry.tool(&name) else {
            return unknown_tool(answer, ErrorKind::ToolNotFound, &name);
        };
        let arguments = match request.message.arguments() {
            // R-TOL-12
            None => "{}",
            Some(arguments) if arguments.starts_with('{') => arguments,
            Some(_) => {
                return answer.error(
                    ErrorKind::InvalidParams,
                    "arguments must be an object",
                    None,
                );
            }
        };
        let operation = Operation::CallTool(number);
        let support = self.registry.task_support(number);
        if self.registry.has_tasks() {
            match Rule::of(support, &request) {
                Rule::Goes => {}
                Rule::Mismatch(why) => return answer.error(ErrorKind::MethodNotFound, why, None),
                Rule::Missing => return missing_extension(answer, extension::TASKS),
            }
        }
        let later =
            arguments.len() > CHECK_HERE_BYTES && self.executor().checks_arguments(operation);
        if !later && let Err(why) = self.registry.check_arguments(number, arguments) {
            // R-TOL-05
            let profile = self.handle.config().profile;
            return match profile.arguments_are_tool_errors(request.revision) {
                true => answer.result(|result| ToolResult::error(why).write(result)),
                false => answer.error(ErrorKind::ToolArguments, &why, None),
            };
        }
        if support != TaskSupport::Forbidden {
            return Disposition::Deferred(operation);
        }
        self.operate(operation, request, answer)
    }

    pub(super) fn read(&mut self, request: IncomingRequest<'_>, answer: Answer<'_>) -> Disposition {
        let Some(uri) = request.message.uri() else {
            return answer.error(ErrorKind::InvalidParams, "the uri is missing", None);
        };
        let found = self.registry.resource(&uri).map(Operation::ReadResource);
        let found = found.or_else(|| {
            let number = self.registry.template_number(&uri)?;
            Some(Operation::ReadTemplate(number))
        });
        match found {
            Some(operation) => self.operate(operation, request, answer),
            None => missing(answer, ErrorKind::ResourceNotFound, &uri),
        }
    }

    pub(super) fn get_prompt(
        &mut self,
        request: IncomingRequest<'_>,
        answer: Answer<'_>,
    ) -> Disposition {
        let Some(name) = request.message.name() else {
            return answer.error(
                ErrorKind::InvalidParams,
                "the name of the prompt is missing",
                None,
            );
        };
        let Some(number) = self.registry.prompt(&name) else {
            return answer.refuse(Failure {
                kind: ErrorKind::PromptNotFound,
                about: &name,
                why: &format!("unknown prompt {}", quoted(&name)),
                data: None,
            });
        };
        let arguments = request.message.arguments().unwrap_or("{}");
        if reader::members(arguments).any(|(_, value)| reader::as_str(value).is_none()) {
            return answer.error(
                ErrorKind::InvalidParams,
                "prompt arguments are strings",
                None,
            );
        }
        let arguments_of = self.registry.prompt_arguments(number);
        // R-PRM-09: a prompt receives only arguments that it declares.
        let known = |name: &JsonStr<'_>| {
            let name = name.decode().unwrap_or_default();
            arguments_of.iter().any(|argument| argument.name == name)
        };
        if let Some((name, _)) = reader::members(arguments).find(|(name, _)| !known(name)) {
            let name = name.decode().unwrap_or_default();
            let text = format!("there is no argument {}", quoted(&name));
            return answer.error(ErrorKind::InvalidParams, &text, None);
        }
        let required = arguments_of.iter().filter(|a| a.required);
        for argument in required {
            if reader::find(arguments, &argument.name).is_none() {
                let text = format!("the argument {} is missing", quoted(&argument.name));
                return answer.error(ErrorKind::InvalidParams, &text, None);
            }
        }
        self.operate(Operation::GetPrompt(number), request, answer)
    }

    /// Serves a method that no revision defines, but perhaps an extension (R-EXT-04).
    pub(super) fn extension(
        &mut self,
        request: IncomingRequest<'_>,
        answer: Answer<'_>,
    ) -> Disposition {
        let registry = self.registry.clone();
        let name = request.message.method().unwrap_or_default();
        match registry.method(&name) {
            Some((number, id)) if request.revision.era() == Era::Stateless => {
                match declares(&request, id) {
                    true => self.operate(Operation::Extension(number), request, answer),
                    false => missing_extension(answer, id),
                }
            }
            _ => not_offered(answer, &request),
        }
    }

    /// R-CMP-03
    pub(super) fn complete(
        &mut self,
        request: IncomingRequest<'_>,
        answer: Answer<'_>,
    ) -> Disposition {
        let params = request.message.params().unwrap_or("{}");
        let profile = self.handle.config().profile.in_revision(request.revision);
        let asked = match CompletionRequest::parse(params, profile) {
            Ok(asked) => asked,
            Err(why) => return answer.error(ErrorKind::InvalidParams, why, None),
        };
        let (CompletionTarget::Prompt(name) | CompletionTarget::Resource(name)) = &asked.target;
        let refusal = match self.registry.has_argument(&asked.target, &asked.argument) {
            Some(true) => return self.operate(Operation::Complete, request, answer),
            // R-CMP-04
            Some(false) => format!("there is no argument {}", quoted(&asked.argument)),
            None => format!("nothing is called {}", quoted(name)),
        };
        answer.error(ErrorKind::InvalidParams, &refusal, None)
    }
}

pub(super) fn not_offered(answer: Answer<'_>, request: &IncomingRequest<'_>) -> Disposition {
    let name = request.message.method().unwrap_or(Cow::Borrowed("?"));
    answer.refuse(Failure {
        kind: ErrorKind::MethodNotFound,
        about: &name,
        why: &format!("no method {} here", quoted(&name)),
        data: None,
    })
}

/// Refuses a resource that does not exist, or not for this client (R-ERR-09, R-ERR-10).
pub(super) fn missing(answer: Answer<'_>, kind: ErrorKind, uri: &str) -> Disposition {
    answer.refuse(Failure {
        kind,
        about: uri,
        why: "resource not found",
        data: Some(&missing_data(uri)),
    })
}

/// Refuses a tool that does not exist, or not for this client (R-ERR-11).
pub(super) fn unknown_tool(answer: Answer<'_>, kind: ErrorKind, name: &str) -> Disposition {
    answer.refuse(Failure {
        kind,
        about: name,
        why: &format!("unknown tool {}", quoted(name)),
        data: None,
    })
}

pub(super) fn missing_data(uri: &str) -> String {
    let mut data = b"{\"uri\":".to_vec();
    string::append(&mut data, uri);
    data.push(b'}');
    String::from_utf8(data).unwrap_or_default()
}
