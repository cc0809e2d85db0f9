//! Tools as `tools/list` shows them.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

#[cfg(feature = "server")]
use super::object_writer::ObjectWriter;
use super::{Other, RawJson};
use crate::mcp::TaskSupport;
#[cfg(feature = "server")]
use crate::mcp::{Revision, TaskForm};

/// A tool as `tools/list` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The unique name by which clients call the tool: 1 to 128 of `A-Z a-z 0-9 _ - .` (R-NAM-01).
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its arguments: a JSON object with `"type":"object"`.
    #[serde(default = "any_object")]
    pub input_schema: RawJson,
    /// JSON Schema of its structured content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<RawJson>,
    /// Hints about its behaviour: a JSON object (`ToolAnnotations`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<RawJson>,
    /// Icons: a JSON array (`Icon`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<RawJson>,
    /// Its `_meta`: a JSON object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<RawJson>,
    /// Whether its calls may continue as tasks.
    #[serde(
        rename = "execution",
        with = "execution",
        default,
        skip_serializing_if = "is_forbidden"
    )]
    pub task_support: TaskSupport,
    /// Further members that `mcp.get_schema` of the action dialect shows: a JSON object. See
    /// [`action`](Self::action). Not in `tools/list`.
    #[serde(skip)]
    pub action: Option<RawJson>,
    /// Whether a GET over HTTP may run it: see [`on_get`](Self::on_get). Not in `tools/list`.
    #[serde(skip)]
    pub on_get: bool,
    /// All other members.
    #[serde(flatten)]
    pub other: Other,
}

impl Tool {
    /// Creates a tool that accepts any JSON object as arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema: any_object(),
            output_schema: None,
            annotations: None,
            icons: None,
            meta: None,
            task_support: TaskSupport::Forbidden,
            action: None,
            on_get: false,
            other: Map::new(),
        }
    }

    /// Sets the description for the model.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.title = Some(text.into());
        self
    }

    /// Sets the JSON Schema of its arguments.
    #[must_use]
    pub fn input_schema(mut self, json: impl ToString) -> Self {
        self.input_schema = RawJson::new(json);
        self
    }

    /// Sets the JSON Schema of its structured content.
    #[must_use]
    pub fn output_schema(mut self, json: impl ToString) -> Self {
        self.output_schema = Some(RawJson::new(json));
        self
    }

    /// Sets hints about its behaviour: a JSON object (`ToolAnnotations`).
    #[must_use]
    pub fn annotations(mut self, json: impl ToString) -> Self {
        self.annotations = Some(RawJson::new(json));
        self
    }

    /// Sets the icons: a JSON array (`Icon`).
    #[must_use]
    pub fn icons(mut self, json: impl ToString) -> Self {
        self.icons = Some(RawJson::new(json));
        self
    }

    /// Sets its `_meta`: a JSON object.
    #[must_use]
    pub fn meta(mut self, json: impl ToString) -> Self {
        self.meta = Some(RawJson::new(json));
        self
    }

    /// Lets its calls continue as tasks: in 2025-11-25 if the client asks for it, from 2026-07-28
    /// on if the handler calls [`Context::begin_task`](crate::server::Context::begin_task).
    #[must_use]
    pub fn task_support(mut self, support: TaskSupport) -> Self {
        self.task_support = support;
        self
    }

    /// Sets what `mcp.get_schema` of the action dialect shows in addition to the description and
    /// the schemas: a JSON object with any of `examples` (requests and responses), `errors` (the
    /// error types the tool may answer with), `help_url`, `deprecated` (a notice), `atomic`
    /// (`transactional` or `best_effort`: see [`atomic_tool`](crate::server::Builder::atomic_tool))
    /// and other members.
    ///
    /// ```
    /// use mcpbolt::server::Tool;
    /// use serde_json::json;
    /// let tool = Tool::new("calculator.add").action(json!({
    ///     "examples": [{"request": {"params": {"a": 1, "b": 2}}, "response": {"data": {"result": 3}}}],
    ///     "errors": ["VALIDATION_ERROR"],
    /// }));
    /// ```
    #[must_use]
    pub fn action(mut self, json: impl ToString) -> Self {
        self.action = Some(RawJson::new(json));
        self
    }

    /// Lets a GET request run the tool, in the action dialect over HTTP:
    /// `GET …/stream?action=NAME&…` (R-ACT-24). Without this, such a GET is refused with 405. A web page
    /// can make a browser send a GET without credentials or origin, so the tool must be read-only:
    /// registering it is an error unless its annotations say `"readOnlyHint":true`.
    ///
    /// ```
    /// use mcpbolt::server::{Arguments, Server, Tool};
    /// use serde_json::json;
    /// let tool = Tool::new("clock.ticks")
    ///     .annotations(json!({"readOnlyHint": true}))
    ///     .on_get();
    /// let server = Server::builder("clock", "1.0.0")
    ///     .actions(true)
    ///     .tool(tool, |_: Arguments, _| async { "tick" })
    ///     .build()?;
    /// # Ok::<(), mcpbolt::server::RegistryError>(())
    /// ```
    #[must_use]
    pub fn on_get(mut self) -> Self {
        self.on_get = true;
        self
    }

    /// Declares, in the description and to clients of the action dialect, that a failed call is
    /// rolled back. For a custom executor that does the rollback, as
    /// [`atomic_tool`](crate::server::Builder::atomic_tool) does (R-ACT-18).
    #[must_use]
    pub fn atomic(self) -> Self {
        let described = self.description.clone().unwrap_or_default();
        let described = format!("{described} Atomic: what it did is undone where it fails.");
        self.noted("atomic", "transactional".into())
            .description(described.trim_start())
    }

    /// Declares to clients of the action dialect for how long results are cached. For a custom
    /// executor that caches, as [`kept_tool`](crate::server::Builder::kept_tool) does.
    #[must_use]
    pub fn kept_for(self, ttl: Duration) -> Self {
        let ttl = ttl.as_millis() as u64;
        self.noted("cache", serde_json::json!({ "ttl_ms": ttl }))
    }

    /// Adds a member to the action notes, unless there is one with this name.
    fn noted(mut self, name: &str, note: Value) -> Self {
        let notes = serde_json::from_str(self.action.as_deref().unwrap_or("{}"));
        // Notes that are not an object are an error when the tool is registered.
        if let Ok(Value::Object(mut notes)) = notes {
            notes.entry(name).or_insert(note);
            self.action = Some(RawJson::new(Value::from(notes)));
        }
        self
    }

    /// Writes the entry of `mcp.get_schema`, without the name (R-ACT-10, R-ACT-12).
    #[cfg(feature = "server")]
    pub(crate) fn write_action(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::begin(out);
        object.string("description", self.description.as_deref().unwrap_or(""));
        object.raw("params_schema", Some(&self.input_schema));
        let output = self.output_schema.as_deref();
        object.raw("data_schema", Some(output.unwrap_or(ANY_OBJECT)));
        let notes = self.action.as_deref().unwrap_or("{}");
        if crate::json::reader::find(notes, "examples").is_none() {
            object.raw("examples", Some("[]"));
        }
        for (key, value) in crate::json::reader::members(notes) {
            object.raw(key.raw(), Some(value));
        }
        object.end();
    }

    #[cfg(feature = "server")]
    pub(crate) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let rules = revision.rules();
        let mut object = ObjectWriter::begin(out);
        object.string("name", &self.name);
        object.title(&self.title, rules);
        object.optional("description", self.description.as_deref());
        object.raw("inputSchema", Some(&self.input_schema));
        let schema = self
            .output_schema
            .as_deref()
            .filter(|_| rules.structured_content);
        object.raw(
            "outputSchema",
            schema.filter(|schema| rules.any_structured_content || is_object(schema)),
        );
        object.raw(
            "annotations",
            self.annotations.as_deref().filter(|_| rules.annotations),
        );
        if rules.tasks == Some(TaskForm::Core) && self.task_support != TaskSupport::Forbidden {
            let name = self.task_support.name();
            object.raw(
                "execution",
                Some(&format!("{{\"taskSupport\":\"{name}\"}}")),
            );
        }
        object.others(&self.other);
        object.end_with(&self.icons, &self.meta, rules);
    }
}

fn any_object() -> RawJson {
    RawJson::new(ANY_OBJECT)
}

/// The schema of a tool that takes any arguments, and of data without a schema.
const ANY_OBJECT: &str = "{\"type\":\"object\"}";

fn is_forbidden(support: &TaskSupport) -> bool {
    *support == TaskSupport::Forbidden
}

/// Reads and writes `{"taskSupport": …}`; an unknown word counts as `forbidden`.
mod execution {
    use super::*;

    pub fn serialize<S: Serializer>(support: &TaskSupport, to: S) -> Result<S::Ok, S::Error> {
        serde_json::json!({ "taskSupport": support.name() }).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TaskSupport, D::Error> {
        let execution = Value::deserialize(from)?;
        let name = execution["taskSupport"].as_str();
        Ok(name.and_then(TaskSupport::parse).unwrap_or_default())
    }
}

#[cfg(feature = "server")]
fn is_object(schema: &str) -> bool {
    crate::json::reader::find(schema, "type") == Some("\"object\"")
}
