//! A chat with a model, which may call the tools of several servers:
//! `simple_chat --config config.toml chat`.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

mod chat;
mod config;
mod model;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use crate::chat::{ChatSession, Model};
use crate::config::Config;

#[derive(Parser)]
#[command(author, version, about = "Simple Chat Client")]
struct Cli {
    /// Config file path
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Output default config template
    Config,

    /// Start chat
    Chat {
        /// Specify the model name
        #[arg(short, long)]
        model: Option<String>,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    let cli = Cli::parse();
    let Command::Chat { model } = cli.command else {
        println!("{}", include_str!("config.toml"));
        return Ok(());
    };
    let path = cli.config.context("no config file: name one by --config")?;
    let config = Config::load(&path).await?;
    let mut session = ChatSession::new(Model::new(&config, model)?);
    for server in config.mcp.iter().flat_map(|mcp| &mcp.server) {
        println!("load MCP tool: {}", server.name);
        session.add_tools(&server.transport.start().await?).await?;
    }
    session.chat(config.support_tool.unwrap_or(true)).await
}
