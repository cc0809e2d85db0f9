//! The registry of a server: its definitions, looked up by name and listed from JSON encoded once.

mod beyond;
mod checks;
mod declared;
mod error;
mod extend;
mod lints;
mod pages;

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use self::checks::Schemas;
pub(super) use self::checks::quoted;
pub use self::error::RegistryError;
use self::extend::ExtensionMethod;
use self::lints::Lints;
pub(super) use self::pages::{Pages, Paging, cursor, page};
use super::access::Guard;
use super::actions::Health;
use super::audience::{Audience, Change};
use super::cache::{CacheHint, CacheScope};
use super::completion::CompletionTarget;
use super::definition::{Prompt, PromptArgument, Resource, Tool};
use super::numbered::Numbered;
#[cfg(feature = "skills")]
use super::skills::Skills;
use super::tasks::Tasks;
use super::template::{self, CheckedUri, Template};
use crate::connection::{Budget, Operation, References};
use crate::handler::HandlerError;
use crate::mcp::{LogLevel, Profile, Revision, TaskSupport};
use crate::policy::{Permissions, Policy};
use crate::schema::Schema;

/// The definitions that a server offers: tools, resources, templates, prompts and extensions.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    tools: Numbered<(Tool, Arc<Schemas>)>,
    resources: Numbered<Resource>,
    templates: Numbered<(Resource, Template)>,
    prompts: Numbered<Prompt>,
    tool_names: HashMap<String, u32>,
    resource_uris: HashMap<String, u32>,
    /// Length in bytes of the longest resource URI so far; longer URIs are not looked up.
    longest_uri: usize,
    prompt_names: HashMap<String, u32>,
    pub(super) completes: bool,
    pub(super) subscribes: bool,
    /// The resources capability is declared even while there are none.
    embeds: bool,
    /// The tools capability is declared even while there are none.
    promises_tools: bool,
    profile: Profile,
    pub(super) policy: Option<Arc<Policy>>,
    /// The `experimental` capabilities, by name.
    experimental: BTreeMap<String, String>,
    may_change: bool,
    /// At least one tool supports tasks.
    has_tasks: bool,
    tasks: Arc<Tasks>,
    extensions: BTreeMap<String, String>,
    #[cfg(feature = "skills")]
    skills: Skills,
    edits: Edits,
    pub(super) audience: Arc<Audience>,
    guard: Option<Guard>,
    /// Methods of extensions, by number and by name.
    methods: Numbered<ExtensionMethod>,
    method_names: HashMap<String, u32>,
    /// Warnings noticed while serving.
    pub(super) remarks: Arc<Lints>,
    page_size: Option<NonZeroUsize>,
    cache: CacheHint,
    lists: [OnceLock<Arc<Lists>>; 5],
    /// The pages of `mcp.get_schema` in the action dialect.
    actions: OnceLock<Arc<Pages>>,
    /// The health check, if the program set one.
    pub(super) health: Option<Health>,
    /// The store for action data that is too long for an answer.
    pub(super) references: Option<Arc<References>>,
    /// The budget of all connections together.
    pub(super) budget: Arc<Budget>,
}

/// Number of changes so far, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Edits {
    tools: u64,
    resources: u64,
    prompts: u64,
}

/// The list results of one revision.
#[derive(Debug)]
pub(super) struct Lists {
    pub tools: Pages,
    pub resources: Pages,
    pub templates: Pages,
    pub prompts: Pages,
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
        let invalid = |error| RegistryError::Schema(tool.name.clone(), error);
        let input = Schema::input(&tool.input_schema).map_err(invalid)?;
        if let Some(member) = tool.fault() {
            return Err(RegistryError::Json(tool.name, member));
        }
        if tool.on_get && !tool.is_read_only() {
            return Err(RegistryError::NotReadOnly(tool.name));
        }
        let headers = match tool.header_params() {
            Ok(headers) => headers,
            Err(fault) => return Err(RegistryError::Header(tool.name, fault)),
        };
        let output = tool.output_schema.as_deref().map(Schema::new);
        let output = output.transpose().map_err(invalid)?;
        let number = take(&mut self.tool_names, &tool.name, self.tools.next())?;
        self.has_tasks |= tool.task_support != TaskSupport::Forbidden;
        let schemas = Schemas {
            input,
            output,
            headers,
        };
        self.tools.push((tool, Arc::new(schemas)));
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
        let number = take(
            &mut self.resource_uris,
            &resource.uri,
            self.resources.next(),
        )?;
        self.longest_uri = self.longest_uri.max(resource.uri.len());
        self.resources.push(resource);
        self.edits.resources += 1;
        self.changed();
        Ok(number)
    }

    /// Adds resources by URI template and returns its number. The `uri` is a template of RFC 6570,
    /// levels 1 to 3.
    ///
    /// # Errors
    /// When the template is not valid, or a JSON member is malformed.
    pub fn add_template(&mut self, resource: Resource) -> Result<u32, RegistryError> {
        if let Some(member) = resource.fault() {
            return Err(RegistryError::Json(resource.uri, member));
        }
        let template = Template::parse(&resource.uri).map_err(RegistryError::Template)?;
        let number = self.templates.next().ok_or(RegistryError::Exhausted)?;
        self.templates.push((resource, template));
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
        let number = take(&mut self.prompt_names, &prompt.name, self.prompts.next())?;
        self.prompts.push(prompt);
        self.edits.prompts += 1;
        self.changed();
        Ok(number)
    }

    /// Removes a tool and returns whether it existed. Its number is not reused.
    pub fn remove_tool(&mut self, name: &str) -> bool {
        let Some(number) = self.tool_names.remove(name) else {
            return false;
        };
        self.tools.remove(number);
        self.edits.tools += 1;
        self.changed();
        true
    }

    /// Removes a resource and returns whether it existed. Its number is not reused.
    pub fn remove_resource(&mut self, uri: &str) -> bool {
        let Some(number) = self.resource_uris.remove(uri) else {
            return false;
        };
        self.resources.remove(number);
        self.edits.resources += 1;
        self.changed();
        true
    }

    /// Removes every template with exactly this URI template and returns whether there was one.
    /// Their numbers are not reused.
    pub fn remove_template(&mut self, template: &str) -> bool {
        let own = |(_, (resource, _)): &(u32, &(Resource, Template))| resource.uri == template;
        let gone: Vec<_> = self.templates.iter().filter(own).map(|(n, _)| n).collect();
        for number in &gone {
            self.templates.remove(*number);
        }
        self.edits.resources += gone.len() as u64;
        self.changed();
        !gone.is_empty()
    }

    /// Removes a prompt and returns whether it existed. Its number is not reused.
    pub fn remove_prompt(&mut self, name: &str) -> bool {
        let Some(number) = self.prompt_names.remove(name) else {
            return false;
        };
        self.prompts.remove(number);
        self.edits.prompts += 1;
        self.changed();
        true
    }

    /// Announces that the lists may change. Tools, resources and prompts are then declared even if
    /// their lists are empty.
    pub fn announce_changes(&mut self) {
        self.may_change = true;
    }

    /// Returns whether the lists are announced to change.
    pub fn may_change(&self) -> bool {
        self.may_change
    }

    /// Lets clients subscribe to resources.
    pub fn offer_subscriptions(&mut self) {
        self.subscribes = true;
    }

    /// Declares the resources capability even while there are none, for tools that embed resources
    /// in their results (R-TOL-13).
    pub fn offer_resources(&mut self) {
        self.embeds = true;
    }

    /// Declares the tools capability even while there are none.
    pub fn offer_tools(&mut self) {
        self.promises_tools = true;
    }

    /// Speaks this profile of the protocol, up to revision 2025-11-25.
    pub fn set_profile(&mut self, profile: Profile) {
        self.profile = profile;
    }

    /// Applies `policy` to requests and answers: see
    /// [`Builder::policy`](crate::server::Builder::policy).
    pub fn set_policy(&mut self, policy: Arc<Policy>) {
        self.policy = Some(policy);
        self.changed();
    }

    /// Returns the policy, for a custom [`Hosting`](crate::server::Hosting).
    pub fn policy(&self) -> Option<&Arc<Policy>> {
        self.policy.as_ref()
    }

    /// Declares an `experimental` capability with these settings, a JSON object.
    ///
    /// # Errors
    /// When the settings are no JSON object.
    pub fn add_experimental(&mut self, name: &str, settings: &str) -> Result<(), RegistryError> {
        let valid = crate::json::validate(settings.as_bytes(), 64).is_ok();
        if !valid || !settings.trim_start().starts_with('{') {
            return Err(RegistryError::Json(name.to_owned(), "settings"));
        }
        self.experimental
            .insert(name.to_owned(), settings.to_owned());
        Ok(())
    }

    /// Returns the settings of the `experimental` capability with this name.
    pub(super) fn experimental(&self, name: &str) -> Option<&str> {
        self.experimental.get(name).map(String::as_str)
    }

    /// Notifies clients on all connections of a change: every client of a changed list, subscribers
    /// of a changed resource.
    pub fn tell(&self, change: Change<'_>) {
        self.audience.tell(change);
    }

    /// Returns the lists that differ from those of `before`.
    pub(super) fn changes_since(&self, before: &Self) -> Vec<Change<'static>> {
        let (now, before) = (self.edits, before.edits);
        let kinds = [
            (now.tools != before.tools, Change::Tools),
            (now.prompts != before.prompts, Change::Prompts),
            (now.resources != before.resources, Change::Resources),
        ];
        kinds
            .into_iter()
            .filter_map(|(is, change)| is.then_some(change))
            .collect()
    }

    /// Declares completion of arguments: [`Operation::Complete`](crate::connection::Operation).
    pub fn offer_completion(&mut self) {
        self.completes = true;
    }

    /// Splits lists into pages of `items` entries. Default: one page per list.
    pub fn set_page_size(&mut self, items: NonZeroUsize) {
        self.page_size = Some(items);
        self.changed();
    }

    /// Lets clients cache all pages of all lists for `ttl` (2026-07-28, R-CCH-06).
    pub fn set_list_cache(&mut self, ttl: Duration, scope: CacheScope) {
        self.cache = CacheHint { ttl, scope };
        self.changed();
    }

    fn changed(&mut self) {
        self.lists = Default::default();
        self.actions = OnceLock::new();
    }

    /// The tools, in the order of registration (R-TOL-02).
    pub fn tools(&self) -> Vec<&Tool> {
        self.tools.values().map(|(tool, _)| tool).collect()
    }

    /// The resources, in the order of registration.
    pub fn resources(&self) -> Vec<&Resource> {
        self.resources.values().collect()
    }

    /// The templates, in the order of registration.
    pub fn templates(&self) -> impl Iterator<Item = &Resource> {
        self.templates.values().map(|(resource, _)| resource)
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
            Operation::Listen | Operation::AwaitTask | Operation::ServeBatch => false,
            Operation::Own(_) => false,
        }
    }

    /// Returns the arguments of a prompt.
    pub(super) fn prompt_arguments(&self, number: u32) -> &[PromptArgument] {
        let prompt = self.prompts.get(number);
        prompt.map_or(&[], |prompt| &prompt.arguments)
    }

    /// Returns whether the target of a completion has an argument of this name; `None` if the
    /// target does not exist.
    pub(super) fn has_argument(&self, target: &CompletionTarget, argument: &str) -> Option<bool> {
        match target {
            CompletionTarget::Prompt(name) => {
                let prompt = self.prompts.get(self.prompt(name)?)?;
                Some(prompt.arguments.iter().any(|own| own.name == argument))
            }
            CompletionTarget::Resource(uri) => {
                let mut all = self.templates.values();
                match all.find(|(resource, _)| resource.uri == *uri) {
                    Some((_, template)) => Some(template.has_variable(argument)),
                    // A resource without a template has no variables.
                    None => self.resource(uri).map(|_| false),
                }
            }
        }
    }

    /// Returns the number of a tool.
    pub fn tool(&self, name: &str) -> Option<u32> {
        self.tool_names.get(name).copied()
    }

    /// Returns the tool with this number.
    pub(crate) fn tool_at(&self, number: u32) -> Option<&Tool> {
        self.tools.get(number).map(|(tool, _)| tool)
    }

    /// Returns the number of a resource.
    pub fn resource(&self, uri: &str) -> Option<u32> {
        let may_be = uri.len() <= self.longest_uri;
        may_be.then(|| self.resource_uris.get(uri).copied())?
    }

    /// Returns the number of the first template that the URI matches, and its variables in order.
    pub fn template(&self, uri: &str) -> Option<(u32, Vec<(String, String)>)> {
        let (number, values) = self.matched(uri)?;
        Some((number, template::owned(values)))
    }

    /// Returns the number of the first template that the URI matches.
    pub(super) fn template_number(&self, uri: &str) -> Option<u32> {
        self.matched(uri).map(|(number, _)| number)
    }

    fn matched<'a>(&'a self, uri: &'a str) -> Option<(u32, template::Values<'a>)> {
        let uri = CheckedUri::new(uri)?;
        let mut all = self.templates.iter();
        all.find_map(|(number, (_, template))| Some((number, template.match_checked(uri)?)))
    }

    /// Returns whether a resource or a template matches the URI.
    pub(super) fn reads(&self, uri: &str) -> bool {
        self.resource(uri).is_some() || self.template_number(uri).is_some()
    }

    /// Returns the number of a prompt.
    pub fn prompt(&self, name: &str) -> Option<u32> {
        self.prompt_names.get(name).copied()
    }

    /// The permissions, if lists hide what they deny (R-PER-05).
    fn hidden_by(&self, revision: Revision) -> Option<&Permissions> {
        let told = self.profile.in_revision(revision).overlay().tells_denied;
        let policy = self.policy.as_ref().filter(|_| !told);
        policy.and_then(|policy| policy.allowed())
    }

    /// The `mcp.get_schema` pages: the schemas of all actions (R-ACT-12).
    pub(super) fn action_schemas(&self) -> &Pages {
        self.actions.get_or_init(|| {
            let mut tools = self.tools();
            tools.retain(|tool| self.shows_action(&tool.name));
            let refers = self.references.is_some();
            let (tools, size) = (tools.into_iter(), self.page_len());
            Arc::new(super::actions::schemas(tools, refers, size))
        })
    }

    /// Returns whether the policy has a verifier of credentials.
    pub(super) fn verifies(&self) -> bool {
        self.policy
            .as_ref()
            .is_some_and(|policy| policy.has_verifier())
    }

    fn page_len(&self) -> usize {
        self.page_size.map_or(usize::MAX, NonZeroUsize::get)
    }

    /// Returns whether `mcp.get_schema` shows this tool; tools that permissions deny are hidden.
    pub(super) fn shows_action(&self, tool: &str) -> bool {
        let permissions = self.policy.as_ref().and_then(|policy| policy.allowed());
        permissions.is_none_or(|permissions| permissions.may_call(tool))
    }

    /// Answers actions with a reference to data longer than `max_bytes`, which is stored for `ttl`:
    /// see [`Builder::references`](crate::server::Builder::references).
    pub fn set_references(&mut self, max_bytes: usize, ttl: Duration) {
        self.references = Some(Arc::new(References::new(max_bytes, ttl)));
    }

    /// Sets the check that `mcp.health_check` runs.
    pub fn set_health(
        &mut self,
        health: impl Fn() -> Result<(), HandlerError> + Send + Sync + 'static,
    ) {
        self.health = Some(Health::new(health));
    }

    pub(super) fn lists(&self, revision: Revision) -> &Lists {
        self.lists[revision as usize].get_or_init(|| {
            let hints = match revision.rules().cache_hints {
                true => self.cache.members(),
                false => String::new(),
            };
            let pages = Paging {
                size: self.page_len(),
                hints: &hints,
            };
            let templates: Vec<_> = self.templates().collect();
            let (mut tools, mut resources) = (self.tools(), self.resources());
            #[cfg(feature = "skills")]
            resources.extend(self.skills.manifests());
            if let Some(permissions) = self.hidden_by(revision) {
                tools.retain(|tool| permissions.may_call(&tool.name));
                resources.retain(|resource| permissions.may_read(&resource.uri));
            }
            Arc::new(Lists {
                tools: pages.of("tools", &tools, |tool, out| tool.write(out, revision)),
                resources: pages.of("resources", &resources, |resource, out| {
                    resource.write(out, revision, "uri");
                }),
                templates: pages.of("resourceTemplates", &templates, |template, out| {
                    template.write(out, revision, "uriTemplate");
                }),
                prompts: pages.of("prompts", &self.prompts(), |prompt, out| {
                    prompt.write(out, revision)
                }),
            })
        })
    }
}

/// Assigns the number `next` to `name`.
fn take(
    names: &mut HashMap<String, u32>,
    name: &str,
    next: Option<u32>,
) -> Result<u32, RegistryError> {
    if name.is_empty() {
        return Err(RegistryError::EmptyName);
    }
    let number = next.ok_or(RegistryError::Exhausted)?;
    match names.entry(name.to_owned()) {
        std::collections::hash_map::Entry::Occupied(_) => {
            Err(RegistryError::Duplicate(name.to_owned()))
        }
        std::collections::hash_map::Entry::Vacant(entry) => Ok(*entry.insert(number)),
    }
}

/// The level that `logging/setLevel` names.
pub(super) fn level(params: &str) -> Option<LogLevel> {
    let name = crate::json::reader::find(params, "level").and_then(crate::json::reader::as_str)?;
    LogLevel::parse(&name)
}
