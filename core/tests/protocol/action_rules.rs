//! The rules of the action dialect for messages, names and lists, and how a line's dialect is told.

use std::num::NonZeroUsize;
use std::sync::Mutex;

use mcpbolt::client::{Client, block_on};
use mcpbolt::connection::OpeningMode;
use mcpbolt::mcp::Revision;
use mcpbolt::server::{Arguments, Builder, HandlerError, Json, Server, Tool};
use serde_json::{Value, json};

use crate::actions_server::{builder, server};
use crate::wire::Wire;

/// R-ERA-14: the members of an object say which language it is in, wherever they stand.
#[test]
fn a_line_is_in_the_language_that_its_members_say() {
    let is_action = |answer: &Value| answer.get("status").is_some();
    for (line, action) in [
        (r#"{"action":"mcp.health_check","params":{}}"#, true),
        (r#"{"params":{},"action":"mcp.health_check"}"#, true),
        (r#"{"action":"no","params":{"x":"\"jsonrpc\""}}"#, true),
        (r#"{"action":"no","params":{"jsonrpc":"2.0"}}"#, true),
        (
            r#"{"action":"no","params":{},"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","action":"no","params":{}}"#,
            false,
        ),
        (
            r#"{"action":7,"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            false,
        ),
    ] {
        let mut wire = Wire::new(server("sniff"));
        let answer = wire.act(line);
        assert_eq!(is_action(&answer), action, "{line}: {answer}");
        assert_eq!(answer.get("jsonrpc").is_none(), action, "{line}: {answer}");
    }
    // An array is a batch of JSON-RPC where the revision has those.
    let mut wire = Wire::open(&server("sniff"), Revision::V2025_03_26, json!({}));
    let heard = wire.say(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#);
    assert_eq!(heard, [json!({"jsonrpc": "2.0", "id": 1, "result": {}})]);
}

/// R-ACT-08: members that are not known are passed over, at every level; those that are required
/// are in every answer.
#[test]
fn members_that_are_not_known_are_passed_over() {
    let mut wire = Wire::new(server("open"));
    let plain = json!({
        "action": "calculator.add",
        "params": {"a": 1, "b": 2},
        "metadata": {"request_id": "r"},
    });
    let mut more = plain.clone();
    more["x_new"] = json!({"action": "no", "deep": [1, {"status": "error"}]});
    more["id"] = 7.into();
    more["metadata"]["x_new"] = json!([null]);
    more["params"]["x_new"] = true.into();
    let strip = |mut answer: Value| {
        answer["metadata"]["execution_time_ms"].take();
        answer
    };
    let (answer, other) = (wire.act(&plain.to_string()), wire.act(&more.to_string()));
    assert_eq!(strip(answer.clone()), strip(other));
    assert_eq!(answer["status"], "success");
    let refused = wire.act(r#"{"action":"no","params":{},"x_new":1}"#);
    for member in ["type", "message"] {
        assert!(refused["error"][member].is_string(), "{refused}");
    }
}

/// R-ACT-11: the names of the server itself are as the document wants names: namespaces with dots,
/// then a verb, or what is checked; names like that are served whatever follows the dots.
#[test]
fn names_are_namespaces_and_verbs() {
    let own = [
        "mcp.get_schema",
        "mcp.get_version",
        "mcp.health_check",
        "batch.execute",
    ];
    let names = ["weather.get_forecast", "a.b.c.list_all", "x"];
    let tools = names.iter().fold(
        Server::builder("names", "1").actions(true),
        |server, name| server.tool(Tool::new(*name), |_: Arguments, _| async { "done" }),
    );
    let mut wire = Wire::new(tools.build().unwrap());
    let shown = wire.act(r#"{"action":"mcp.get_schema","params":{}}"#);
    let mut shown: Vec<_> = shown["data"]["actions"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    shown.sort();
    let mut expected: Vec<_> = own.iter().chain(&names).collect();
    expected.sort();
    assert_eq!(shown, expected);
    for name in own {
        let parts: Vec<_> = name.split('.').collect();
        let is_word = |part: &&str| part.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        assert!(parts.len() == 2 && parts.iter().all(is_word), "{name}");
    }
    for name in names {
        let answer = wire.act(&json!({"action": name, "params": {}}).to_string());
        assert_eq!(answer["status"], "success", "{name}: {answer}");
    }
}

/// Notes that are made, read, changed, listed, searched and thrown away.
fn notes() -> Builder {
    static NOTES: Mutex<Vec<Option<String>>> = Mutex::new(Vec::new());
    let at = |params: &Value| params["id"].as_u64().unwrap_or(u64::MAX) as usize;
    let missing = || HandlerError::typed("RESOURCE_NOT_FOUND", "there is no such note");
    let serve = move |name: &'static str| {
        move |arguments: Arguments| -> Result<Json<Value>, HandlerError> {
            let params: Value = serde_json::from_str(&arguments.0)?;
            let text = || params["text"].as_str().unwrap_or_default().to_owned();
            let mut notes = NOTES.lock().unwrap();
            let found = |wanted: &str, notes: &[Option<String>]| -> Vec<usize> {
                let fits = |(_, note): &(usize, &Option<String>)| {
                    note.as_ref().is_some_and(|note| note.contains(wanted))
                };
                notes
                    .iter()
                    .enumerate()
                    .filter(fits)
                    .map(|(id, _)| id)
                    .collect()
            };
            let data = match name {
                "create" => {
                    notes.push(Some(text()));
                    json!({"id": notes.len() - 1})
                }
                "list" => {
                    let from = params["cursor"]
                        .as_str()
                        .map_or(Ok(0), str::parse::<usize>)?;
                    let all = found("", &notes);
                    let page: Vec<_> = all.iter().skip(from).take(2).collect();
                    let next = (from + 2 < all.len()).then(|| (from + 2).to_string());
                    match next {
                        Some(next) => json!({"notes": page, "next_cursor": next}),
                        None => json!({"notes": page}),
                    }
                }
                "search" => json!({"notes": found(&text(), &notes)}),
                _ => {
                    let note = notes.get_mut(at(&params)).filter(|note| note.is_some());
                    let note = note.ok_or_else(missing)?;
                    match name {
                        "update" => *note = Some(text()),
                        "delete" => *note = None,
                        _ => {}
                    }
                    json!({ "text": note })
                }
            };
            Ok(Json(data))
        }
    };
    let verbs = ["create", "read", "update", "delete", "list", "search"];
    verbs.into_iter().fold(
        Server::builder("notes", "1").actions(true),
        |server, verb| server.inline_tool(Tool::new(format!("note.{verb}")), serve(verb)),
    )
}

/// R-ACT-15, R-ACT-29: a resource by the six verbs, its list in pages; so is that of the schemas.
#[test]
fn a_resource_is_made_and_found_by_the_usual_verbs() {
    let mut wire = Wire::new(notes().build().unwrap());
    let mut act = |verb: &str, params: Value| {
        let line = json!({"action": format!("note.{verb}"), "params": params});
        wire.act(&line.to_string())
    };
    for text in ["milk", "bread", "salt", "bread rolls", "tea"] {
        assert_eq!(act("create", json!({"text": text}))["status"], "success");
    }
    assert_eq!(
        act("search", json!({"text": "bread"}))["data"]["notes"],
        json!([1, 3])
    );
    act("update", json!({"id": 1, "text": "rye"}));
    assert_eq!(act("read", json!({"id": 1}))["data"]["text"], "rye");
    act("delete", json!({"id": 1}));
    assert_eq!(
        act("read", json!({"id": 1}))["error"]["type"],
        "RESOURCE_NOT_FOUND"
    );
    let (mut all, mut params) = (Vec::new(), json!({}));
    loop {
        let page = act("list", params.clone())["data"].take();
        all.extend(page["notes"].as_array().unwrap().clone());
        match &page["next_cursor"] {
            Value::Null => break,
            cursor => params["cursor"] = cursor.clone(),
        }
    }
    assert_eq!(all, [0, 2, 3, 4]);
}

/// R-ACT-12, R-ACT-15, R-ACT-29
#[test]
fn schemas_come_in_pages_where_lists_do() {
    let whole = builder("pages").build().unwrap();
    let pages = builder("pages").page_size(NonZeroUsize::new(3).unwrap());
    let pages = pages.build().unwrap();
    let mut wire = Wire::new(pages.clone());
    let first = wire.act(r#"{"action":"mcp.get_schema","params":{}}"#);
    assert_eq!(first["data"]["actions"].as_object().unwrap().len(), 3);
    assert!(first["data"]["next_cursor"].is_string());
    for cursor in [json!("page-0"), json!("no"), json!(1)] {
        let line = json!({"action": "mcp.get_schema", "params": {"cursor": cursor}});
        let answer = wire.act(&line.to_string());
        assert_eq!(answer["error"]["type"], "VALIDATION_ERROR", "{answer}");
        assert_eq!(answer["error"]["details"]["parameter"], "cursor");
    }
    let all = |server: &Server| {
        let client = Client::builder("reader", "1").opening(OpeningMode::Actions);
        let client = block_on(client.connect(server)).unwrap();
        block_on(client.action_schemas()).unwrap()
    };
    assert_eq!(all(&pages), all(&whole));
    assert!(all(&whole).len() > 9);
}
