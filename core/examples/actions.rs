//! A server of the action dialect, which is a server of MCP as it stands, and a client of such
//! servers.
//!
//! ```text
//! cargo run --example actions --features http,http-client
//!     serves on stdin and stdout
//! cargo run --example actions --features http,http-client -- http://127.0.0.1:8000/mcp
//!     serves there
//! cargo run --example actions --features http,http-client -- call http://127.0.0.1:8000/mcp
//!     calls each action there, and prints what comes, a line each
//! ```
#![allow(
    clippy::print_stdout,
    reason = "what a client was told is for who runs it"
)]

use std::error::Error;

use mcpbolt::client::{ActionCallError, ActionFailure, Client, block_on};
use mcpbolt::connection::OpeningMode;
use mcpbolt::io::ConnectOptions;
use mcpbolt::server::schemars::JsonSchema;
use mcpbolt::server::serde::Deserialize;
use mcpbolt::server::{Context, HandlerError, Json, Server, Tool};
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Directory {
    path: String,
    #[allow(dead_code, reason = "there is one level only")]
    recursive: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
struct Reading {
    path: String,
}

#[derive(Deserialize, JsonSchema)]
struct Writing {
    path: String,
    #[allow(dead_code, reason = "nobody may write")]
    content: String,
}

#[derive(Deserialize, JsonSchema)]
struct Prompt {
    #[allow(dead_code, reason = "it knows one story")]
    prompt: String,
}

fn not_found(what: &str, path: &str) -> HandlerError {
    let why = format!("{what} '{path}' not found.");
    HandlerError::typed("RESOURCE_NOT_FOUND", why).with_data(&json!({"path": path}))
}

fn server() -> Result<Server, Box<dyn Error>> {
    let add = Tool::new("calculator.add")
        .description("Adds two numbers.")
        .output_schema(json!({"type": "object", "properties": {"result": {"type": "number"}}, "required": ["result"]}))
        .action(json!({
            "examples": [{"request": {"params": {"a": 5, "b": 3}}, "response": {"data": {"result": 8}}}],
            "errors": ["VALIDATION_ERROR"],
        }));
    let list = Tool::new("file_system.list_directory")
        .description("Lists what is in a directory.")
        .output_schema(json!({"type": "object", "required": ["files", "path"]}))
        .action(json!({"errors": ["RESOURCE_NOT_FOUND"]}));
    let read = Tool::new("file_system.read").description("Reads a file.");
    let write = Tool::new("file_system.write")
        .description("Writes a file.")
        .action(json!({"errors": ["PERMISSION_DENIED"]}));
    let generate = Tool::new("llm.generate").description("Generates text, token by token.");
    let server = Server::builder("actions", "1.0.0")
        .actions(true)
        .tool(add, |add: Add, _| async move {
            Json(json!({"result": add.a + add.b}))
        })
        .tool(list, |directory: Directory, _| async move {
            let files = match &*directory.path {
                "/usr/data" => json!([
                    {"name": "file1.txt", "type": "file", "size": 1024},
                    {"name": "subdir", "type": "directory", "size": null},
                ]),
                path => return Err(not_found("Directory", path)),
            };
            Ok(Json(json!({"files": files, "path": directory.path})))
        })
        .tool(read, |reading: Reading, _| async move {
            match &*reading.path {
                "/data/file1.txt" => Ok(Json(json!({"content": "File 1 content"}))),
                path => Err(not_found("File", path)),
            }
        })
        .tool(write, |writing: Writing, _| async move {
            let why = format!("Write access denied to {}", writing.path);
            let denied = HandlerError::typed("PERMISSION_DENIED", why);
            Err::<(), _>(denied.with_help_url("https://example.com/access"))
        })
        .tool(generate, |_: Prompt, context: Context| async move {
            let tokens = ["Once", " upon", " a", " time"];
            for token in tokens {
                context.partial(&json!({"token": token}));
            }
            Json(json!({"full_text": tokens.concat()}))
        });
    Ok(server.build()?)
}

fn show(error: &ActionCallError) {
    let ActionCallError {
        spelling,
        message,
        code,
        ..
    } = error;
    println!(
        "{}",
        json!({"type": spelling, "message": message, "code": code})
    );
}

async fn call(address: &str) -> Result<(), Box<dyn Error>> {
    let client = Client::builder("actions", "1.0.0").opening(OpeningMode::Actions);
    let client = client
        .open(&address.parse()?, ConnectOptions::default())
        .await?;
    let sum = client
        .action("calculator.add", &json!({"a": 5, "b": 3}))
        .await?;
    println!("{}", sum.data);
    let wrong = client
        .action("calculator.add", &json!({"a": 5, "b": "three"}))
        .await;
    if let Err(ActionFailure::Answered(error)) = wrong {
        show(&error);
    }
    let place = json!({"path": "/usr/data", "recursive": false});
    let list = client
        .action("file_system.list_directory", &place)
        .context("conversation-123");
    println!("{}", list.await?.data);
    let story = client.action("llm.generate", &json!({"prompt": "Write a story"}));
    println!(
        "{}",
        story.on_partial(|part| println!("{part}")).await?.data
    );
    let operations: [(_, Value); 2] = [
        ("file_system.read", json!({"path": "/data/file1.txt"})),
        (
            "file_system.write",
            json!({"path": "/data/file2.txt", "content": "New content"}),
        ),
    ];
    for result in client.action_batch(operations, true).await?.results() {
        match result {
            Ok(data) => println!("{data}"),
            Err(error) => show(&error),
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &*words {
        [word, address] if word == "call" => block_on(call(address)),
        [address] => {
            let serving = server()?.serve(address).start()?;
            eprintln!("actions listens on {}", serving.address());
            serving.wait();
            Ok(())
        }
        _ => {
            server()?.serve_stdio().wait()?;
            Ok(())
        }
    }
}
