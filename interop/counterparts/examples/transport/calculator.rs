//! The server of each transport.

#[path = "../shared/calculator.rs"]
mod tools;

use mcpbolt::server::Server;

pub fn calculator() -> anyhow::Result<Server> {
    let server = Server::builder("calculator", "1.0.0").instructions("A simple calculator");
    Ok(server.with(tools::Calculator).build()?)
}
