//! Resources and templates as their lists show them.

use super::ObjectWriter;
use crate::json::number;
use crate::mcp::Revision;

/// A resource as `resources/list` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// The URI it is read at.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// A display name.
    pub title: Option<String>,
    /// A description for the model.
    pub description: Option<String>,
    /// Its MIME type.
    pub mime_type: Option<String>,
    /// Its size in bytes; not shown for templates.
    pub size: Option<u64>,
    /// Its audience and priority: a JSON object (`Annotations`).
    pub annotations: Option<String>,
    /// Icons: a JSON array (`Icon`).
    pub icons: Option<String>,
    /// Its `_meta`: a JSON object.
    pub meta: Option<String>,
}

impl Resource {
    /// Creates a resource with this URI and name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        let (uri, name) = (uri.into(), name.into());
        Self {
            uri,
            name,
            title: None,
            description: None,
            mime_type: None,
            size: None,
            annotations: None,
            icons: None,
            meta: None,
        }
    }

    /// Sets the description for the model.
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

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, text: impl Into<String>) -> Self {
        self.title = Some(text.into());
        self
    }

    /// Sets its size in bytes.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// Sets its audience and priority: a JSON object (`Annotations`).
    #[must_use]
    pub fn annotations(mut self, json: impl ToString) -> Self {
        self.annotations = Some(json.to_string());
        self
    }

    /// Sets the icons: a JSON array (`Icon`).
    #[must_use]
    pub fn icons(mut self, json: impl ToString) -> Self {
        self.icons = Some(json.to_string());
        self
    }

    /// Sets its `_meta`: a JSON object.
    #[must_use]
    pub fn meta(mut self, json: impl ToString) -> Self {
        self.meta = Some(json.to_string());
        self
    }

    /// `key` is `uri`, or `uriTemplate` for a template.
    pub(in crate::server) fn write(&self, out: &mut Vec<u8>, revision: Revision, key: &str) {
        let rules = revision.rules();
        let mut object = ObjectWriter::begin(out);
        object.string(key, &self.uri);
        object.string("name", &self.name);
        object.title(&self.title, rules);
        object.optional("description", self.description.as_deref());
        object.optional("mimeType", self.mime_type.as_deref());
        if let Some(size) = self.size.filter(|_| key == "uri") {
            number::append(object.key("size"), size);
        }
        object.raw("annotations", self.annotations.as_deref());
        object.end_with(&self.icons, &self.meta, rules);
    }
}
