//! What a server offers: tools, resources, templates and prompts, as the lists show them.

use crate::json::string;
use crate::mcp::Revision;

/// A tool as `tools/list` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name it is called by. Unique; 1 to 128 of `A-Z a-z 0-9 _ - .` (R-NAM-01).
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: Option<String>,
    /// JSON Schema of its arguments: a JSON object with `"type":"object"`.
    pub input_schema: String,
    /// JSON Schema of its structured content.
    pub output_schema: Option<String>,
    /// Hints on its behaviour: a JSON object (`ToolAnnotations`).
    pub annotations: Option<String>,
    /// Icons: a JSON array.
    pub icons: Option<String>,
}

impl Tool {
    /// A tool that takes any object.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema: "{\"type\":\"object\"}".into(),
            output_schema: None,
            annotations: None,
            icons: None,
        }
    }

    /// Sets what it does, for the model.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Sets a name for people.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.title = Some(text.into());
        self
    }

    /// Sets the JSON Schema of its arguments.
    #[must_use]
    pub fn input_schema(mut self, json: impl ToString) -> Self {
        self.input_schema = json.to_string();
        self
    }

    /// Sets the JSON Schema of its structured content.
    #[must_use]
    pub fn output_schema(mut self, json: impl ToString) -> Self {
        self.output_schema = Some(json.to_string());
        self
    }

    /// Sets hints on its behaviour.
    #[must_use]
    pub fn annotations(mut self, json: impl ToString) -> Self {
        self.annotations = Some(json.to_string());
        self
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let rules = revision.rules();
        let mut object = ObjectWriter::begin(out);
        object.string("name", &self.name);
        object.optional(
            "title",
            self.title.as_deref().filter(|_| rules.structured_content),
        );
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
        object.raw("icons", self.icons.as_deref().filter(|_| rules.icons));
        object.end();
    }
}

fn is_object(schema: &str) -> bool {
    crate::json::reader::find(schema, "type") == Some("\"object\"")
}

/// A resource as `resources/list` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Where it is read.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is, for the model.
    pub description: Option<String>,
    /// Its MIME type.
    pub mime_type: Option<String>,
}

impl Resource {
    /// A resource of that URI and name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        let (uri, name) = (uri.into(), name.into());
        Self {
            uri,
            name,
            title: None,
            description: None,
            mime_type: None,
        }
    }

    /// Sets what it is, for the model.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Sets its MIME type.
    #[must_use]
    pub fn mime_type(mut self, text: impl Into<String>) -> Self {
        self.mime_type = Some(text.into());
        self
    }

    /// `key` is `uri`, or `uriTemplate` for a template.
    pub(super) fn write(&self, out: &mut Vec<u8>, revision: Revision, key: &str) {
        let mut object = ObjectWriter::begin(out);
        object.string(key, &self.uri);
        object.string("name", &self.name);
        object.optional(
            "title",
            self.title
                .as_deref()
                .filter(|_| revision.rules().structured_content),
        );
        object.optional("description", self.description.as_deref());
        object.optional("mimeType", self.mime_type.as_deref());
        object.end();
    }
}

/// A prompt as `prompts/list` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// The name it is got by. Unique.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// What it takes.
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt; its values are strings (R-PRM-02).
#[derive(Clone, Debug, PartialEq)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// Whether the prompt needs it.
    pub required: bool,
}

impl Prompt {
    /// A prompt without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            arguments: Vec::new(),
        }
    }

    /// Sets what it is for.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        required: bool,
    ) -> Self {
        let description = Some(description.into());
        self.arguments.push(PromptArgument {
            name: name.into(),
            description,
            required,
        });
        self
    }

    pub(super) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let mut object = ObjectWriter::begin(out);
        object.string("name", &self.name);
        object.optional(
            "title",
            self.title
                .as_deref()
                .filter(|_| revision.rules().structured_content),
        );
        object.optional("description", self.description.as_deref());
        if !self.arguments.is_empty() {
            object.key("arguments").push(b'[');
            for (i, argument) in self.arguments.iter().enumerate() {
                if i > 0 {
                    object.out.push(b',');
                }
                let mut member = ObjectWriter::begin(object.out);
                member.string("name", &argument.name);
                member.optional("description", argument.description.as_deref());
                if argument.required {
                    member.raw("required", Some("true"));
                }
                member.end();
            }
            object.out.push(b']');
        }
        object.end();
    }
}

/// Writes one JSON object, member by member.
pub(super) struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> ObjectWriter<'a> {
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Writes a key; its value is to be appended to what this gives. Keys need no escaping.
    pub fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.empty) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    pub fn string(&mut self, key: &str, value: &str) {
        string::append(self.key(key), value);
    }

    pub fn optional(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.string(key, value);
        }
    }

    pub fn raw(&mut self, key: &str, json: Option<&str>) {
        if let Some(json) = json {
            crate::json::writer::append_compact(self.key(key), json);
        }
    }

    pub fn end(self) {
        self.out.push(b'}');
    }
}
