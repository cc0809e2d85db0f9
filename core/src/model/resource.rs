//! Resources and templates as their lists show them.

use serde::{Deserialize, Serialize};
use serde_json::Map;

#[cfg(feature = "server")]
use super::object_writer::ObjectWriter;
use super::{Other, RawJson};
#[cfg(feature = "server")]
use crate::json::number;
#[cfg(feature = "server")]
use crate::mcp::Revision;

/// A resource as `resources/list` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// The URI it is read at.
    pub uri: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Its audience and priority: a JSON object (`Annotations`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<RawJson>,
    /// Icons: a JSON array (`Icon`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<RawJson>,
    /// Its `_meta`: a JSON object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<RawJson>,
    /// All other members.
    #[serde(flatten)]
    pub other: Other,
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
            other: Map::new(),
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

    #[cfg(feature = "server")]
    pub(crate) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let rules = revision.rules();
        let mut object = ObjectWriter::begin(out);
        object.string("uri", &self.uri);
        object.string("name", &self.name);
        object.title(&self.title, rules);
        object.optional("description", self.description.as_deref());
        object.optional("mimeType", self.mime_type.as_deref());
        if let Some(size) = self.size {
            number::append(object.key("size"), size);
        }
        object.raw("annotations", self.annotations.as_deref());
        object.others(&self.other);
        object.end_with(&self.icons, &self.meta, rules);
    }
}

/// Resources with a URI template (RFC 6570), as `resources/templates/list` shows them. A
/// [`Resource`] whose URI is the template converts to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// The URI template.
    pub uri_template: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The MIME type of all its resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Their audience and priority: a JSON object (`Annotations`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<RawJson>,
    /// Icons: a JSON array (`Icon`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<RawJson>,
    /// Its `_meta`: a JSON object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<RawJson>,
    /// All other members.
    #[serde(flatten)]
    pub other: Other,
}

impl From<Resource> for ResourceTemplate {
    fn from(resource: Resource) -> Self {
        Self {
            uri_template: resource.uri,
            name: resource.name,
            title: resource.title,
            description: resource.description,
            mime_type: resource.mime_type,
            annotations: resource.annotations,
            icons: resource.icons,
            meta: resource.meta,
            other: resource.other,
        }
    }
}

impl ResourceTemplate {
    #[cfg(feature = "server")]
    pub(crate) fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        let rules = revision.rules();
        let mut object = ObjectWriter::begin(out);
        object.string("uriTemplate", &self.uri_template);
        object.string("name", &self.name);
        object.title(&self.title, rules);
        object.optional("description", self.description.as_deref());
        object.optional("mimeType", self.mime_type.as_deref());
        object.raw("annotations", self.annotations.as_deref());
        object.others(&self.other);
        object.end_with(&self.icons, &self.meta, rules);
    }
}
