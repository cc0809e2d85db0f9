//! A client of the stateless era before a server of the handshake era that asks it (R-CHN-12): each request may come over a
//! connection of its own.

use std::time::Duration;

use mcpbolt::mcp::Revision;
use serde_json::{Value, json};

use crate::rig::{Rig, request, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;

fn capabilities() -> Value {
    json!({"elicitation": {}})
}

fn call(id: &str, more: &Value) -> String {
    let mut params = json!({"name": "x", "arguments": {"by": id}});
    let more = more.as_object().unwrap().clone();
    params.as_object_mut().unwrap().extend(more);
    stateless("same", "tools/call", params, &capabilities())
}

/// The index of the connection on which the server heard a call with these arguments, and the call.
fn find(rig: &mut Rig, by: &str) -> (usize, Value) {
    rig.step();
    let count = rig.fars.lock().unwrap().len();
    for far in 0..count {
        let line = rig.fars.lock().unwrap()[far].lines.front().cloned();
        let is_it = line.is_some_and(|line| line.contains(&format!("{{\"by\":\"{by}\"}}")));
        if is_it {
            return (far, rig.far_hears(far));
        }
    }
    panic!("the server heard no call by {by}");
}

fn question(rig: &mut Rig, far: usize, about: &str) {
    let params = json!({"message": about, "requestedSchema": {"type": "object"}});
    rig.far_says(far, &request("question", "elicitation/create", &params));
}

/// The state and the only key of an answer that asks.
fn asked(answer: &Value, about: &str) -> (Value, String) {
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let requests = result["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(
        (requests.len(), &request["params"]["message"]),
        (1, &json!(about))
    );
    (result["requestState"].clone(), key.clone())
}

/// R-CHN-12: clients with equal ids, which nobody can tell apart, are asked what their own calls caused, in any order.
#[test]
fn questions_reach_the_client_of_the_call_and_no_other() {
    let mut rig = Rig::new(OLD, 1);
    let names = ["a", "b", "c"];
    let mut open = Vec::new();
    for name in names {
        let near = rig.post(&call(name, &json!({})));
        let (far, arrived) = find(&mut rig, name);
        assert!(
            arrived["params"]["_meta"]
                .get("io.modelcontextprotocol/protocolVersion")
                .is_none()
        );
        open.push((name, near, far, arrived));
    }
    // Each call that may be asked has a connection of its own, which told the server what the client declares.
    for (_, _, far, _) in &open {
        assert_eq!(rig.fars.lock().unwrap()[*far].capabilities, capabilities());
    }
    for (name, _, far, _) in open.iter().rev() {
        question(&mut rig, *far, name);
    }
    let mut states = Vec::new();
    for (name, near, far, arrived) in &open {
        let answer = rig.hear(*near);
        states.push((name, far, arrived, asked(&answer, name)));
    }
    for (name, far, arrived, (state, key)) in states.iter().rev() {
        let answers = json!({"requestState": state, "inputResponses": {key: {"action": "accept", "content": {"name": name}}}});
        let near = rig.post(&call(name, &answers));
        let said = rig.far_hears(**far);
        assert_eq!(said["id"], "question");
        assert_eq!(
            said["result"],
            json!({"action": "accept", "content": {"name": name}})
        );
        rig.answer(**far, arrived, &json!({"content": [], "for": name}));
        let done = rig.hear(near);
        assert_eq!(
            (&done["id"], &done["result"]["for"]),
            (&json!("same"), &json!(name))
        );
        assert_eq!(done["result"]["resultType"], "complete");
        // R-MRT-13: the state was good for this once.
        let near = rig.post(&call(name, &answers));
        assert_eq!(rig.hear(near)["error"]["code"], -32602);
    }
    rig.assert_quiet();
    // The connections are used again, the last one first.
    let before = rig.fars.lock().unwrap().len();
    rig.post(&call("d", &json!({})));
    find(&mut rig, "d");
    assert_eq!(rig.fars.lock().unwrap().len(), before);
}

/// A second question, an answer that misses, one of the wrong shape, and a state for another tool.
#[test]
fn a_call_may_be_asked_more_than_once() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.post(&call("a", &json!({})));
    let (far, arrived) = find(&mut rig, "a");
    question(&mut rig, far, "first");
    let (state, key) = asked(&rig.hear(near), "first");
    for (bad, params) in [
        (
            json!({"inputResponses": {&key: 1}, "requestState": state}),
            "x",
        ),
        (
            json!({"inputResponses": {}, "requestState": state}),
            "other",
        ),
        (json!({"requestState": "no"}), "x"),
        (json!({"requestState": 1}), "x"),
    ] {
        let mut more = bad.clone();
        more["name"] = params.into();
        let near = rig.post(&call("a", &more));
        assert_eq!(rig.hear(near)["error"]["code"], -32602, "{bad}");
    }
    // R-MRT-10: without the answer the question comes again, with another state.
    let near = rig.post(&call(
        "a",
        &json!({"requestState": state, "inputResponses": {"else": {}}}),
    ));
    let (state, key) = asked(&rig.hear(near), "first");
    let near = rig.post(&call(
        "a",
        &json!({"requestState": state, "inputResponses": {key: {"action": "decline"}}}),
    ));
    assert_eq!(rig.far_hears(far)["result"], json!({"action": "decline"}));
    question(&mut rig, far, "second");
    let (state, key) = asked(&rig.hear(near), "second");
    // The server withdraws it, and answers.
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "question"}});
    rig.far_says(far, &cancel.to_string());
    rig.answer(far, &arrived, &json!({"content": []}));
    let near = rig.post(&call(
        "a",
        &json!({"requestState": state, "inputResponses": {key: {"action": "cancel"}}}),
    ));
    assert_eq!(rig.hear(near)["result"]["resultType"], "complete");
    rig.assert_quiet();
}

/// A client that never comes back, one that cancels after it came back, and one that is gone.
#[test]
fn a_call_whose_client_does_not_come_back_is_cancelled() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.post(&call("a", &json!({})));
    let (far, arrived) = find(&mut rig, "a");
    question(&mut rig, far, "q");
    let (state, key) = asked(&rig.hear(near), "q");
    rig.pass(Duration::from_secs(3599));
    rig.assert_quiet();
    rig.pass(Duration::from_secs(2));
    assert_eq!(rig.far_hears(far)["params"]["requestId"], arrived["id"]);
    // The server hears that nobody answers.
    let refused = rig.far_hears(far);
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!("question"), &json!(-32603))
    );
    let near = rig.post(&call(
        "a",
        &json!({"requestState": state, "inputResponses": {key: {}}}),
    ));
    assert_eq!(rig.hear(near)["error"]["code"], -32602);

    let near = rig.post(&call("b", &json!({})));
    let (far, arrived) = find(&mut rig, "b");
    question(&mut rig, far, "q");
    let (state, key) = asked(&rig.hear(near), "q");
    let near = rig.post(&call(
        "b",
        &json!({"requestState": state, "inputResponses": {key: {}}}),
    ));
    assert_eq!(rig.far_hears(far)["id"], "question");
    rig.leave(near);
    assert_eq!(rig.far_hears(far)["params"]["requestId"], arrived["id"]);
    rig.assert_quiet();
}
