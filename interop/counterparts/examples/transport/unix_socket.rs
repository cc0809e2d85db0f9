//! A server and a client on a Unix socket.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

#[cfg(unix)]
#[path = "calculator.rs"]
mod calculator;

#[cfg(unix)]
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    use calculator::calculator;
    use mcpbolt::client::Client;
    use mcpbolt::io::{Address, ConnectOptions};
    use serde_json::json;

    async fn client(address: &Address) -> anyhow::Result<()> {
        println!("Client connecting to {address}");
        let client = Client::builder("unix-socket", "1.0.0")
            .open(address, ConnectOptions::default())
            .await?;
        println!("Client connected and initialized successfully");

        // List available tools
        let tools = client.list_tools().await?;
        println!("Available tools: {tools:?}");

        // Call the sum tool
        if let Some(tool) = tools.iter().find(|tool| tool.name.contains("sum")) {
            println!("Calling sum tool: {}", tool.name);
            let numbers = json!({ "a": 10, "b": 20 });
            let result = client.call_tool(&tool.name, &numbers).await?;
            println!("Result: {result:?}");
        }
        Ok(())
    }

    let folder = std::env::temp_dir();
    let socket = format!("unix:{}/mcpbolt_example.sock", folder.display());
    let serving = calculator()?.serve(&socket).start()?;
    println!("Server successfully listening on {socket}");
    client(serving.address()).await
}

#[cfg(not(unix))]
fn main() {
    println!("Unix socket example is not supported on this platform.");
}
