//! The registry of a server: what it offers, found by name and listed from bytes encoded once.

mod beyond;
mod checks;
mod declared;
mod pages;

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use self::checks::Schemas;
pub(super) use self::checks::quoted;
pub(super) use self::pages::{Pages, Paging, page};
use super::audience::{Audience, Change};
use super::cache::{CacheHint, CacheScope};
use super::definition::{Prompt, PromptArgument, Resource, Tool};
#[cfg(feature = "skills")]
use super::skills::Skills;
use super::tasks::Tasks;
use super::template::{InvalidTemplate, Template};
use crate::mcp::{LogLevel, Revision, TaskSupport};
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
    /// Clients were not told that there may be changes.
    Fixed,
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
            Self::Fixed => f.write_str("the server was built without list_changes"),
        }
    }
}

impl std::error::Error for RegistryError {}

/// What a server offers.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// Those that were removed are still here, so that numbers stay what they are; the same holds
    /// for resources and prompts. What is not under its name below is not offered.
    tools: Vec<Tool>,
    schemas: Vec<Arc<Schemas>>,
    resources: Vec<Resource>,
    /// A template that was removed is still here, and not offered.
    templates: Vec<(Resource, Template, bool)>,
    pub(super) prompts: Vec<Prompt>,
    tool_names: HashMap<String, u32>,
    resource_uris: HashMap<String, u32>,
    prompt_names: HashMap<String, u32>,
    pub(super) completes: bool,
    pub(super) subscribes: bool,
    may_change: bool,
    /// Some tool opted in.
    has_tasks: bool,
    tasks: Arc<Tasks>,
    extensions: BTreeMap<String, String>,
    #[cfg(feature = "skills")]
    skills: Skills,
    edits: Edits,
    pub(super) audience: Arc<Audience>,
    page_size: Option<NonZeroUsize>,
    cache: CacheHint,
    lists: [OnceLock<Arc<Lists>>; 5],
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
        let number = take(&mut self.tool_names, &tool.name, self.tools.len())?;
        self.schemas.push(Arc::new(Schemas {
            input,
            output,
            headers,
        }));
        self.has_tasks |= tool.task_support != TaskSupport::Forbidden;
        self.tools.push(tool);
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
        let number = take(&mut self.resource_uris, &resource.uri, self.resources.len())?;
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
        self.templates.push((resource, template, true));
        self.edits.resources += 1;
        self.changed();
        Ok(self.templates.len() as u32 - 1)
    }

    /// Adds a prompt; gives its number.
    ///
    /// # Errors
    /// When the name is taken or empty, or a member is not the JSON it must be.
    pub fn add_prompt(&mut self, prompt: Prompt) -> Result<u32, RegistryError> {
        if let Some(member) = prompt.fault() {
            return Err(RegistryError::Json(prompt.name, member));
        }
        let number = take(&mut self.prompt_names, &prompt.name, self.prompts.len())?;
        self.prompts.push(prompt);
        self.edits.prompts += 1;
        self.changed();
        Ok(number)
    }

    /// Takes a tool away; whether there was one. Its number is not given again.
    pub fn remove_tool(&mut self, name: &str) -> bool {
        let removed = self.tool_names.remove(name).is_some();
        self.edits.tools += u64::from(removed);
        self.changed();
        removed
    }

    /// Takes a resource away; whether there was one. Its number is not given again.
    pub fn remove_resource(&mut self, uri: &str) -> bool {
        let removed = self.resource_uris.remove(uri).is_some();
        self.edits.resources += u64::from(removed);
        self.changed();
        removed
    }

    /// Takes the templates of exactly that URI template away; whether there was one. Their numbers
    /// are not given again.
    pub fn remove_template(&mut self, template: &str) -> bool {
        let mut removed = false;
        for (resource, _, offered) in &mut self.templates {
            removed |= *offered && resource.uri == template;
            *offered &= resource.uri != template;
        }
        self.edits.resources += u64::from(removed);
        self.changed();
        removed
    }

    /// Takes a prompt away; whether there was one. Its number is not given again.
    pub fn remove_prompt(&mut self, name: &str) -> bool {
        let removed = self.prompt_names.remove(name).is_some();
        self.edits.prompts += u64::from(removed);
        self.changed();
        removed
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
    }

    /// The tools, in the order of registration (R-TOL-02).
    pub fn tools(&self) -> Vec<&Tool> {
        offered(&self.tools, &self.tool_names, |tool| &tool.name)
    }

    /// The resources, in the order of registration.
    pub fn resources(&self) -> Vec<&Resource> {
        offered(&self.resources, &self.resource_uris, |resource| {
            &resource.uri
        })
    }

    /// The templates, in the order of registration.
    pub fn templates(&self) -> impl Iterator<Item = &Resource> {
        let offered = self.templates.iter().filter(|(_, _, offered)| *offered);
        offered.map(|(resource, ..)| resource)
    }

    /// The prompts, in the order of registration.
    pub fn prompts(&self) -> Vec<&Prompt> {
        offered(&self.prompts, &self.prompt_names, |prompt| &prompt.name)
    }

    /// The arguments of a prompt.
    pub(super) fn prompt_arguments(&self, number: u32) -> &[PromptArgument] {
        self.prompts
            .get(number as usize)
            .map_or(&[], |prompt| &prompt.arguments)
    }

    /// The number of a tool.
    pub fn tool(&self, name: &str) -> Option<u32> {
        self.tool_names.get(name).copied()
    }

    /// The number of a resource.
    pub fn resource(&self, uri: &str) -> Option<u32> {
        self.resource_uris.get(uri).copied()
    }

    /// The number of the first template that a URI matches, and its variables in order.
    pub fn template(&self, uri: &str) -> Option<(u32, Vec<(String, String)>)> {
        let matched = |(number, (_, template, offered)): (usize, &(Resource, Template, bool))| {
            let variables = template.match_uri(uri).filter(|_| *offered);
            variables.map(|variables| (number as u32, variables))
        };
        self.templates.iter().enumerate().find_map(matched)
    }

    /// Whether there is something to read at that URI, by itself or by a template.
    pub(super) fn reads(&self, uri: &str) -> bool {
        self.resource(uri).is_some() || self.template(uri).is_some()
    }

    /// The number of a prompt.
    pub fn prompt(&self, name: &str) -> Option<u32> {
        self.prompt_names.get(name).copied()
    }

    /// Whether there is a resource, or a template, of exactly that URI.
    pub fn has_resource(&self, uri: &str) -> bool {
        let mut templates = self.templates();
        self.resource_uris.contains_key(uri) || templates.any(|template| template.uri == uri)
    }

    pub(super) fn lists(&self, revision: Revision) -> &Lists {
        self.lists[revision as usize].get_or_init(|| {
            let hints = match revision.rules().cache_hints {
                true => self.cache.members(),
                false => String::new(),
            };
            let pages = Paging {
                size: self.page_size.map_or(usize::MAX, NonZeroUsize::get),
                hints: &hints,
            };
            let templates: Vec<_> = self.templates().collect();
            #[allow(unused_mut, reason = "without skills")]
            let mut resources = self.resources();
            #[cfg(feature = "skills")]
            resources.extend(self.skills.manifests());
            Arc::new(Lists {
                tools: pages.of("tools", &self.tools(), |tool, out| {
                    tool.write(out, revision)
                }),
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

/// Those of all entries that stand under their name: not the removed ones.
fn offered<'a, T>(
    all: &'a [T],
    names: &HashMap<String, u32>,
    name: impl Fn(&T) -> &str,
) -> Vec<&'a T> {
    let is_offered = |(number, entry): &(usize, &T)| {
        let named = names.get(name(entry));
        named.is_some_and(|named| *named as usize == *number)
    };
    let entries = all.iter().enumerate().filter(is_offered);
    entries.map(|(_, entry)| entry).collect()
}

/// Gives `name` the number of the next entry.
fn take(names: &mut HashMap<String, u32>, name: &str, next: usize) -> Result<u32, RegistryError> {
    if name.is_empty() {
        return Err(RegistryError::EmptyName);
    }
    let number = next as u32;
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
