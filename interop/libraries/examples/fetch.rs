//! A tool that fetches a page by reqwest, at most a megabyte of it.

use mcpbolt::prelude::*;

const MOST: usize = 1 << 20;

/// Fetches the text at a URL.
#[tool(read_only, open_world)]
async fn fetch(client: State<reqwest::Client>, url: String) -> Result<String, HandlerError> {
    let mut response = client.get(url).send().await?.error_for_status()?;
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        body.extend_from_slice(&piece);
        if body.len() > MOST {
            return Err(HandlerError::new("the page is longer than a megabyte"));
        }
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    interop_libraries::use_ring();
    let client = reqwest::Client::new();
    let server = Server::builder("fetch", "1.0.0")
        .state(client)
        .with(handlers![fetch]);
    Ok(server.build()?.run()?)
}
