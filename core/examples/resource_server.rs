//! A resource server of OAuth: notes, which some clients may read and fewer may write.
//!
//! `cargo run --example resource_server --features resource-server -- http://127.0.0.1:8000/mcp`
//!
//! The policy is read from the environment variable `MCP_POLICY`, if it is set: see `Policy::from_json`.

use mcpbolt::policy::{Policy, ResourceServer};
use mcpbolt::server::{Arguments, Prompt, Resource, ResourceContents, Server, Tool};

fn policy() -> Result<Policy, Box<dyn std::error::Error>> {
    if let Ok(json) = std::env::var("MCP_POLICY") {
        return Ok(Policy::from_json(&json)?);
    }
    let resource = ResourceServer::new("http://127.0.0.1:8000/mcp")
        .issuer("https://login.example")
        .scopes(["notes"])
        .build()?;
    Ok(Policy::new()
        .resource(resource)
        .scope("note.write", "notes:write"))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("notes", "1.0.0")
        .policy(policy()?)
        .tool(
            Tool::new("note.read"),
            |_: Arguments, context: mcpbolt::server::Context| async move {
                format!("read by {}", context.principal().unwrap_or("nobody"))
            },
        )
        .tool(Tool::new("note.write"), |_: Arguments, _| async {
            "written"
        })
        .tool(Tool::new("note.erase"), |_: Arguments, _| async {
            "erased"
        })
        .resource(
            Resource::new("note:///public/a", "a"),
            |uri, _| async move { Ok(ResourceContents::text(uri, "a note")) },
        )
        .resource(
            Resource::new("note:///secret/b", "b"),
            |uri, _| async move { Ok(ResourceContents::text(uri, "a secret")) },
        )
        .prompt(Prompt::new("summary"), |_, _| async {
            Ok("Summarize the notes.")
        })
        .build()?;
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("http://127.0.0.1:8000/mcp");
    let serving = server.serve(address).start()?;
    eprintln!("listening on {}", serving.address());
    serving.wait();
    Ok(())
}
