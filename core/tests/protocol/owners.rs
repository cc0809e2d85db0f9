//! Tasks, states and the like of one principal are unknown to every other, even with their ids.

use std::time::Duration;

use mcpbolt::handler::HandlerError;
use mcpbolt::limits::{MAX_TASK_BYTES, MAX_TASK_TTL, MAX_TASKS, MAX_TASKS_PER_OWNER};
use mcpbolt::mcp::{Revision, TaskSupport};
use mcpbolt::model::{Elicitation, Elicited};
use mcpbolt::policy::{ApiKeys, Credentials, Policy};
use mcpbolt::server::{Arguments, Builder, Context, Server, TaskLimits, Tool};
use serde_json::{Value, json};

use crate::wire::Wire;

const NEWEST: Revision = Revision::V2026_07_28;

/// The same name twice: as a key's owner and as somebody whom the program names.
fn policy() -> Policy {
    let keys = ApiKeys::new().key("k-alice", "alice").key("k-bob", "bob");
    Policy::new().verifier(move |credentials| match credentials {
        Credentials::Bearer(name) => Ok(mcpbolt::connection::Principal::new(name)),
        other => keys.verify(other),
    })
}

fn server() -> Builder {
    let wait = Tool::new("wait").task_support(TaskSupport::Optional);
    let long = Tool::new("long").task_support(TaskSupport::Optional);
    Server::builder("owned", "1")
        .policy(policy())
        .tool(wait, |_: Arguments, context: Context| async move {
            if !context.begin_task() {
                return "no task";
            }
            context.sleep(Duration::MAX).await;
            "never"
        })
        .tool(long, |_: Arguments, context: Context| async move {
            context.begin_task();
            "x".repeat(400)
        })
        .tool(
            Tool::new("ask"),
            |_: Arguments, context: Context| async move {
                let schema = json!({"type": "object", "properties": {}});
                let answer = context.elicit(Elicitation::form("Well?", schema)).await?;
                Ok::<_, HandlerError>(match answer {
                    Elicited::Accepted(_) => "yes",
                    _ => "no",
                })
            },
        )
}

fn key(key: &str) -> Value {
    json!({"type": "api_key", "key": key})
}

fn bearer(token: &str) -> Value {
    json!({"type": "bearer", "token": token})
}

struct Asks(Wire);

impl Asks {
    fn new(server: &Server) -> Self {
        let declared = json!({
            "extensions": {"io.modelcontextprotocol/tasks": {}},
            "elicitation": {"form": {}},
        });
        Self(Wire::open(server, NEWEST, declared))
    }

    fn ask(&mut self, who: &Value, method: &str, mut params: Value) -> Value {
        params["_meta"]["auth"] = who.clone();
        self.0.ask(NEWEST, method, params)
    }

    fn begin(&mut self, who: &Value, tool: &str) -> Value {
        self.ask(who, "tools/call", json!({"name": tool}))["result"].clone()
    }
}

/// R-TSX-23, R-TSX-13: to everybody else a task is as one that never was, on its own connection and on
/// another; neither does anybody hear of it.
#[test]
fn a_task_is_known_to_its_principal_alone() {
    let server = server().build().unwrap();
    let (mut here, mut there) = (Asks::new(&server), Asks::new(&server));
    let alice = key("k-alice");
    let task = here.begin(&alice, "wait");
    let id = &task["taskId"];
    assert!(id.is_string(), "{task}");
    let unknown = here.ask(&alice, "tasks/get", json!({"taskId": "1-00"}));
    for other in [key("k-bob"), bearer("alice"), bearer("key:alice")] {
        for asks in [&mut here, &mut there] {
            for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
                let params = json!({"taskId": id, "inputResponses": {}});
                let answer = asks.ask(&other, method, params);
                assert_eq!(answer["error"], unknown["error"], "{other} {method}");
            }
            let meta = json!({
                "auth": other,
                "io.modelcontextprotocol/protocolVersion": NEWEST.name(),
                "io.modelcontextprotocol/clientCapabilities":
                    {"extensions": {"io.modelcontextprotocol/tasks": {}}},
            });
            let params = json!({"notifications": {"taskIds": [id]}, "_meta": meta});
            let listen = json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params});
            let told = asks.0.say(&listen.to_string());
            assert_eq!(told[0]["params"]["notifications"], json!({}), "{told:?}");
            asks.0.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}"#);
        }
    }
    for asks in [&mut here, &mut there] {
        let answer = asks.ask(&alice, "tasks/get", json!({"taskId": id}));
        assert_eq!(answer["result"]["status"], "working");
    }
    there.ask(&alice, "tasks/cancel", json!({"taskId": id}));
    let ended = here.ask(&alice, "tasks/get", json!({"taskId": id}));
    assert_eq!(ended["result"]["status"], "cancelled");
}

/// R-TSK-17: one principal cannot take the tasks of all, nor the room for their results.
#[test]
fn one_owner_leaves_tasks_to_others() {
    let limits = TaskLimits {
        tasks: 4,
        per_owner: 2,
        bytes: 2000,
        ..TaskLimits::default()
    };
    let server = server().task_limits(limits).build().unwrap();
    let mut wire = Asks::new(&server);
    let (alice, bob, carol) = (key("k-alice"), key("k-bob"), bearer("carol"));
    let begins = |wire: &mut Asks, who| wire.begin(who, "wait")["resultType"] == "task";
    assert!(begins(&mut wire, &alice) && begins(&mut wire, &alice));
    assert!(!begins(&mut wire, &alice), "one owner has a share");
    assert!(begins(&mut wire, &bob));
    let one = wire.begin(&carol, "long");
    assert!(!begins(&mut wire, &bob), "all together have a bound");
    let done = wire.ask(&carol, "tasks/get", json!({"taskId": one["taskId"]}));
    assert_eq!(done["result"]["status"], "completed");

    let server = self::server().task_limits(limits).build().unwrap();
    let mut wire = Asks::new(&server);
    let tasks = [&alice, &alice, &bob].map(|who| (who, wire.begin(who, "long")));
    let status = tasks.map(|(who, task)| {
        let task = wire.ask(who, "tasks/get", json!({"taskId": task["taskId"]}));
        task["result"]["status"].as_str().unwrap().to_owned()
    });
    assert_eq!(status, ["completed", "completed", "completed"]);
    let small = TaskLimits {
        bytes: 1200,
        ..limits
    };
    let server = self::server().task_limits(small).build().unwrap();
    let mut wire = Asks::new(&server);
    let tasks = [&alice, &alice, &bob].map(|who| (who, wire.begin(who, "long")));
    let status = tasks.map(|(who, task)| {
        let task = wire.ask(who, "tasks/get", json!({"taskId": task["taskId"]}));
        task["result"]["status"].as_str().unwrap().to_owned()
    });
    assert_eq!(status, ["completed", "failed", "completed"]);
}

/// R-MRT-09: a state is for the principal and the request that it was sealed for.
#[test]
fn a_state_is_taken_back_from_its_principal_alone() {
    let server = server().build().unwrap();
    let mut wire = Asks::new(&server);
    let alice = key("k-alice");
    let plain = json!({"name": "ask", "arguments": {"a": 1}});
    let asked = wire.ask(&alice, "tools/call", plain.clone())["result"].clone();
    let question = asked["inputRequests"].as_object().unwrap().keys().next();
    let mut again = plain.clone();
    again["requestState"] = asked["requestState"].clone();
    again["inputResponses"] = json!({question.unwrap(): {"action": "accept", "content": {}}});
    for other in [key("k-bob"), bearer("alice"), bearer("key:alice")] {
        let refused = wire.ask(&other, "tools/call", again.clone());
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let mut elsewhere = again.clone();
    elsewhere["arguments"] = json!({"a": 2});
    let refused = wire.ask(&alice, "tools/call", elsewhere);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let done = wire.ask(&alice, "tools/call", again);
    assert_eq!(done["result"]["content"][0]["text"], "yes");
}

/// R-MRT-09: params that cannot be told apart are sealed no state, and none is taken back with them.
#[test]
fn a_state_is_never_for_params_that_nobody_can_read() {
    let server = server().build().unwrap();
    let mut wire = Asks::new(&server);
    let auth = key("k-alice");
    let meta = json!({
        "auth": auth,
        "io.modelcontextprotocol/protocolVersion": NEWEST.name(),
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let mut call = |other: &str, more: &str| {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{{"name":"ask","other":{other}{more},"_meta":{meta}}}}}"#
        );
        let mut said = wire.0.say(&line);
        let begun = std::time::Instant::now();
        while !said.iter().any(|said| said["id"] == "deep") {
            assert!(begun.elapsed() < Duration::from_secs(30), "{said:?}");
            std::thread::sleep(Duration::from_millis(1));
            said.extend(wire.0.hear());
        }
        said.pop().unwrap()
    };
    let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(130), "]".repeat(130));
    for other in [deep("1"), "1e400".to_owned()] {
        let refused = call(&other, "");
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let asked = call("1", "");
    let state = &asked["result"]["requestState"];
    assert!(state.is_string());
    let more = format!(",\"requestState\":{state}");
    for other in [deep("1"), deep("2"), "1e400".to_owned(), "2".to_owned()] {
        let refused = call(&other, &more);
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

/// The bounds of tasks where the program sets none.
#[test]
fn tasks_are_bounded_by_default() {
    let huge = Tool::new("huge").task_support(TaskSupport::Optional);
    let huge = server().tool(huge, |_: Arguments, context: Context| async move {
        context.begin_task();
        "x".repeat(MAX_TASK_BYTES + 1)
    });
    let mut wire = Asks::new(&huge.build().unwrap());
    let alice = key("k-alice");
    let task = wire.begin(&alice, "huge");
    assert_eq!(task["ttlMs"], json!(MAX_TASK_TTL.as_millis() as u64));
    let status = loop {
        let task = wire.ask(&alice, "tasks/get", json!({"taskId": task["taskId"]}));
        let status = task["result"]["status"].clone();
        if status != "working" {
            break status;
        }
        std::thread::yield_now();
    };
    assert_eq!(status, "failed", "its result is too long");

    let mut wire = Asks::new(&server().build().unwrap());
    let begins = |wire: &mut Asks, who: &_| wire.begin(who, "wait")["resultType"] == "task";
    for owner in 0..MAX_TASKS / MAX_TASKS_PER_OWNER {
        let owner = bearer(&format!("owner {owner}"));
        for _ in 0..MAX_TASKS_PER_OWNER {
            assert!(begins(&mut wire, &owner));
        }
        assert!(!begins(&mut wire, &owner), "one owner has a share");
    }
    assert!(!begins(&mut wire, &alice), "all together have a bound");
}
