//! A server with a policy, seen by clients of the action dialect: the rules are those of MCP.

use std::time::Duration;

use mcpbolt::policy::{Permissions, Policy};
use mcpbolt::server::{Arguments, Builder, Context, Server, Tool};
use serde_json::{Value, json};

use crate::wire::Wire;

fn server() -> Builder {
    Server::builder("guarded", "1")
        .actions(true)
        .tool(Tool::new("door.open"), |_: Arguments, _| async { "open" })
        .tool(Tool::new("door.break"), |_: Arguments, _| async {
            "broken"
        })
        .tool(
            Tool::new("door.wait"),
            |_: Arguments, context: Context| async move {
                context.sleep(Duration::from_secs(3600)).await;
                "late"
            },
        )
}

fn schema(wire: &mut Wire, params: Value) -> Value {
    wire.act(&json!({"action": "mcp.get_schema", "params": params}).to_string())
}

/// R-ACT-12, R-ACT-40, R-PER-05: what is denied is in no schema, and cannot be told from what is
/// not there.
#[test]
fn schemas_do_not_show_what_is_denied() {
    let mut permissions = Permissions::all();
    permissions.tools.denied.push("door.break".into());
    let policy = Policy::new().permissions(permissions);
    let mut wire = Wire::new(server().policy(policy).build().unwrap());
    let all = schema(&mut wire, json!({}));
    let all = all["data"]["actions"].as_object().unwrap();
    assert!(all.contains_key("door.open") && !all.contains_key("door.break"));
    let one = schema(&mut wire, json!({"action_name": "door.open"}));
    assert_eq!(one["status"], "success", "{one}");
    let denied = schema(&mut wire, json!({"action_name": "door.break"}));
    let unknown = schema(&mut wire, json!({"action_name": "door.none"}));
    assert_eq!(
        denied.to_string().replace("door.break", "door.none"),
        unknown.to_string()
    );
    let call = r#"{"action":"door.break","params":{}}"#;
    assert_eq!(wire.act(call)["error"]["type"], "AUTHORIZATION_FAILED");
}

/// R-PER-06, R-ACT-30: what takes too long is answered without its handler, with an id, without
/// one, as a stream and within a batch.
#[test]
fn an_action_that_takes_too_long_is_answered_without_its_handler() {
    let limit = Duration::from_secs(10);
    let policy = || Policy::new().timeout_of("door.wait", limit);
    let wait = json!({"action": "door.wait", "params": {}});
    let open = json!({"action": "door.open", "params": {}});
    let with = |metadata: Value| {
        let mut line = wait.clone();
        line["metadata"] = metadata;
        line
    };
    let late = |line: &Value| {
        let mut wire = Wire::new(server().policy(policy()).build().unwrap());
        assert_eq!(wire.say(&line.to_string()), [0; 0]);
        assert_eq!(wire.pass(limit / 2), [0; 0]);
        let mut heard = wire.pass(limit);
        let rest = wire.hear_until(|wire| wire.connection.in_flight() == 0);
        heard.extend(rest);
        assert_eq!(heard.len(), 1, "{line}: {heard:?}");
        heard.remove(0)
    };
    let answer = late(&wait);
    assert_eq!(answer["error"]["type"], "TIMEOUT_ERROR", "{answer}");
    assert_eq!(answer["error"]["code"], 504);
    assert!(answer["metadata"].get("request_id").is_none());
    let answer = late(&with(json!({"request_id": "r"})));
    assert_eq!(answer["error"]["type"], "TIMEOUT_ERROR", "{answer}");
    assert_eq!(answer["metadata"]["request_id"], "r");
    let answer = late(&with(json!({"request_id": 1, "stream": true})));
    assert_eq!(answer["type"], "error", "{answer}");
    assert_eq!(answer["error"]["type"], "TIMEOUT_ERROR");
    let operations = json!([wait, open]);
    let params = json!({"operations": operations, "continue_on_error": true});
    let answer = late(&json!({"action": "batch.execute", "params": params}));
    let results = &answer["data"]["results"];
    assert_eq!(results[0]["error"]["type"], "TIMEOUT_ERROR", "{answer}");
    assert_eq!(results[1]["status"], "success", "{answer}");
}

/// An action that was answered in time is not answered again when the time is over.
#[test]
fn an_action_that_is_answered_in_time_is_answered_once() {
    let limit = Duration::from_secs(10);
    let policy = Policy::new().tool_timeout(limit);
    let mut wire = Wire::new(server().policy(policy).build().unwrap());
    let answer = wire.act(r#"{"action":"door.open","params":{}}"#);
    assert_eq!(answer["status"], "success");
    assert_eq!(wire.pass(limit * 2), [0; 0]);
    assert_eq!(wire.connection.in_flight(), 0);
}
