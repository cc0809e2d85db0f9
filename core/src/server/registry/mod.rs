//! The registry of a server: what it offers, found by name and listed from bytes encoded once.

mod beyond;
mod checks;
mod declared;
mod extend;
mod pages;
mod remarks;

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use self::checks::Schemas;
pub(super) use self::checks::quoted;
use self::extend::ExtensionMethod;
pub(super) use self::pages::{Pages, Paging, cursor, page};
use self::remarks::Remarks;
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
use super::template::{InvalidTemplate, Template};
use crate::connection::References;
use crate::handler::{HandlerError, Operation};
use crate::mcp::{LogLevel, Profile, Revision, TaskSupport};
use crate::policy::{Permissions, Policy};
use crate::schema::{InvalidSchema, Schema};

/// Why something cannot be registered.
#[derive(Debug)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name, or the URI, is taken.
    Duplicate(String),
    /// A name is empty.
    EmptyName,
    /// A member, named second, of a definition is no JSON, or not of the shape it must have.
    Json(String, &'static str),
    /// An `x-mcp-header` in a tool's schema is not where, or what, it may be.
    Header(String, &'static str),
    /// A tool's schema is not valid.
    Schema(String, InvalidSchema),
    /// A URI template is not valid.
    Template(InvalidTemplate),
    /// A skill cannot be offered.
    #[cfg(feature = "skills")]
    Skill(super::skills::InvalidSkill),
    /// The extension's name has no prefix, or its settings are no JSON object.
    Extension(String),
    /// Calls of that tool are to be looked at first, but there is none, and none may come.
    UnknownTool(String),
    /// Clients were not told that there may be changes.
    Fixed,
    /// Every number has been given, hundreds of millions of them.
    Exhausted,
}

impl std::fmt::Display for RegistryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Duplicate(name) => write!(f, "{name:?} is registered already"),
            Self::EmptyName => f.write_str("a name is empty"),
            Self::Json(name, member) => {
                write!(f, "the {member} of {name:?}: not the JSON it must be")
            }
            Self::Extension(id) => write!(
                f,
                "{id:?} cannot name an extension, or its settings are no object"
            ),
            Self::Header(tool, fault) => write!(f, "the schema of tool {tool:?}: {fault}"),
            Self::Schema(tool, error) => write!(f, "the schema of tool {tool:?}: {error}"),
            Self::Template(error) => write!(f, "{error}"),
            #[cfg(feature = "skills")]
            Self::Skill(error) => write!(f, "{error}"),
            Self::UnknownTool(name) => write!(
                f,
                "no tool is called {name:?}, whose calls are to be approved or sanitised"
            ),
            Self::Fixed => f.write_str("the server was built without list_changes"),
            Self::Exhausted => f.write_str("there are no numbers left"),
        }
    }
}

impl std::error::Error for RegistryError {}

/// What a server offers.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    tools: Numbered<(Tool, Arc<Schemas>)>,
    resources: Numbered<Resource>,
    templates: Numbered<(Resource, Template)>,
    prompts: Numbered<Prompt>,
    tool_names: HashMap<String, u32>,
    resource_uris: HashMap<String, u32>,
    prompt_names: HashMap<String, u32>,
    pub(super) completes: bool,
    pub(super) subscribes: bool,
    /// Resources are offered even if there are none.
    embeds: bool,
    /// Tools are, too.
    promises_tools: bool,
    profile: Profile,
    pub(super) policy: Option<Arc<Policy>>,
    /// What is declared as `experimental`, by name.
    experimental: BTreeMap<String, String>,
    may_change: bool,
    /// Some tool opted in.
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
    /// What was noticed while it served.
    pub(super) remarks: Arc<Remarks>,
    page_size: Option<NonZeroUsize>,
    cache: CacheHint,
    lists: [OnceLock<Arc<Lists>>; 5],
    /// The schemas that the action dialect shows.
    actions: OnceLock<Arc<Pages>>,
    /// Whether the server is well, if it can say so.
    pub(super) health: Option<Health>,
    /// Where data of actions are that are too long for an answer.
    pub(super) references: Option<Arc<References>>,
}

/// Changes so far, by kind.
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
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool; gives its number.
    ///
    /// # Errors
    /// When the name is taken or empty, or a schema is not valid (R-SCH-11).
    pub fn add_tool(&mut self, tool: Tool) -> Result<u32, RegistryError> {
        let invalid = |error| RegistryError::Schema(tool.name.clone(), error);
        let input = Schema::input(&tool.input_schema).map_err(invalid)?;
        if let Some(member) = tool.fault() {
            return Err(RegistryError::Json(tool.name, member));
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

    /// Adds a resource; gives its number.
    ///
    /// # Errors
    /// When the URI is taken or empty, or a member is not the JSON it must be.
    pub fn add_resource(&mut self, resource: Resource) -> Result<u32, RegistryError> {
        if let Some(member) = resource.fault() {
            return Err(RegistryError::Json(resource.uri, member));
        }
        let number = take(
            &mut self.resource_uris,
            &resource.uri,
            self.resources.next(),
        )?;
        self.resources.push(resource);
        self.edits.resources += 1;
        self.changed();
        Ok(number)
    }

    /// Adds resources by template (the `uri` is one of RFC 6570, levels 1 to 3); gives its
    /// number.
    ///
    /// # Errors
    /// When the template is not valid, or a member is not the JSON it must be.
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

    /// Adds a prompt; gives its number.
    ///
    /// # Errors
    /// When the name is taken or empty, or a member is not the JSON it must be.
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

    /// Takes a tool away; whether there was one. Its number is not given again.
    pub fn remove_tool(&mut self, name: &str) -> bool {
        let Some(number) = self.tool_names.remove(name) else {
            return false;
        };
        self.tools.remove(number);
        self.edits.tools += 1;
        self.changed();
        true
    }

    /// Takes a resource away; whether there was one. Its number is not given again.
    pub fn remove_resource(&mut self, uri: &str) -> bool {
        let Some(number) = self.resource_uris.remove(uri) else {
            return false;
        };
        self.resources.remove(number);
        self.edits.resources += 1;
        self.changed();
        true
    }

    /// Takes the templates of exactly that URI template away; whether there was one. Their numbers
    /// are not given again.
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

    /// Takes a prompt away; whether there was one. Its number is not given again.
    pub fn remove_prompt(&mut self, name: &str) -> bool {
        let Some(number) = self.prompt_names.remove(name) else {
            return false;
        };
        self.prompts.remove(number);
        self.edits.prompts += 1;
        self.changed();
        true
    }

    /// Announces that the lists may change: tools, resources and prompts are offered, if only as
    /// empty lists.
    pub fn announce_changes(&mut self) {
        self.may_change = true;
    }

    /// Whether changes are announced.
    pub fn may_change(&self) -> bool {
        self.may_change
    }

    /// Lets clients subscribe to resources.
    pub fn offer_subscriptions(&mut self) {
        self.subscribes = true;
    }

    /// Offers resources even if there are none, for tools that embed some in what they give back
    /// (R-TOL-13).
    pub fn offer_resources(&mut self) {
        self.embeds = true;
    }

    /// Offers tools even if there are none.
    pub fn offer_tools(&mut self) {
        self.promises_tools = true;
    }

    /// Speaks as that profile has it, up to 2025-11-25.
    pub fn set_profile(&mut self, profile: Profile) {
        self.profile = profile;
    }

    /// Holds everything against `policy`: see
    /// [`Builder::policy`](crate::server::Builder::policy).
    pub fn set_policy(&mut self, policy: Arc<Policy>) {
        self.policy = Some(policy);
        self.changed();
    }

    /// What everything is held against, for a [`Hosting`](crate::server::Hosting) of one's own.
    pub fn policy(&self) -> Option<&Arc<Policy>> {
        self.policy.as_ref()
    }

    /// Declares something as `experimental`, with these settings, a JSON object.
    ///
    /// # Errors
    /// When the settings are no object.
    pub fn add_experimental(&mut self, name: &str, settings: &str) -> Result<(), RegistryError> {
        let valid = crate::json::validate(settings.as_bytes(), 64).is_ok();
        if !valid || !settings.trim_start().starts_with('{') {
            return Err(RegistryError::Json(name.to_owned(), "settings"));
        }
        self.experimental
            .insert(name.to_owned(), settings.to_owned());
        Ok(())
    }

    /// What was declared as `experimental` under that name.
    pub(super) fn experimental(&self, name: &str) -> Option<&str> {
        self.experimental.get(name).map(String::as_str)
    }

    /// Tells the clients on all connections that something is another now: every one of a list,
    /// those who subscribed of a resource.
    pub fn tell(&self, change: Change<'_>) {
        self.audience.tell(change);
    }

    /// Which lists are others than before.
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

    /// Offers to complete arguments: [`Operation::Complete`](crate::handler::Operation).
    pub fn offer_completion(&mut self) {
        self.completes = true;
    }

    /// Has lists given out in pages of so many items. Without it there is one page.
    pub fn set_page_size(&mut self, items: NonZeroUsize) {
        self.page_size = Some(items);
        self.changed();
    }

    /// Lets clients keep the lists for so long (2026-07-28): all pages of all lists (R-CCH-06).
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

    /// Whether there is something under that number, so that who carries it out is needed yet.
    pub fn has(&self, operation: Operation) -> bool {
        match operation {
            Operation::CallTool(number) => self.tools.get(number).is_some(),
            Operation::ReadResource(number) => self.resources.get(number).is_some(),
            Operation::ReadTemplate(number) => self.templates.get(number).is_some(),
            Operation::GetPrompt(number) => self.prompts.get(number).is_some(),
            Operation::Complete => self.completes,
            Operation::Extension(number) => self.methods.get(number).is_some(),
        }
    }

    /// The arguments of a prompt.
    pub(super) fn prompt_arguments(&self, number: u32) -> &[PromptArgument] {
        let prompt = self.prompts.get(number);
        prompt.map_or(&[], |prompt| &prompt.arguments)
    }

    /// Whether what is to be completed has an argument of that name; `None` when there is no such
    /// thing.
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
                    // A resource by itself has no variables.
                    None => self.resource(uri).map(|_| false),
                }
            }
        }
    }

    /// The number of a tool.
    pub fn tool(&self, name: &str) -> Option<u32> {
        self.tool_names.get(name).copied()
    }

    /// The tool of a number.
    pub(crate) fn tool_at(&self, number: u32) -> Option<&Tool> {
        self.tools.get(number).map(|(tool, _)| tool)
    }

    /// The number of a resource.
    pub fn resource(&self, uri: &str) -> Option<u32> {
        self.resource_uris.get(uri).copied()
    }

    /// The number of the first template that a URI matches, and its variables in order.
    pub fn template(&self, uri: &str) -> Option<(u32, Vec<(String, String)>)> {
        let matched = |(number, (_, template)): (u32, &(Resource, Template))| {
            let variables = template.match_uri(uri);
            variables.map(|variables| (number, variables))
        };
        self.templates.iter().find_map(matched)
    }

    /// Whether there is something to read at that URI, by itself or by a template.
    pub(super) fn reads(&self, uri: &str) -> bool {
        self.resource(uri).is_some() || self.template(uri).is_some()
    }

    /// The number of a prompt.
    pub fn prompt(&self, name: &str) -> Option<u32> {
        self.prompt_names.get(name).copied()
    }

    /// The permissions, where lists do not show what they deny (R-PER-05).
    fn hidden_by(&self, revision: Revision) -> Option<&Permissions> {
        let told = self.profile.in_revision(revision).overlay().tells_denied;
        let policy = self.policy.as_ref().filter(|_| !told);
        policy.and_then(|policy| policy.allowed())
    }

    /// What `mcp.get_schema` answers with: the schemas of all actions (R-ACT-12).
    pub(super) fn action_schemas(&self) -> &Pages {
        self.actions.get_or_init(|| {
            let mut tools = self.tools();
            tools.retain(|tool| self.shows_action(&tool.name));
            let refers = self.references.is_some();
            let (tools, size) = (tools.into_iter(), self.page_len());
            Arc::new(super::actions::schemas(tools, refers, size))
        })
    }

    /// Whether a policy asks who asks.
    pub(super) fn verifies(&self) -> bool {
        self.policy
            .as_ref()
            .is_some_and(|policy| policy.has_verifier())
    }

    fn page_len(&self) -> usize {
        self.page_size.map_or(usize::MAX, NonZeroUsize::get)
    }

    /// Whether clients of the action dialect are shown that tool: not what permissions deny.
    pub(super) fn shows_action(&self, tool: &str) -> bool {
        let permissions = self.policy.as_ref().and_then(|policy| policy.allowed());
        permissions.is_none_or(|permissions| permissions.may_call(tool))
    }

    /// Has answers of actions refer to data of more than so many bytes, kept for so long.
    pub fn set_references(&mut self, max_bytes: usize, ttl: Duration) {
        self.references = Some(Arc::new(References::new(max_bytes, ttl)));
    }

    /// Has `mcp.health_check` ask `health`.
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

/// Gives `name` the number of the next entry.
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
