//! Skills: offered by a server, read by a client.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpbolt::client::SkillInfo;
use mcpbolt::error::RequestError;
use mcpbolt::server::Skill;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use serde::Serialize;

use crate::error::{Result, error};
use crate::link::Link;
use crate::offer::Offer;

/// A file of a skill; its path is relative to the skill.
#[napi(object)]
pub struct SkillFile {
    pub path: String,
    pub mime_type: String,
    pub bytes: Uint8Array,
}

#[napi]
impl Offer {
    /// Adds a skill: its manifest, its parent folder, and its other files.
    #[napi(catch_unwind)]
    pub fn skill(&mut self, manifest: String, within: String, files: Vec<SkillFile>) -> Result<()> {
        let skill = Skill::new(&manifest).map_err(|why| error("ERR_MCP_MISUSE", why))?;
        let skill = match &*within {
            "" => skill,
            within => skill.within(within),
        };
        let add = |skill: Skill, file: SkillFile| {
            skill.file(file.path, file.mime_type, file.bytes.to_vec())
        };
        let skill = files.into_iter().fold(skill, add);
        self.change(|registry, _| registry.add_skill(skill))
    }
}

#[napi]
impl Link {
    /// Lists the skills of the server. Returns the number under which the answer will come, like the
    /// functions below.
    #[napi(catch_unwind)]
    pub fn list_skills(&mut self) -> Result<u32> {
        let client = self.client()?.clone();
        Ok(self.wait(|_| Box::pin(async move { write(&client.list_skills().await?) })))
    }

    /// Fetches the skill whose manifest is at that URI.
    #[napi(catch_unwind)]
    pub fn skill(&mut self, uri: String) -> Result<u32> {
        let client = self.client()?.clone();
        Ok(self.wait(|_| Box::pin(async move { write(&client.skill(&uri).await?) })))
    }

    /// Reads the manifest of a skill, which is passed as it was listed.
    #[napi(catch_unwind)]
    pub fn load_skill(&mut self, skill: String) -> Result<u32> {
        let (client, skill) = (self.client()?.clone(), read(&skill)?);
        Ok(self.wait(|_| Box::pin(async move { write(&client.load_skill(&skill).await?) })))
    }

    /// Reads a file of a skill; the answer is base64.
    #[napi(catch_unwind)]
    pub fn read_skill_file(&mut self, skill: String, uri: String) -> Result<u32> {
        let (client, skill) = (self.client()?.clone(), read(&skill)?);
        Ok(self.wait(|_| {
            Box::pin(async move {
                let bytes = client.read_skill_file(&skill, &uri).await?;
                write(&STANDARD.encode(bytes))
            })
        }))
    }

    /// Lists the contents of a folder of a skill.
    #[napi(catch_unwind)]
    pub fn read_folder(&mut self, uri: String) -> Result<u32> {
        let client = self.client()?.clone();
        Ok(self.wait(|_| Box::pin(async move { write(&client.read_directory(&uri).await?) })))
    }
}

fn read(skill: &str) -> Result<SkillInfo> {
    serde_json::from_str(skill).map_err(|_| error("ERR_MCP_MISUSE", "this is no skill"))
}

fn write(value: &impl Serialize) -> std::result::Result<String, RequestError> {
    let shape = RequestError::BadAnswer("a result of another shape");
    serde_json::to_string(value).map_err(|_| shape)
}
