//! The commands `inspect` and `call`, and their output.

use anyhow::{Context, Result};
use mcpbolt::client::{Client, block_on};
use mcpbolt::error::RequestError;
use serde_json::{Value, json};

use crate::session::{Session, Start};
use crate::shown;

/// Prints a server's name, version and everything it offers.
pub fn inspect(start: &Start, as_json: bool) -> Result<u8> {
    let session = Session::open(start)?;
    let offer = block_on(offer(&session.client))?;
    session.close()?;
    if as_json {
        shown::print(&shown::json(&format!("{offer:#}\n")))?;
    } else {
        shown::print(&overview(&offer))?;
    }
    Ok(0)
}

/// Calls a tool and prints its text. If the tool fails, the command fails.
pub fn call(start: &Start, tool: &str, arguments: &str, as_json: bool) -> Result<u8> {
    let arguments: Value = serde_json::from_str(arguments).context("the arguments are not JSON")?;
    let session = Session::open(start)?;
    let result = session.client.call_tool(tool, &arguments).wait()?;
    session.close()?;
    if as_json {
        let result = serde_json::to_value(&result)?;
        shown::print(&shown::json(&format!("{result:#}\n")))?;
    } else {
        shown::print(&shown::lines(&format!("{}\n", result.text())))?;
    }
    Ok(u8::from(result.is_error))
}

/// Everything that a server offers, as JSON.
async fn offer(client: &Client) -> Result<Value, RequestError> {
    Ok(json!({
        "revision": client.revision().map(|revision| revision.name()),
        "server": client.server_info(),
        "instructions": client.instructions(),
        "capabilities": client.capabilities(),
        "tools": offered(client.list_tools().await)?,
        "resources": offered(client.list_resources().await)?,
        "resourceTemplates": offered(client.list_resource_templates().await)?,
        "prompts": offered(client.list_prompts().await)?,
    }))
}

/// Treats an unsupported list as an empty one.
fn offered<T: serde::Serialize>(list: Result<Vec<T>, RequestError>) -> Result<Value, RequestError> {
    match list {
        Ok(items) => Ok(json!(items)),
        Err(RequestError::Unsupported(_)) => Ok(json!([])),
        Err(error) => Err(error),
    }
}

/// The offer as text: a line for the server, then one for each item.
fn overview(offer: &Value) -> String {
    let server = &offer["server"];
    let mut text = format!(
        "{} {}, revision {}\n",
        word(&server["name"]),
        word(&server["version"]),
        word(&offer["revision"])
    );
    for (kind, key) in [
        ("tools", "name"),
        ("resources", "uri"),
        ("resourceTemplates", "uriTemplate"),
        ("prompts", "name"),
    ] {
        let items = offer[kind].as_array().map_or(&[][..], Vec::as_slice);
        if items.is_empty() {
            continue;
        }
        text += &format!("\n{kind}\n");
        for item in items {
            let about = word(&item["description"]);
            text += format!("  {:<24} {about}", word(&item[key])).trim_end();
            text.push('\n');
        }
    }
    text
}

fn word(value: &Value) -> String {
    shown::line(value.as_str().unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overview_names_what_there_is_and_leaves_out_what_there_is_not() {
        let offer = json!({
            "revision": "2026-07-28",
            "server": {"name": "calculator", "version": "1.0.0"},
            "tools": [{"name": "add", "description": "Adds."}, {"name": "noop"}],
            "resources": [], "resourceTemplates": [], "prompts": [],
        });
        let want = "calculator 1.0.0, revision 2026-07-28\n\ntools\n  add                      Adds.\n  noop\n";
        assert_eq!(overview(&offer), want);
    }
}
