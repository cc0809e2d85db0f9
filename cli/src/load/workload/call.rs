//! Calls of any tool, with arguments and an expected text.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::answer;
use super::failure::Failure;
use super::link::Link;
use super::template::Template;

/// Calls of one tool.
#[derive(Debug)]
pub struct Calls {
    tool: Arc<str>,
    /// The params, without the arguments and what follows them.
    head: String,
    arguments: Template,
    expected: Option<Template>,
}

impl Calls {
    pub fn new(tool: &str, arguments: &str, expected: Option<&str>) -> Result<Self> {
        let arguments = Template::new(arguments);
        let first: Value =
            serde_json::from_str(&arguments.of(0)).context("--arguments is not JSON")?;
        ensure!(first.is_object(), "--arguments must be a JSON object");
        Ok(Self {
            head: head(tool),
            tool: tool.into(),
            arguments,
            expected: expected.map(Template::new),
        })
    }

    pub fn tool(&self) -> &str {
        &self.tool
    }

    pub async fn one(&self, link: &Link<'_>, number: u64) -> Result<(), Failure> {
        let params = format!("{}{}}}", self.head, self.arguments.of(number));
        let answer = link.ask("tools/call", Some(&params)).await?;
        let text = answer::text(&answer)?;
        match &self.expected {
            Some(expected) => answer::expect(&text, &expected.of(number)),
            None => Ok(()),
        }
    }
}

/// The begin of the params of a call; its arguments and a brace follow.
pub fn head(tool: &str) -> String {
    let tool = Value::from(tool);
    format!("{{\"name\":{tool},\"arguments\":")
}
