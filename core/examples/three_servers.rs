//! One client of several servers: lists the tools of all, and calls one by its name.
//! `cargo run --example three_servers -- SERVER SERVER SERVER TOOL ARGUMENTS`, each server a command or an address.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use mcpbolt::client::{Client, block_on};
use mcpbolt::io::{Address, ChildCommand, ConnectOptions};
use serde_json::Value;

async fn open(server: &str) -> std::io::Result<Client> {
    let builder = Client::builder("three-servers", "1.0.0");
    match server.parse::<Address>() {
        Ok(address) => builder.open(&address, ConnectOptions::default()).await,
        Err(_) => builder.spawn(ChildCommand::new(server)).await,
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "SERVER… TOOL ARGUMENTS";
    let given: Value = serde_json::from_str(&arguments.pop().ok_or(usage)?)?;
    let wanted = arguments.pop().ok_or(usage)?;
    let mut found = None;
    for server in &arguments {
        let client = open(server).await?;
        for tool in client.list_tools().await? {
            println!("{}: {}", client.server_info()["name"], tool.name);
            if tool.name == wanted {
                found = Some(client.clone());
            }
        }
    }
    let client = found.ok_or("no server has this tool")?;
    println!("{}", client.call_tool(&wanted, &given).await?.text());
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    block_on(run())
}
