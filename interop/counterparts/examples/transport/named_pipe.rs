//! A server and a client on a named pipe of Windows.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

#[cfg(windows)]
#[path = "calculator.rs"]
mod calculator;

#[cfg(windows)]
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    use calculator::calculator;
    use mcpbolt::client::Client;
    use serde_json::json;
    use tokio::net::windows::named_pipe::{ClientOptions, ServerOptions};

    const PIPE_NAME: &str = r"\\.\pipe\mcpbolt_example";

    async fn server(name: &str) -> anyhow::Result<()> {
        let server = calculator()?;
        let mut pipe = ServerOptions::new()
            .first_pipe_instance(true)
            .create(name)?;
        while pipe.connect().await.is_ok() {
            let served = server.serve_on(pipe);
            pipe = ServerOptions::new().create(name)?;
            tokio::spawn(async move {
                if let Err(error) = served.await {
                    println!("Error while serving: {error}");
                }
            });
        }
        Ok(())
    }

    async fn client() -> anyhow::Result<()> {
        println!("Client connecting to {PIPE_NAME}");
        let stream = ClientOptions::new().open(PIPE_NAME)?;
        let client = Client::builder("named-pipe", "1.0.0")
            .connect_on(stream)
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

    tokio::spawn(server(PIPE_NAME));
    for _ in 0..100 {
        client().await?;
    }
    Ok(())
}

#[cfg(not(windows))]
fn main() {
    println!("Named pipe example is not supported on this platform.");
}
