//! The list of tools, with all its pages.

use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

use super::failure::Failure;
use super::link::Link;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Name>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

/// Requests of the list. Each must have the names that the first one had.
#[derive(Debug, Default)]
pub struct Lists {
    names: OnceLock<Vec<String>>,
}

impl Lists {
    pub async fn one(&self, link: &Link<'_>) -> Result<(), Failure> {
        let names = names(link).await?;
        match *self.names.get_or_init(|| names.clone()) == names {
            true => Ok(()),
            false => Err(Failure::wrong(
                "the list has other tools than the first one had",
            )),
        }
    }
}

/// The names of all tools.
pub async fn names(link: &Link<'_>) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    let mut params = None;
    loop {
        let answer = link.ask("tools/list", params.as_deref()).await?;
        let result = answer.as_ref().result().unwrap_or_default();
        let page: Page = serde_json::from_str(result)
            .map_err(|error| Failure::wrong(format!("the result is not a page: {error}")))?;
        names.extend(page.tools.into_iter().map(|tool| tool.name));
        match page.next_cursor {
            Some(cursor) => params = Some(format!("{{\"cursor\":{}}}", Value::from(cursor))),
            None => return Ok(names),
        }
    }
}
