//! Skills that a server offers. Files are read only on request, and files that do not match the
//! skill's entry are refused.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::client::Client;
use super::core::{member, parse};
use super::pages::{self, Pages, all_items};
use crate::digest::sha256;
use crate::error::RequestError;
use crate::mcp::skill::{folder, frontmatter};
use crate::mcp::{Method, extension};
use crate::model::{Resource, ResourceBody};

/// A skill as the server lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkillInfo {
    /// The URI of its manifest.
    pub uri: String,
    /// The frontmatter of the manifest: at least `name` and `description`.
    pub frontmatter: Map<String, Value>,
    /// Its files.
    pub resources: SkillFiles,
}

/// The files of a skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SkillFiles {
    /// All of them.
    Listed(Vec<SkillFile>),
    /// The string `dynamic`: the files are not known in advance, and so cannot be verified.
    Dynamic(String),
}

/// One file of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillFile {
    /// The URI of the file.
    pub uri: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
}

impl Client {
    /// Lists the server's skills, all pages. Reads none of their files.
    ///
    /// ```no_run
    /// # async fn example(client: mcpbolt::client::Client) -> Result<(), mcpbolt::error::RequestError> {
    /// for skill in client.list_skills().await? {
    ///     println!("{}", skill.frontmatter["description"]);
    ///     // Only when the model is to use it:
    ///     let manifest = client.load_skill(&skill).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the server does not declare the extension; else as [`list_tools`](Self::list_tools).
    pub async fn list_skills(&self) -> Result<Vec<SkillInfo>, RequestError> {
        self.offers_skills(&[])?;
        Pages::new(&self.core, pages::SKILLS).all().await
    }

    /// Fetches the entry of the skill whose manifest has this URI.
    ///
    /// # Errors
    /// As [`list_skills`](Self::list_skills).
    pub async fn skill(&self, uri: &str) -> Result<SkillInfo, RequestError> {
        self.offers_skills(&[])?;
        let params = serde_json::json!({ "uri": uri }).to_string();
        let answer = self.core.ask(Method::GetSkill, Some(&params)).await?;
        member(&answer, "skill")
    }

    /// Reads the manifest of a skill.
    ///
    /// # Errors
    /// When the manifest's length, digest or frontmatter differs from the skill's entry; else as
    /// [`read_resource`](Self::read_resource).
    pub async fn load_skill(&self, skill: &SkillInfo) -> Result<String, RequestError> {
        let bytes = self.read_skill_file(skill, &skill.uri).await?;
        let text = String::from_utf8(bytes).ok();
        let text = text.ok_or(RequestError::BadAnswer("a manifest that is not text"))?;
        match frontmatter(&text) {
            Some(own) if own == skill.frontmatter => Ok(text),
            _ => Err(RequestError::BadAnswer(
                "the manifest's frontmatter is not that of the skill's entry",
            )),
        }
    }

    /// Reads a file of a skill.
    ///
    /// # Errors
    /// When the skill's entry does not list the file, or the file's length or digest differs from
    /// the entry; else as [`read_resource`](Self::read_resource).
    pub async fn read_skill_file(
        &self,
        skill: &SkillInfo,
        uri: &str,
    ) -> Result<Vec<u8>, RequestError> {
        let root = folder(&skill.uri).ok_or(RequestError::BadAnswer("a skill without a folder"))?;
        let is_within = uri
            .strip_prefix(root)
            .is_some_and(|path| path.starts_with('/'));
        let listed = match &skill.resources {
            SkillFiles::Listed(files) => {
                let file = files.iter().find(|file| file.uri == uri);
                Some(file.ok_or(RequestError::Misuse("the skill has no such file"))?)
            }
            SkillFiles::Dynamic(_) if is_within => None,
            SkillFiles::Dynamic(_) => {
                return Err(RequestError::Misuse("the skill has no such file"));
            }
        };
        let contents = self.read_resource(uri).await?;
        let found = contents.into_iter().find(|contents| contents.uri == uri);
        let found = found.ok_or(RequestError::BadAnswer("another file than was asked for"))?;
        let bytes = match found.body {
            ResourceBody::Text(text) => text.into_bytes(),
            ResourceBody::Blob(bytes) => bytes
                .decode()
                .ok_or(RequestError::BadAnswer("a file that is not in base64"))?,
        };
        match listed {
            Some(file) if file.size != bytes.len() as u64 => Err(RequestError::BadAnswer(
                "the file is not as long as the skill's entry says",
            )),
            Some(file) if file.digest != sha256(&bytes) => Err(RequestError::BadAnswer(
                "the file has another digest than the skill's entry says",
            )),
            _ => Ok(bytes),
        }
    }

    /// Lists the direct children of a folder of a skill: files, and folders, which have the MIME
    /// type `inode/directory`.
    ///
    /// # Errors
    /// When the server does not declare `directoryRead`; else as
    /// [`list_skills`](Self::list_skills).
    pub async fn read_directory(&self, uri: &str) -> Result<Vec<Resource>, RequestError> {
        self.offers_skills(&["directoryRead"])?;
        let uri = format!("\"uri\":{}", Value::from(uri));
        let list = (Method::ReadDirectory, "resources");
        let children = all_items(&self.core, list, &uri).await?;
        children.iter().map(|child| parse(child)).collect()
    }

    fn offers_skills(&self, path: &[&str]) -> Result<(), RequestError> {
        self.core
            .require_method(Method::ListSkills, extension::SKILLS)?;
        let path = [&["extensions", extension::SKILLS], path].concat();
        self.core.require_at(&path, extension::SKILLS)
    }
}
