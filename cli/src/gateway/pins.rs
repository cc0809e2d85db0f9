//! The file of pins: what the tools of each server were when somebody looked at them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use mcpbolt::chain::{External, Front, tool_pin};
use mcpbolt::client::{Client, block_on};
use mcpbolt::connection::RequestOptions;
use mcpbolt::mcp::code::METHOD_NOT_FOUND;
use serde_json::value::RawValue;

/// The most pages of a list of tools.
const MAX_PAGES: usize = 1000;

/// Pins by server and tool.
pub type File = BTreeMap<String, BTreeMap<String, String>>;

/// Reads a file of pins.
pub fn read(file: &Path) -> Result<File> {
    let text = fs::read_to_string(file).with_context(|| {
        format!(
            "reading {}; `mcpbolt gateway --pin` writes it",
            file.display()
        )
    })?;
    serde_json::from_str(&text).with_context(|| format!("reading {}", file.display()))
}

/// Writes a file of pins, so that a reader finds the old ones or the new ones.
pub fn write(file: &Path, pins: &File) -> Result<()> {
    let mut text = serde_json::to_string_pretty(pins)?;
    text.push('\n');
    let mut new = file.as_os_str().to_owned();
    new.push(".new");
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, file))
        .with_context(|| format!("writing {}", file.display()))
}

/// The pins of a server as it is now.
pub fn take(external: External) -> Result<BTreeMap<String, String>> {
    let name = external.name().to_owned();
    block_on(of(&Front::new(external))).with_context(|| format!("asking {name:?} for its tools"))
}

async fn of(front: &Front) -> Result<BTreeMap<String, String>> {
    let client = Client::builder("mcpbolt", env!("CARGO_PKG_VERSION"));
    let client = client.connect_chain(front).await?;
    let (mut pins, mut params) = (BTreeMap::new(), "{}".to_owned());
    for _ in 0..MAX_PAGES {
        let page = client
            .handle()
            .request("tools/list", Some(&params), RequestOptions::default());
        let page = match page?.await {
            // The server has no tools.
            Err(error) if error.code() == Some(METHOD_NOT_FOUND) => return Ok(pins),
            page => page?,
        };
        let page: Page<'_> = serde_json::from_str(page.as_ref().result().unwrap_or("{}"))?;
        for tool in page.tools {
            let named: Named = serde_json::from_str(tool.get())?;
            pins.insert(named.name, tool_pin(tool.get()));
        }
        let Some(cursor) = page.next_cursor else {
            return Ok(pins);
        };
        params = serde_json::json!({"cursor": cursor}).to_string();
    }
    bail!("its list has more than {MAX_PAGES} pages")
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'p> {
    #[serde(borrow)]
    tools: Vec<&'p RawValue>,
    next_cursor: Option<String>,
}

#[derive(serde::Deserialize)]
struct Named {
    name: String,
}
