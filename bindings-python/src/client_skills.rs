//! A client's access to the skills of a server.

use mcpbolt::client::SkillInfo;
use mcpbolt::error::RequestError;
use pyo3::prelude::*;
use serde::Serialize;

use crate::client::Link;
use crate::operation::Outcome;
use crate::settings::wrong;

fn json(value: &impl Serialize) -> Result<Outcome, RequestError> {
    let shape = |_| RequestError::BadAnswer("a result of another shape");
    serde_json::to_string(value)
        .map(Outcome::Json)
        .map_err(shape)
}

/// Lists the server's skills. Here and in the functions below, `future` gets the outcome.
#[pyfunction]
pub fn list_skills(link: &Link, future: Py<PyAny>) -> u64 {
    let client = link.client.clone();
    link.start(future, async move { json(&client.list_skills().await?) })
}

/// Gets the description of the skill whose manifest is at that URI.
#[pyfunction]
pub fn get_skill(link: &Link, uri: String, future: Py<PyAny>) -> u64 {
    let client = link.client.clone();
    link.start(future, async move { json(&client.skill(&uri).await?) })
}

/// Reads a file of a skill as bytes, or, without a URI, its manifest as text; `skill` is JSON.
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
            Some(uri) => client
                .read_skill_file(&skill, &uri)
                .await
                .map(Outcome::Bytes),
            None => json(&client.load_skill(&skill).await?),
        }
    }))
}

/// Lists the direct contents of a folder of a skill.
#[pyfunction]
pub fn read_directory(link: &Link, uri: String, future: Py<PyAny>) -> u64 {
    let client = link.client.clone();
    link.start(
        future,
        async move { json(&client.read_directory(&uri).await?) },
    )
}
