//! The registry of a server: what it offers, found by name and listed from bytes encoded once.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::OnceLock;

use super::content::ToolResult;
use super::definition::{Prompt, Resource, Tool};
use super::template::{InvalidTemplate, Template};
use crate::connection::Config;
use crate::json;
use crate::mcp::{LogLevel, Revision, Side};
use crate::schema::{InvalidSchema, Schema};

/// Levels of nesting in what a tool says of itself.
const MAX_DEPTH: usize = 64;

/// Why something cannot be registered.
#[derive(Debug)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name, or the URI, is taken.
    Duplicate(String),
    /// A name is empty.
    EmptyName,
    /// A tool's member, named second, is no JSON, or not of the type it must be.
    Json(String, &'static str),
    /// A tool's schema is not valid.
    Schema(String, InvalidSchema),
    /// A URI template is not valid.
    Template(InvalidTemplate),
}

impl std::fmt::Display for RegistryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Duplicate(name) => write!(f, "{name:?} is registered already"),
            Self::EmptyName => f.write_str("a name is empty"),
            Self::Json(tool, member) => write!(
                f,
                "the {member} of tool {tool:?} are not the JSON they must be"
            ),
            Self::Schema(tool, error) => write!(f, "the schema of tool {tool:?}: {error}"),
            Self::Template(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for RegistryError {}

/// What a server offers.
#[derive(Debug, Default)]
pub struct Registry {
    pub(super) tools: Vec<Tool>,
    schemas: Vec<Schemas>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<(Resource, Template)>,
    pub(super) prompts: Vec<Prompt>,
    tool_names: HashMap<String, u32>,
    resource_uris: HashMap<String, u32>,
    prompt_names: HashMap<String, u32>,
    pub(super) completes: bool,
    page_size: Option<NonZeroUsize>,
    lists: [OnceLock<Lists>; 5],
}

/// The compiled schemas of a tool.
#[derive(Debug)]
struct Schemas {
    input: Schema,
    output: Option<Schema>,
}

/// The members of one list's results, a page each.
pub(super) type Pages = Box<[Box<str>]>;

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
        for (member, json, opener) in [
            ("output_schema", &tool.output_schema, '{'),
            ("annotations", &tool.annotations, '{'),
            ("icons", &tool.icons, '['),
        ] {
            let fits = |json: &String| {
                let json = json.trim_start();
                json.starts_with(opener) && json::validate(json.as_bytes(), MAX_DEPTH).is_ok()
            };
            if !json.as_ref().is_none_or(fits) {
                return Err(RegistryError::Json(tool.name, member));
            }
        }
        let output = tool.output_schema.as_deref().map(Schema::new);
        let output = output.transpose().map_err(invalid)?;
        let number = take(&mut self.tool_names, &tool.name)?;
        self.schemas.push(Schemas { input, output });
        self.tools.push(tool);
        self.changed();
        Ok(number)
    }

    /// Adds a resource; gives its number.
    ///
    /// # Errors
    /// When the URI is taken or empty.
    pub fn add_resource(&mut self, resource: Resource) -> Result<u32, RegistryError> {
        let number = take(&mut self.resource_uris, &resource.uri)?;
        self.resources.push(resource);
        self.changed();
        Ok(number)
    }

    /// Adds resources by template (the `uri` is one of RFC 6570, levels 1 to 3); gives its
    /// number.
    ///
    /// # Errors
    /// When the template is not valid.
    pub fn add_template(&mut self, resource: Resource) -> Result<u32, RegistryError> {
        let template = Template::parse(&resource.uri).map_err(RegistryError::Template)?;
        self.templates.push((resource, template));
        self.changed();
        Ok(self.templates.len() as u32 - 1)
    }

    /// Adds a prompt; gives its number.
    ///
    /// # Errors
    /// When the name is taken or empty.
    pub fn add_prompt(&mut self, prompt: Prompt) -> Result<u32, RegistryError> {
        let number = take(&mut self.prompt_names, &prompt.name)?;
        self.prompts.push(prompt);
        self.changed();
        Ok(number)
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

    fn changed(&mut self) {
        self.lists = Default::default();
    }

    /// The tools, in the order of registration.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The prompts, in the order of registration.
    pub fn prompts(&self) -> &[Prompt] {
        &self.prompts
    }

    /// The number of a tool.
    pub fn tool(&self, name: &str) -> Option<u32> {
        self.tool_names.get(name).copied()
    }

    /// Checks the arguments of a call, a validated JSON text, against the tool's input schema
    /// (R-TOL-03).
    ///
    /// # Errors
    /// What is wrong, as a sentence for the caller.
    pub fn check_arguments(&self, number: u32, arguments: &str) -> Result<(), String> {
        let Some(schemas) = self.schemas.get(number as usize) else {
            return Ok(());
        };
        let name = &self.tools[number as usize].name;
        let wrong = |why| format!("invalid arguments for tool {}: {why}", quoted(name));
        schemas.input.check(arguments).map_err(wrong)
    }

    /// Checks what a tool gave back against its output schema, if it has one. A result that is an
    /// error need not fit (R-STR-01, R-STR-07).
    ///
    /// # Errors
    /// What is wrong, as a sentence for the tool's author.
    pub fn check_result(&self, number: u32, result: &ToolResult) -> Result<(), String> {
        let schemas = self.schemas.get(number as usize);
        let Some(schema) = schemas.and_then(|schemas| schemas.output.as_ref()) else {
            return Ok(());
        };
        let verdict = match &result.structured {
            _ if result.is_error => Ok(()),
            Some(json) => schema.check(json),
            None => Err("there is no structured content".to_owned()),
        };
        let name = &self.tools[number as usize].name;
        verdict.map_err(|why| {
            let name = quoted(name);
            format!("the result of tool {name} does not fit its output schema: {why}")
        })
    }

    /// The number of a resource.
    pub fn resource(&self, uri: &str) -> Option<u32> {
        self.resource_uris.get(uri).copied()
    }

    /// The number of the first template that a URI matches, and its variables in order.
    pub fn template(&self, uri: &str) -> Option<(u32, Vec<(String, String)>)> {
        let matched = |(number, (_, template)): (usize, &(Resource, Template))| {
            template
                .match_uri(uri)
                .map(|variables| (number as u32, variables))
        };
        self.templates.iter().enumerate().find_map(matched)
    }

    /// The number of a prompt.
    pub fn prompt(&self, name: &str) -> Option<u32> {
        self.prompt_names.get(name).copied()
    }

    /// Whether there is a resource, or a template, of exactly that URI.
    pub fn has_resource(&self, uri: &str) -> bool {
        let template = |(resource, _): &(Resource, Template)| resource.uri == uri;
        self.resource_uris.contains_key(uri) || self.templates.iter().any(template)
    }

    /// Whether any resource or template is offered.
    pub fn has_resources(&self) -> bool {
        !self.resources.is_empty() || !self.templates.is_empty()
    }

    /// The configuration of a server that offers this.
    pub fn config(&self, name: &str, version: &str) -> Config {
        let mut config = Config::new(Side::Server, name, version);
        let mut members = Vec::new();
        members.extend((!self.tools.is_empty()).then_some("\"tools\":{}"));
        members.extend(self.has_resources().then_some("\"resources\":{}"));
        members.extend((!self.prompts.is_empty()).then_some("\"prompts\":{}"));
        members.push("\"logging\":{}");
        let oldest = format!("{{{}}}", members.join(","));
        members.extend(self.completes.then_some("\"completions\":{}"));
        let capabilities = format!("{{{}}}", members.join(","));
        config.capabilities = Revision::ALL.map(|revision| match revision.rules().completions {
            true => capabilities.as_str().into(),
            false => oldest.as_str().into(),
        });
        config
    }

    pub(super) fn lists(&self, revision: Revision) -> &Lists {
        self.lists[revision as usize].get_or_init(|| {
            let hints = match revision.rules().cache_hints {
                true => ",\"ttlMs\":0,\"cacheScope\":\"private\"",
                false => "",
            };
            let pages = Paging {
                size: self.page_size.map_or(usize::MAX, NonZeroUsize::get),
                hints,
            };
            Lists {
                tools: pages.of("tools", &self.tools, |tool, out| tool.write(out, revision)),
                resources: pages.of("resources", &self.resources, |resource, out| {
                    resource.write(out, revision, "uri");
                }),
                templates: pages.of(
                    "resourceTemplates",
                    &self.templates,
                    |(resource, _), out| {
                        resource.write(out, revision, "uriTemplate");
                    },
                ),
                prompts: pages.of("prompts", &self.prompts, |prompt, out| {
                    prompt.write(out, revision)
                }),
            }
        })
    }
}

fn take(names: &mut HashMap<String, u32>, name: &str) -> Result<u32, RegistryError> {
    if name.is_empty() {
        return Err(RegistryError::EmptyName);
    }
    let number = names.len() as u32;
    match names.entry(name.to_owned()) {
        std::collections::hash_map::Entry::Occupied(_) => {
            Err(RegistryError::Duplicate(name.to_owned()))
        }
        std::collections::hash_map::Entry::Vacant(entry) => Ok(*entry.insert(number)),
    }
}

/// How lists are cut and what each page carries beside its items.
struct Paging<'a> {
    size: usize,
    hints: &'a str,
}

impl Paging<'_> {
    /// The pages of one list; an empty list has one, too.
    fn of<T>(&self, key: &str, items: &[T], write: impl Fn(&T, &mut Vec<u8>)) -> Pages {
        let count = items.len().div_ceil(self.size).max(1);
        let page = |number: usize| {
            let mut out = format!("\"{key}\":[").into_bytes();
            let items = items.iter().skip(number * self.size).take(self.size);
            for (i, item) in items.enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write(item, &mut out);
            }
            out.push(b']');
            if number + 1 < count {
                let next = format!(",\"nextCursor\":\"{}\"", cursor(number + 1));
                out.extend_from_slice(next.as_bytes());
            }
            out.extend_from_slice(self.hints.as_bytes());
            String::from_utf8(out).unwrap_or_default().into()
        };
        (0..count).map(page).collect()
    }
}

/// The cursor of a page.
fn cursor(number: usize) -> String {
    format!("page-{number}")
}

/// The page that a request asks for, by its raw `cursor`; the first without one (R-PAG-07).
pub(super) fn page<'a>(pages: &'a Pages, raw: Option<&str>) -> Option<&'a str> {
    let number = match raw {
        None | Some("null") => 0,
        Some(raw) => {
            let text = crate::json::reader::as_str(raw)?;
            let number = text.strip_prefix("page-")?.parse().ok()?;
            // One spelling for each page, and none for the first (R-PAG-06).
            (number > 0 && cursor(number) == text).then_some(number)?
        }
    };
    pages.get(number).map(|page| &**page)
}

/// The level that `logging/setLevel` names.
pub(super) fn level(params: &str) -> Option<LogLevel> {
    let name = crate::json::reader::find(params, "level").and_then(crate::json::reader::as_str)?;
    LogLevel::parse(&name)
}

/// A name of the peer's in a message: quoted, and cut so that it cannot flood.
pub(super) fn quoted(name: &str) -> String {
    match name.char_indices().nth(100) {
        Some((end, _)) => format!("\"{}…\"", &name[..end]),
        None => format!("\"{name}\""),
    }
}
