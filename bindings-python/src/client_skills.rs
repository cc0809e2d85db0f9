//! Skills of a server, as its client reads them.

use mcpbolt::client::SkillInfo;
use mcpbolt::error::RequestError;
use pyo3::prelude::*;
use serde::Serialize;

use crate::client::Link;
use crate::setup::wrong;
use crate::work::Made;

fn json(value: &impl Serialize) -> Result<Made, RequestError> {
    let shape = |_| RequestError::BadAnswer("a result of another shape");
    serde_json::to_string(value).map(Made::Json).map_err(shape)
}

/// `future` gets what the server says of its skills, as the others give it what they say.
#[pyfunction]
pub fn list_skills(link: &Link, future: Py<PyAny>) -> u64 {
    let client = link.client.clone();
    link.start(future, async move { json(&client.list_skills().await?) })
}

/// What it says of the skill whose manifest is there.
#[pyfunction]
pub fn get_skill(link: &Link, uri: String, future: Py<PyAny>) -> u64 {
    let client = link.client.clone();
    link.start(future, async move { json(&client.skill(&uri).await?) })
}

/// The bytes of a file of a skill, or the text of its manifest; `skill` is JSON.
#[pyfunction]
#[pyo3(signature = (link, skill, uri, future))]
pub fn read_skill(
    link: &Link,
    skill: &str,
    uri: Option<String>,
    future: Py<PyAny>,
) -> PyResult<u64> {
    let client = link.client.clone();
    let skill: SkillInfo = serde_json::from_str(skill).map_err(wrong)?;
    Ok(link.start(future, async move {
        match uri {
            Some(uri) => client.read_skill_file(&skill, &uri).await.map(Made::Bytes),
            None => json(&client.load_skill(&skill).await?),
        }
    }))
}

/// What lies in a folder of a skill.
#[pyfunction]
pub fn read_directory(link: &Link, uri: String, future: Py<PyAny>) -> u64 {
    let client = link.client.clone();
    link.start(
        future,
        async move { json(&client.read_directory(&uri).await?) },
    )
}
