//! Errors of registration.

use crate::schema::InvalidSchema;
use crate::server::template::InvalidTemplate;

/// Why something cannot be registered.
#[derive(Debug)]
#[non_exhaustive]
pub enum RegistryError {
    /// The name or the URI is already registered.
    Duplicate(String),
    /// A name is empty.
    EmptyName,
    /// A JSON member of a definition is malformed: the definition's name, then the member's.
    Json(String, &'static str),
    /// An `x-mcp-header` in a tool's schema is misplaced or not valid.
    Header(String, &'static str),
    /// The tool may run on GET, but its annotations do not say that it is read-only.
    NotReadOnly(String),
    /// A tool's schema is not valid.
    Schema(String, InvalidSchema),
    /// A URI template is not valid.
    Template(InvalidTemplate),
    /// A skill cannot be offered.
    #[cfg(feature = "skills")]
    Skill(crate::server::skills::InvalidSkill),
    /// The extension's name has no prefix, or its settings are not a JSON object.
    Extension(String),
    /// A layer, an approval or a sanitiser is for this tool, but no tool has this name, and the lists
    /// are not announced to change.
    UnknownTool(String),
    /// A handler takes a [`State`](crate::server::State) that the server was not built with: the handler's
    /// name, then the state's type.
    NoState(String, &'static str),
    /// The lists cannot change, because changes were not announced to clients.
    Fixed,
    /// All entry numbers are used up, hundreds of millions of them.
    Exhausted,
}

impl std::fmt::Display for RegistryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Duplicate(name) => write!(f, "{name:?} is already registered"),
            Self::EmptyName => f.write_str("a name is empty"),
            Self::Json(name, member) => {
                write!(
                    f,
                    "the {member} of {name:?} is not valid JSON of the expected form"
                )
            }
            Self::Extension(id) => write!(
                f,
                "extension {id:?}: the name needs a prefix such as com.example/, and the settings must be a JSON object"
            ),
            Self::NoState(handler, state) => write!(
                f,
                "{handler:?} takes a State<{state}>; add one with Builder::state"
            ),
            Self::Header(tool, fault) => write!(f, "the schema of tool {tool:?}: {fault}"),
            Self::NotReadOnly(tool) => write!(
                f,
                "tool {tool:?}: a GET may run only read-only tools; add readOnlyHint to its annotations"
            ),
            Self::Schema(tool, error) => write!(f, "the schema of tool {tool:?}: {error}"),
            Self::Template(error) => write!(f, "{error}"),
            #[cfg(feature = "skills")]
            Self::Skill(error) => write!(f, "{error}"),
            Self::UnknownTool(name) => write!(
                f,
                "no tool is called {name:?}, but a layer, an approval or a sanitiser is for it"
            ),
            Self::Fixed => {
                f.write_str("the lists cannot change: build the server with list_changes")
            }
            Self::Exhausted => f.write_str("all entry numbers are used up"),
        }
    }
}

impl std::error::Error for RegistryError {}
