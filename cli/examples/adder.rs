//! A small server to try the command with: `mcpbolt inspect -- target/debug/examples/adder`.

use mcpbolt::server::{Server, Tool, schemars, serde};

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(crate = "mcpbolt::server::serde")]
#[schemars(crate = "mcpbolt::server::schemars")]
struct Pair {
    a: i64,
    b: i64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("calculator", "1.0.0")
        .tool(
            Tool::new("add").description("Adds two numbers."),
            |pair: Pair, _| async move { (pair.a + pair.b).to_string() },
        )
        .build()?;
    Ok(server.run()?)
}
