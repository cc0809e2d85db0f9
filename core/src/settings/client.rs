//! A client's name, its opening and what it can be asked.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::parsed;
use crate::client::{Client, ClientBuilder};
use crate::connection::OpeningMode;
use crate::io::trace_to;
use crate::limits::Limits;
use crate::mcp::{Era, Profile, Revision, Revisions};
use crate::model::Root;

/// A client's name, its opening and what it can be asked. The handlers for questions are the caller's:
/// `sampling`, `sampling_tools`, `forms` and `pages` only say which of them it is to set.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientSettings<T> {
    /// The client's name.
    pub name: String,
    /// The client's version.
    pub version: String,
    /// How the connection opens: `probe`, `handshake`, `stateless` or `actions`. By default the handshake
    /// if `revision` has one, else `probe`.
    #[serde(default, deserialize_with = "opening")]
    pub opening: Option<OpeningMode>,
    /// The variant of the protocol to speak.
    #[serde(default, deserialize_with = "parsed")]
    pub profile: Option<Profile>,
    /// The only revision to speak; any by default.
    #[serde(default, deserialize_with = "parsed")]
    pub revision: Option<Revision>,
    /// How long a request may go without news.
    pub timeout: Option<T>,
    /// The file that all messages are traced to; `-` for stderr.
    pub trace: Option<PathBuf>,
    /// Whether there is a model.
    #[serde(default)]
    pub sampling: bool,
    /// Whether the model may use the server's tools.
    #[serde(default)]
    pub sampling_tools: bool,
    /// Whether there is a user who fills in forms.
    #[serde(default)]
    pub forms: bool,
    /// Whether there is a user who visits pages.
    #[serde(default)]
    pub pages: bool,
    /// The roots; the client declares none if absent.
    pub roots: Option<Vec<Root>>,
    /// Whether servers may turn calls into tasks.
    #[serde(default)]
    pub tasks: bool,
    /// Whether results are validated against the revision.
    #[serde(default)]
    pub check_results: bool,
    /// The settings of each extension.
    #[serde(default)]
    pub extensions: BTreeMap<String, Box<RawValue>>,
}

impl<T: Copy + Into<Duration>> ClientSettings<T> {
    /// A builder with these settings and without handlers.
    ///
    /// # Errors
    /// When the trace file cannot be opened.
    pub fn builder(&self) -> io::Result<ClientBuilder> {
        let mut builder = Client::builder(&self.name, &self.version).opening(self.opening());
        if let Some(profile) = self.profile.filter(|profile| *profile != Profile::Official) {
            builder = builder.profile(profile);
        }
        if let Some(revision) = self.revision {
            builder = builder.revisions(Revisions::only(revision));
        }
        if let Some(roots) = &self.roots {
            builder = builder.roots(roots.iter().cloned());
        }
        if self.tasks {
            builder = builder.tasks();
        }
        if self.check_results {
            builder = builder.check_results();
        }
        for (id, settings) in &self.extensions {
            builder = builder.extension(id, settings.get());
        }
        if let Some(timeout) = self.timeout {
            builder = builder.limits(Limits {
                request_timeout: timeout.into(),
                ..Limits::default()
            });
        }
        if let Some(path) = self.trace.as_deref() {
            builder = builder.trace(trace_to(path)?);
        }
        Ok(builder)
    }

    fn opening(&self) -> OpeningMode {
        match (self.opening, self.revision.map(Revision::era)) {
            (Some(opening), _) => opening,
            (None, Some(Era::Handshake)) => OpeningMode::Handshake,
            (None, _) => OpeningMode::default(),
        }
    }
}

pub(super) fn opening<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<OpeningMode>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    let Some(name) = name else { return Ok(None) };
    let opening = match name.as_str() {
        "actions" => Some(OpeningMode::Actions),
        name => OpeningMode::parse(name),
    };
    let known = &["probe", "handshake", "stateless", "actions"];
    let unknown = || serde::de::Error::unknown_variant(&name, known);
    opening.map(Some).ok_or_else(unknown)
}
