//! A server of the actions that the dialect's document shows, and its examples as a table.
#![allow(dead_code, reason = "not every test uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use mcpbolt::server::{Arguments, Builder, Context, HandlerError, Json, Server, Tool};
use serde_json::{Value, json};

/// `corpus/actions.json`.
pub fn examples() -> Vec<Value> {
    serde_json::from_str(include_str!("../../../corpus/actions.json")).unwrap()
}

/// Whether all of `expected` is in `found`; what takes how long is nobody's to say beforehand.
pub fn shows(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => expected.iter().all(|(key, value)| {
            let own = found.get(key);
            key == "execution_time_ms" || own.is_some_and(|own| shows(own, value))
        }),
        (Value::Array(found), Value::Array(expected)) => {
            let mut pairs = found.iter().zip(expected);
            found.len() == expected.len() && pairs.all(|(own, value)| shows(own, value))
        }
        (Value::Number(found), Value::Number(expected)) => found.as_f64() == expected.as_f64(),
        _ => found == expected,
    }
}

fn numbers() -> Value {
    json!({
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    })
}

fn member(arguments: &Arguments, name: &str) -> String {
    let arguments: Value = serde_json::from_str(&arguments.0).unwrap();
    arguments[name].as_str().unwrap_or_default().to_owned()
}

pub fn server(name: &str) -> Server {
    builder(name).build().unwrap()
}

pub fn builder(name: &str) -> Builder {
    let path = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "recursive": {"type": "boolean"}, "content": {"type": "string"}},
        "required": ["path"],
    });
    let example = json!([{
        "request": {"params": {"text": "Example text", "max_length": 100}},
        "response": {"data": {"summary": "Example summary"}},
    }]);
    let add = Tool::new("calculator.add")
        .description("Adds two numbers.")
        .annotations(json!({"readOnlyHint": true}))
        .on_get()
        .input_schema(numbers());
    Server::builder(name, "1.2.3")
        .actions(true)
        .tool(add, |arguments: Arguments, _| async move {
            let arguments: Value = serde_json::from_str(&arguments.0).unwrap();
            let sum = arguments["a"].as_f64().unwrap() + arguments["b"].as_f64().unwrap();
            Json(json!({ "result": sum }))
        })
        .inline_tool(
            Tool::new("file_system.read").input_schema(&path),
            |arguments: Arguments| match &*member(&arguments, "path") {
                "/data/file.txt" => Ok(Json(json!({"content": "File content here"}))),
                "/data/file1.txt" => Ok(Json(json!({"content": "File 1 content"}))),
                path => {
                    let why = format!("File '{path}' not found.");
                    let details = json!({ "path": path });
                    Err(HandlerError::typed("RESOURCE_NOT_FOUND", why).with_data(&details))
                }
            },
        )
        .tool(
            Tool::new("file_system.write").input_schema(&path),
            |arguments: Arguments, _| async move {
                let path = member(&arguments, "path");
                let why = format!("Write access denied to {path}");
                Err::<(), _>(HandlerError::typed("PERMISSION_DENIED", why))
            },
        )
        .tool(
            Tool::new("file_system.list_directory").input_schema(&path),
            |arguments: Arguments, _| async move {
                Json(json!({
                    "files": [
                        {"name": "file1.txt", "type": "file", "size": 1024},
                        {"name": "subdir", "type": "directory", "size": null},
                    ],
                    "path": member(&arguments, "path"),
                }))
            },
        )
        .tool(
            Tool::new("start_generation"),
            |_: Arguments, _| async move { Json(json!({"generation_id": "gen123"})) },
        )
        .tool(
            Tool::new("get_generation_progress"),
            |_: Arguments, _| async move {
                Json(json!({"progress": 0.5, "text_so_far": "Roses are red"}))
            },
        )
        .tool(
            Tool::new("summarize_text")
                .description("Summarizes the input text.")
                .action(json!({"examples": example, "errors": ["QUOTA_EXCEEDED"], "deprecated": "use document.summarize"})),
            |_: Arguments, _| async move { Json(json!({"summary": "Example summary"})) },
        )
        .tool(
            Tool::new("llm.generate").annotations(json!({"readOnlyHint": true})).on_get().input_schema(json!({
                "type": "object",
                "properties": {"prompt": {"type": "string"}, "count": {"type": "integer"}},
            })),
            |arguments: Arguments, context: Context| async move {
                let words: &[&str] = match &*member(&arguments, "prompt") {
                    "fox" => &["The", " quick", " brown", " fox"],
                    "fail" => {
                        let why = "Failed to generate text";
                        return Err(HandlerError::typed("PROCESSING_ERROR", why));
                    }
                    _ => &["Once", " upon", " a", " time"],
                };
                for token in words {
                    context.partial(&json!({ "token": token }));
                }
                Ok(Json(json!({ "full_text": words.concat() })))
            },
        )
}
