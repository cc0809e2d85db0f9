//! A client at a terminal that answers the questions of a server: forms by what is typed, and requests for
//! the model by a fixed text. `cargo run --example chat_client -- target/debug/examples/bookings`.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::io::{self, BufRead, Write};

use mcpbolt::client::{Client, block_on};
use mcpbolt::io::ChildCommand;
use mcpbolt::model::{Elicitation, Elicited, Sampled};
use serde_json::{Map, Value, json};

/// Asks for each field of a form; an empty answer declines.
fn fill_in(question: &Elicitation) -> Elicited {
    let Elicitation::Form { message, schema } = question else {
        return Elicited::Declined;
    };
    println!("{message}");
    let mut filled = Map::new();
    let fields = schema["properties"].as_object();
    for (name, schema) in fields.into_iter().flatten() {
        let typed = ask(&format!("  {name}: "));
        match (typed.as_str(), schema["type"].as_str()) {
            ("", _) => return Elicited::Declined,
            (text, Some("string") | None) => filled.insert(name.clone(), text.into()),
            (text, _) => {
                filled.insert(name.clone(), serde_json::from_str(text).unwrap_or_default())
            }
        };
    }
    Elicited::Accepted(filled)
}

fn ask(prompt: &str) -> String {
    print!("{prompt}");
    let _ = io::stdout().flush();
    let mut line = String::new();
    let _ = io::stdin().lock().read_line(&mut line);
    line.trim().to_owned()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let command = std::env::args().nth(1).ok_or("which server? a command")?;
    let client = Client::builder("chat", "1.0.0")
        .on_form(|question, _| async move { Ok(fill_in(&question)) })
        .on_sampling(|_, _| async { Ok(Sampled::text("a-model", "Welcome!")) })
        .spawn(ChildCommand::new(command));
    let client = block_on(client)?;
    for tool in block_on(client.list_tools())? {
        println!("{}: {}", tool.name, tool.description.unwrap_or_default());
    }
    loop {
        let typed = ask("> ");
        let Some((tool, arguments)) = typed.split_once(' ') else {
            return Ok(());
        };
        let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
        match client.call_tool(tool, &arguments).wait() {
            Ok(result) => println!("{}", result.text()),
            Err(error) => println!("{error}"),
        }
    }
}
