//! The vocabulary of both sides: tools, resources and prompts as lists show them, content, completion,
//! and what a server asks its client for. A client reads these types; a server writes them, and adds
//! a handler to a definition. Members without a field of their own are kept in `other` (R-RPC-13).

mod completion;
mod content;
mod elicitation;
mod icon;
mod model_preferences;
#[cfg(feature = "server")]
pub(crate) mod object_writer;
mod prompt;
mod raw_json;
mod resource;
mod results;
mod roots;
mod sampling;
pub(crate) mod text_value;
mod tool;
#[cfg(feature = "server")]
mod validity;

use serde_json::{Map, Value};

pub use self::completion::{CompletionTarget, Completions, MAX_VALUES};
pub use self::content::{Base64, Content, ResourceBody, ResourceContents};
pub use self::elicitation::{Elicitation, Elicited};
pub use self::icon::{Icon, IconSource, ImageKind, MAX_ICON_BYTES, image_kind, may_redirect};
pub use self::model_preferences::{ModelHint, ModelPreferences};
pub use self::prompt::{Prompt, PromptArgument};
pub use self::raw_json::RawJson;
pub use self::resource::{Resource, ResourceTemplate};
pub use self::results::{PromptResult, ToolResult};
#[cfg(feature = "server")]
pub(crate) use self::results::{write_array, write_contents};
pub use self::roots::Root;
pub use self::sampling::{MAX_TOOL_ROUNDS, Role, Sampled, Sampling, SamplingMessage};
pub use self::tool::Tool;
use crate::error::RequestError;
use crate::json::reader;

/// The members of a message without a field of their own.
pub type Other = Map<String, Value>;

/// Checks that `capabilities` declare the capability at `path`.
///
/// # Errors
/// [`RequestError::Unsupported`] with `name` if they do not.
fn declared(capabilities: &str, path: &[&str], name: &'static str) -> Result<(), RequestError> {
    match reader::find_path(capabilities, path) {
        Some(_) => Ok(()),
        None => Err(RequestError::Unsupported(name)),
    }
}
