//! Skills: what a server offers of them, and what a client reads.

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

/// A file of a skill, by its path there.
#[napi(object)]
pub struct SkillFile {
    pub path: String,
    pub mime_type: String,
    pub bytes: Uint8Array,
}

#[napi]
impl Offer {
    /// Adds a skill: its manifest, the folder that it lies in, its other files.
    #[napi]
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
    /// The skills of the server. Gives the number under which the answer will come, as the others
    /// do.
    #[napi]
    pub fn list_skills(&mut self) -> Result<u32> {
        let client = self.client()?.clone();
        Ok(self.wait(|_| Box::pin(async move { write(&client.list_skills().await?) })))
    }

    /// The skill whose manifest is at that URI.
    #[napi]
    pub fn skill(&mut self, uri: String) -> Result<u32> {
        let client = self.client()?.clone();
        Ok(self.wait(|_| Box::pin(async move { write(&client.skill(&uri).await?) })))
    }

    /// Reads the manifest of a skill, given as it was listed.
    #[napi]
    pub fn load_skill(&mut self, skill: String) -> Result<u32> {
        let (client, skill) = (self.client()?.clone(), read(&skill)?);
        Ok(self.wait(|_| Box::pin(async move { write(&client.load_skill(&skill).await?) })))
    }

    /// Reads a file of a skill: base64.
    #[napi]
    pub fn read_skill_file(&mut self, skill: String, uri: String) -> Result<u32> {
        let (client, skill) = (self.client()?.clone(), read(&skill)?);
        Ok(self.wait(|_| {
            Box::pin(async move {
                let bytes = client.read_skill_file(&skill, &uri).await?;
                write(&STANDARD.encode(bytes))
            })
        }))
    }

    /// What lies in a folder of a skill.
    #[napi]
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
