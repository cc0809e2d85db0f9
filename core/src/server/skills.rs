//! Skills that a server offers: folders of instructions for models, served from memory.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::digest::sha256;
use crate::mcp::skill::{MANIFEST, folder, frontmatter, is_name};
use crate::model::Resource;

/// Maximum number of files in a skill.
const MAX_FILES: usize = 512;
/// Maximum size of a skill in bytes.
const MAX_BYTES: usize = 16 << 20;

/// A skill: a manifest, `SKILL.md`, and the files it refers to.
///
/// ```
/// use mcpbolt::server::{Server, Skill};
///
/// let manifest = "---\nname: pdf\ndescription: Fills in forms\n---\nRead FORMS.md first.\n";
/// let skill = Skill::new(manifest)?.file("references/FORMS.md", "text/markdown", "Forms …");
/// let server = Server::builder("office", "1.0.0").skill(skill).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Skill {
    name: String,
    frontmatter: Map<String, Value>,
    parent: String,
    /// Files by path within the skill.
    files: BTreeMap<String, File>,
}

/// Why a skill is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSkill(&'static str);

impl std::fmt::Display for InvalidSkill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidSkill {}

#[derive(Clone, Debug)]
pub(super) struct File {
    pub mime_type: String,
    pub bytes: Vec<u8>,
}

impl Skill {
    /// Creates a skill from its manifest: Markdown after YAML frontmatter with at least a `name`
    /// and a `description`.
    ///
    /// # Errors
    /// When there is no such frontmatter, or the name is not 1 to 64 lower-case letters, digits and
    /// single hyphens.
    pub fn new(manifest: &str) -> Result<Self, InvalidSkill> {
        let found = frontmatter(manifest);
        let frontmatter = found.ok_or(InvalidSkill("a manifest begins with frontmatter"))?;
        let text = |name| frontmatter.get(name).and_then(Value::as_str);
        let name = text("name").filter(|name| is_name(name));
        let name = name.ok_or(InvalidSkill(
            "a skill's name is small letters, digits and hyphens",
        ))?;
        if text("description").is_none_or(str::is_empty) {
            return Err(InvalidSkill("a skill has a description"));
        }
        Ok(Self {
            name: name.to_owned(),
            parent: "skill://".to_owned(),
            frontmatter: frontmatter.clone(),
            files: BTreeMap::from([(
                MANIFEST.to_owned(),
                File {
                    mime_type: "text/markdown".to_owned(),
                    bytes: manifest.into(),
                },
            )]),
        })
    }

    /// Adds a file at a path within the skill. UTF-8 contents with a text MIME type are served as
    /// text.
    #[must_use]
    pub fn file(
        mut self,
        path: impl Into<String>,
        mime_type: impl Into<String>,
        contents: impl Into<Vec<u8>>,
    ) -> Self {
        let file = File {
            mime_type: mime_type.into(),
            bytes: contents.into(),
        };
        self.files.insert(path.into(), file);
        self
    }

    /// Puts the skill into a folder, for example `team`, which becomes part of its URI.
    #[must_use]
    pub fn within(mut self, parent: &str) -> Self {
        self.parent = format!("skill://{}/", parent.trim_matches('/'));
        self
    }

    fn root(&self) -> String {
        format!("{}{}", self.parent, self.name)
    }

    /// The URI of the manifest.
    pub fn uri(&self) -> String {
        format!("{}/{MANIFEST}", self.root())
    }

    fn fault(&self) -> Option<&'static str> {
        let is_path = |path: &String| {
            let step = |step: &str| !matches!(step, "" | "." | "..");
            path.split('/').all(step) && !path.contains(['\\', '?', '#'])
        };
        let bytes: usize = self.files.values().map(|file| file.bytes.len()).sum();
        match () {
            () if !self.files.keys().all(is_path) => Some("a file's path leads out of its skill"),
            () if self.files.len() > MAX_FILES || bytes > MAX_BYTES => Some("a skill is too large"),
            () => None,
        }
    }

    fn entry(&self) -> String {
        let root = self.root();
        let file = |(path, file): (&String, &File)| {
            json!({
                "uri": format!("{root}/{path}"),
                "digest": sha256(&file.bytes),
                "size": file.bytes.len(),
            })
        };
        let resources: Vec<_> = self.files.iter().map(file).collect();
        json!({
            "uri": self.uri(),
            "frontmatter": self.frontmatter,
            "resources": resources,
        })
        .to_string()
    }
}

/// The skills of one server.
#[derive(Clone, Debug, Default)]
pub(super) struct Skills {
    /// The encoded entry of each skill and its manifest as a resource, by the manifest's URI.
    entries: BTreeMap<String, (String, Resource)>,
    files: BTreeMap<String, File>,
}

impl Skills {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a skill.
    ///
    /// # Errors
    /// When a skill with this URI exists, it is too large, or a file path leads out of it.
    pub fn add(&mut self, skill: Skill) -> Result<(), InvalidSkill> {
        let uri = skill.uri();
        if let Some(fault) = skill.fault() {
            return Err(InvalidSkill(fault));
        }
        if self.entries.contains_key(&uri) {
            return Err(InvalidSkill("there is a skill of that name"));
        }
        let description = skill.frontmatter.get("description").and_then(Value::as_str);
        let manifest = Resource::new(&uri, &skill.name)
            .description(description.unwrap_or_default())
            .mime_type("text/markdown");
        self.entries.insert(uri, (skill.entry(), manifest));
        let root = skill.root();
        let files = skill.files.into_iter();
        self.files
            .extend(files.map(|(path, file)| (format!("{root}/{path}"), file)));
        Ok(())
    }

    /// The encoded entry of the skill whose manifest is at this URI.
    pub fn entry(&self, uri: &str) -> Option<&str> {
        self.entries.get(uri).map(|(entry, _)| entry.as_str())
    }

    /// The encoded entries, one per skill.
    pub fn entries(&self) -> Vec<&str> {
        self.entries
            .values()
            .map(|(entry, _)| entry.as_str())
            .collect()
    }

    /// The manifests, as resources.
    pub fn manifests(&self) -> impl Iterator<Item = &Resource> {
        self.entries.values().map(|(_, manifest)| manifest)
    }

    /// Returns the file at this URI.
    pub fn file(&self, uri: &str) -> Option<&File> {
        self.files.get(uri)
    }

    /// Returns the direct children of a folder by name: a file, or `None` for a folder. `None` when
    /// `uri` is not a folder.
    pub fn children(&self, uri: &str) -> Option<BTreeMap<&str, Option<&File>>> {
        let begin = format!("{}/", uri.trim_end_matches('/'));
        let mut children = BTreeMap::new();
        for (uri, file) in self.files.range(begin.clone()..) {
            let Some(path) = uri.strip_prefix(&begin) else {
                break;
            };
            match path.split_once('/') {
                Some((name, _)) => drop(children.insert(name, None)),
                None => drop(children.insert(path, Some(file))),
            }
        }
        let is_within = |root: &str| {
            let rest = begin.strip_prefix(root);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let is_skill = self
            .entries
            .keys()
            .filter_map(|uri| folder(uri))
            .any(is_within);
        (is_skill && !children.is_empty()).then_some(children)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_are_bounded_in_files_and_bytes() {
        let manifest = "---\nname: a\ndescription: b\n---\n";
        let fault = |files: usize, bytes: usize| {
            // The manifest is a file, too, and has bytes.
            let text = |n: usize| vec![b'x'; if n == 0 { bytes - manifest.len() } else { 0 }];
            let skill = (0..files - 1).fold(Skill::new(manifest).unwrap(), |skill, n| {
                skill.file(format!("{n}.txt"), "text/plain", text(n))
            });
            Skills::default().add(skill).err().map(|error| error.0)
        };
        assert_eq!(fault(MAX_FILES, MAX_BYTES), None);
        assert_eq!(fault(MAX_FILES + 1, 100), Some("a skill is too large"));
        assert_eq!(fault(2, MAX_BYTES + 1), Some("a skill is too large"));
    }
}
