//! The registry of a server: its definitions, looked up by name and listed from JSON encoded once.

pub(super) mod actions;
mod capabilities;
mod error;
mod lints;
mod listing;
mod named;
mod pages;
mod settings;
mod tool_entry;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use self::actions::Health;
pub use self::error::RegistryError;
use self::lints::Lints;
use self::named::Named;
use self::pages::Lists;
pub(super) use self::pages::{Pages, page};
pub(super) use self::tool_entry::{ToolEntry, quoted};
use super::access::Guard;
use super::cache_hint::CacheHint;
#[cfg(feature = "skills")]
use super::skills::{Skill, Skills};
use super::slots::Slots;
use super::subscriptions::Subscribers;
use super::tasks::Tasks;
use super::template::{self, CheckedUri, Template};
use crate::connection::{Budget, Operation, References};
#[cfg(feature = "http")]
use crate::mcp::header::HeaderParam;
#[cfg(feature = "client")]
use crate::mcp::header_arguments::HeaderArguments;
use crate::mcp::{Method, Profile, Revision, TaskSupport};
use crate::model::{CompletionTarget, Prompt, Resource, ResourceTemplate, Tool, ToolResult};
use crate::policy::Policy;

/// The definitions that a server offers: tools, resources, templates, prompts and extensions.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    tools: Named<Arc<ToolEntry>>,
    resources: Named<Resource>,
    templates: Slots<(ResourceTemplate, Template)>,
    prompts: Named<Prompt>,
    /// Length in bytes of the longest resource URI so far; longer URIs are not looked up.
    longest_uri: usize,
    completes: bool,
    subscribes: bool,
    /// The resources capability is declared even while there are none.
    offers_resources: bool,
    /// The tools capability is declared even while there are none.
    offers_tools: bool,
    profile: Profile,
    policy: Option<Arc<Policy>>,
    /// The `experimental` capabilities, by name.
    experimental: BTreeMap<String, String>,
    may_change: bool,
    /// At least one tool supports tasks.
    has_tasks: bool,
    tasks: Arc<Tasks>,
    extensions: BTreeMap<String, String>,
    /// Methods of extensions, each with the id of its extension.
    methods: Named<String>,
    #[cfg(feature = "skills")]
    skills: Skills,
    edits: Edits,
    subscribers: Arc<Subscribers>,
    guard: Option<Guard>,
    /// The arguments that HTTP repeats in headers, of tools that are not this registry's own.
    #[cfg(feature = "client")]
    mirrored: Option<Arc<HeaderArguments>>,
    /// Warnings noticed while serving.
    lints: Arc<Lints>,
    page_size: Option<NonZeroUsize>,
    cache: CacheHint,
    /// The `_meta` of lists, by the method that reads the list.
    list_meta: Vec<(Method, Box<str>)>,
    lists: [OnceLock<Arc<Lists>>; Revision::COUNT],
    /// The pages of `mcp.get_schema` in the action dialect.
    action_schemas: OnceLock<Arc<Pages>>,
    /// The health check, if the program set one.
    health: Option<Health>,
    /// The store for action data that is too long for an answer.
    references: Option<Arc<References>>,
    /// The budget of all connections together.
    budget: Arc<Budget>,
}

/// Number of changes so far, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Edits {
    tools: u64,
    resources: u64,
    prompts: u64,
}

impl Registry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool and returns its number.
    ///
    /// # Errors
    /// When the name is taken or empty, a schema is not valid (R-SCH-11), a JSON member is
    /// malformed, or a GET may run the tool but it is not read-only.
    pub fn add_tool(&mut self, tool: Tool) -> Result<u32, RegistryError> {
        let entry = Arc::new(ToolEntry::new(tool)?);
        let supports_tasks = entry.tool.task_support != TaskSupport::Forbidden;
        let number = self.tools.add(&entry.tool.name, entry.clone())?;
        self.has_tasks |= supports_tasks;
        self.edits.tools += 1;
        self.changed();
        Ok(number)
    }

    /// Adds a resource and returns its number.
    ///
    /// # Errors
    /// When the URI is taken or empty, or a JSON member is malformed.
    pub fn add_resource(&mut self, resource: Resource) -> Result<u32, RegistryError> {
        if let Some(member) = resource.fault() {
            return Err(RegistryError::Json(resource.uri, member));
        }
        let uri = resource.uri.clone();
        let number = self.resources.add(&uri, resource)?;
        self.longest_uri = self.longest_uri.max(uri.len());
        self.edits.resources += 1;
        self.changed();
        Ok(number)
    }

    /// Adds resources by URI template and returns their number. The URI is a template of RFC 6570,
    /// levels 1 to 3.
    ///
    /// # Errors
    /// When the template is not valid, or a JSON member is malformed.
    pub fn add_template(
        &mut self,
        listed: impl Into<ResourceTemplate>,
    ) -> Result<u32, RegistryError> {
        let listed = listed.into();
        if let Some(member) = listed.fault() {
            return Err(RegistryError::Json(listed.uri_template, member));
        }
        let template = Template::parse(&listed.uri_template).map_err(RegistryError::Template)?;
        let number = self.templates.next().ok_or(RegistryError::Exhausted)?;
        self.templates.push((listed, template));
        self.edits.resources += 1;
        self.changed();
        Ok(number)
    }

    /// Adds a prompt and returns its number.
    ///
    /// # Errors
    /// When the name is taken or empty, or a JSON member is malformed.
    pub fn add_prompt(&mut self, prompt: Prompt) -> Result<u32, RegistryError> {
        if let Some(member) = prompt.fault() {
            return Err(RegistryError::Json(prompt.name, member));
        }
        let name = prompt.name.clone();
        let number = self.prompts.add(&name, prompt)?;
        self.edits.prompts += 1;
        self.changed();
        Ok(number)
    }

    /// Adds a method of an extension that [is declared](Self::add_extension). Returns its number
    /// (R-EXT-04).
    ///
    /// # Errors
    /// When the extension is not declared, or the name is empty or taken, for example by the
    /// protocol.
    pub fn add_method(&mut self, extension: &str, method: &str) -> Result<u32, RegistryError> {
        if !self.extensions.contains_key(extension) {
            return Err(RegistryError::Extension(extension.to_owned()));
        }
        if Method::parse(method).is_some() {
            return Err(RegistryError::Duplicate(method.to_owned()));
        }
        self.methods.add(method, extension.to_owned())
    }

    /// Adds a skill; its files are listed and read without a handler.
    ///
    /// # Errors
    /// When a skill with this URI exists, it is too large, or a file path leads out of it.
    #[cfg(feature = "skills")]
    pub fn add_skill(&mut self, skill: Skill) -> Result<(), RegistryError> {
        self.skills.add(skill).map_err(RegistryError::Skill)?;
        self.edits.resources += 1;
        self.changed();
        Ok(())
    }

    /// Removes a tool and returns whether it existed. Its number is not reused.
    pub fn remove_tool(&mut self, name: &str) -> bool {
        let existed = self.tools.remove(name);
        self.edits.tools += u64::from(existed);
        self.changed();
        existed
    }

    /// Removes a resource and returns whether it existed. Its number is not reused.
    pub fn remove_resource(&mut self, uri: &str) -> bool {
        let existed = self.resources.remove(uri);
        self.edits.resources += u64::from(existed);
        self.changed();
        existed
    }

    /// Removes every template with exactly this URI template and returns whether there was one.
    /// Their numbers are not reused.
    pub fn remove_template(&mut self, template: &str) -> bool {
        let all = self.templates.iter();
        let own = all.filter(|(_, (listed, _))| listed.uri_template == template);
        let gone: Vec<_> = own.map(|(number, _)| number).collect();
        for number in &gone {
            self.templates.remove(*number);
        }
        self.edits.resources += gone.len() as u64;
        self.changed();
        !gone.is_empty()
    }

    /// Removes a prompt and returns whether it existed. Its number is not reused.
    pub fn remove_prompt(&mut self, name: &str) -> bool {
        let existed = self.prompts.remove(name);
        self.edits.prompts += u64::from(existed);
        self.changed();
        existed
    }

    /// The tools, in the order of registration (R-TOL-02).
    pub fn tools(&self) -> Vec<&Tool> {
        self.tools.values().map(|entry| &entry.tool).collect()
    }

    /// The resources, in the order of registration.
    pub fn resources(&self) -> Vec<&Resource> {
        self.resources.values().collect()
    }

    /// The templates, in the order of registration.
    pub fn templates(&self) -> impl Iterator<Item = &ResourceTemplate> {
        self.templates.values().map(|(listed, _)| listed)
    }

    /// The prompts, in the order of registration.
    pub fn prompts(&self) -> Vec<&Prompt> {
        self.prompts.values().collect()
    }

    /// Returns whether the entry still exists, so that its handler is still needed.
    pub fn has(&self, operation: Operation) -> bool {
        match operation {
            Operation::CallTool(number) => self.tools.get(number).is_some(),
            Operation::ReadResource(number) => self.resources.get(number).is_some(),
            Operation::ReadTemplate(number) => self.templates.get(number).is_some(),
            Operation::GetPrompt(number) => self.prompts.get(number).is_some(),
            Operation::Complete => self.completes,
            Operation::Extension(number) => self.methods.get(number).is_some(),
            Operation::Listen
            | Operation::AwaitTask
            | Operation::ServeBatch
            | Operation::AwaitAdmission => false,
            Operation::Own(_) => false,
        }
    }

    /// Returns the number of a tool.
    pub fn tool(&self, name: &str) -> Option<u32> {
        self.tools.number(name)
    }

    /// Returns the tool with this number.
    pub(crate) fn tool_at(&self, number: u32) -> Option<&Tool> {
        self.entry(number).map(|entry| &entry.tool)
    }

    pub(super) fn entry(&self, number: u32) -> Option<&ToolEntry> {
        self.tools.get(number).map(|entry| &**entry)
    }

    /// Returns the number of a resource.
    pub fn resource(&self, uri: &str) -> Option<u32> {
        let may_be = uri.len() <= self.longest_uri;
        may_be.then(|| self.resources.number(uri))?
    }

    /// Returns the number of the first template that the URI matches, and its variables in order.
    pub fn template(&self, uri: &str) -> Option<(u32, Vec<(String, String)>)> {
        let (number, values) = self.matched(uri)?;
        Some((number, template::owned(values)))
    }

    fn matched<'a>(&'a self, uri: &'a str) -> Option<(u32, template::Values<'a>)> {
        let uri = CheckedUri::new(uri)?;
        let mut all = self.templates.iter();
        all.find_map(|(number, (_, template))| Some((number, template.match_checked(uri)?)))
    }

    /// Returns the operation that reads this URI.
    pub(super) fn read(&self, uri: &str) -> Option<Operation> {
        let resource = self.resource(uri).map(Operation::ReadResource);
        let template = || self.matched(uri).map(|(number, _)| number);
        resource.or_else(|| template().map(Operation::ReadTemplate))
    }

    /// Returns the number of a prompt.
    pub fn prompt(&self, name: &str) -> Option<u32> {
        self.prompts.number(name)
    }

    pub(super) fn prompt_at(&self, number: u32) -> Option<&Prompt> {
        self.prompts.get(number)
    }

    /// Returns the number of a method and the extension that it belongs to.
    pub fn method(&self, name: &str) -> Option<(u32, &str)> {
        let number = self.methods.number(name)?;
        Some((number, self.methods.get(number)?))
    }

    /// Returns whether the target of a completion has an argument of this name; `None` if the
    /// target does not exist.
    pub(super) fn has_argument(&self, target: &CompletionTarget, argument: &str) -> Option<bool> {
        match target {
            CompletionTarget::Prompt { name } => {
                let prompt = self.prompts.get(self.prompt(name)?)?;
                Some(prompt.arguments.iter().any(|own| own.name == argument))
            }
            CompletionTarget::Resource { uri } => {
                let mut all = self.templates.values();
                match all.find(|(listed, _)| listed.uri_template == *uri) {
                    Some((_, template)) => Some(template.has_variable(argument)),
                    // A resource without a template has no variables.
                    None => self.resource(uri).map(|_| false),
                }
            }
        }
    }

    /// The arguments of a tool that are also sent as HTTP headers (2026-07-28).
    #[cfg(feature = "http")]
    pub(crate) fn header_params(&self, number: u32) -> &[HeaderParam] {
        self.entry(number).map_or(&[], |entry| &entry.headers)
    }

    /// Checks the arguments of a call, a validated JSON text, against the tool's input schema
    /// (R-TOL-03).
    ///
    /// # Errors
    /// A sentence for the caller that says what is wrong.
    pub fn check_arguments(&self, number: u32, arguments: &str) -> Result<(), String> {
        let entry = self.entry(number);
        entry.map_or(Ok(()), |entry| entry.check_arguments(arguments))
    }

    /// Checks a tool's result against its output schema, if it has one. Results that are errors are
    /// not checked (R-STR-01, R-STR-07).
    ///
    /// # Errors
    /// A sentence for the tool's author that says what is wrong.
    pub fn check_result(&self, number: u32, result: &ToolResult) -> Result<(), String> {
        let entry = self.entry(number);
        entry.map_or(Ok(()), |entry| entry.check_result(result))
    }

    /// Returns whether calls of this tool may continue as tasks.
    pub fn supports_tasks(&self, number: u32) -> bool {
        self.task_support(number) != TaskSupport::Forbidden
    }

    /// Whether the tool says of itself that repeating a call has no further effect.
    pub(in crate::server) fn is_idempotent(&self, number: u32) -> bool {
        let annotations = self
            .tool_at(number)
            .and_then(|tool| tool.annotations.as_deref());
        annotations.and_then(|all| crate::json::reader::find(all, "idempotentHint")) == Some("true")
    }

    pub(super) fn task_support(&self, number: u32) -> TaskSupport {
        let tool = self.tool_at(number);
        tool.map_or(TaskSupport::Forbidden, |tool| tool.task_support)
    }

    /// Checks that a tool exists for each name, so that a mistyped name does not leave a tool
    /// unguarded. `*` stands for all tools. If the lists may change, every name is accepted.
    ///
    /// # Errors
    /// [`RegistryError::UnknownTool`].
    pub fn knows_tools<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), RegistryError> {
        let is_known = |name: &&str| *name == "*" || self.tool(name).is_some();
        let unknown = names.into_iter().find(|name| !is_known(name));
        match unknown.filter(|_| !self.may_change) {
            Some(name) => Err(RegistryError::UnknownTool(name.to_owned())),
            None => Ok(()),
        }
    }
}
