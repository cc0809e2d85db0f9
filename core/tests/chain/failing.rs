//! Middleware for servers that are lost or fail.

use std::time::Duration;

use mcpbolt::chain::{Breaker, Retry};
use mcpbolt::connection::Framing;
use mcpbolt::mcp::Revision;
use serde_json::{Value, json};

use crate::rig::{Rig, request, stateless};
use crate::rules::{client, line};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;

/// A front that sends again what it may, and a client of it. Its server has told what its tools do.
fn repeating() -> (Rig, usize) {
    let mut rig = Rig::changing(NEW, |external| {
        external.with(Retry::new(1).trusting_annotations())
    });
    let near = rig.connect(Framing::Line);
    ask(&mut rig, near, "tools/list", json!({}));
    let list = rig.far_hears(0);
    let hint = |name: &str, hint: &str| json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {hint: true}});
    let tools = [
        hint("reads", "readOnlyHint"),
        hint("writes", "destructiveHint"),
    ];
    rig.answer(0, &list, &json!({"tools": tools}));
    rig.hear(near);
    (rig, near)
}

fn ask(rig: &mut Rig, near: usize, method: &str, params: Value) {
    rig.say(near, &stateless(1, method, params, &json!({})));
}

/// Of a lost server, only what changes nothing is asked again; R-CHN-14.
#[test]
fn what_changes_nothing_is_asked_again_and_everything_else_once() {
    for (method, params, is_repeated) in [
        ("prompts/list", json!({}), true),
        ("resources/read", json!({"uri": "a:b"}), true),
        ("tools/call", json!({"name": "reads"}), true),
        ("tools/call", json!({"name": "writes"}), false),
        ("tools/call", json!({"name": "unknown"}), false),
    ] {
        let (mut rig, near) = repeating();
        ask(&mut rig, near, method, params);
        rig.far_hears(0);
        rig.break_off(0);
        if is_repeated {
            let asked = rig.far_hears(1);
            assert_eq!(asked["method"], method);
            rig.answer(
                1,
                &asked,
                &json!({"contents": [], "content": [], "prompts": []}),
            );
            assert!(rig.hear(near)["error"].is_null());
        } else {
            let error = rig.hear(near)["error"].clone();
            assert_eq!(error["data"]["upstream"], "far", "{error}");
        }
        rig.assert_quiet();
    }
}

#[test]
fn a_request_is_asked_again_once_and_not_after_its_answer_has_begun() {
    let (mut rig, near) = repeating();
    ask(&mut rig, near, "prompts/list", json!({}));
    for far in 0..2 {
        rig.far_hears(far);
        rig.break_off(far);
    }
    assert_eq!(rig.hear(near)["error"]["data"]["upstream"], "far");
    rig.assert_quiet();
    let (mut rig, near) = repeating();
    let params = json!({"name": "reads", "_meta": {"progressToken": "t"}});
    ask(&mut rig, near, "tools/call", params);
    let asked = rig.far_hears(0);
    let token = &asked["params"]["_meta"]["progressToken"];
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}});
    rig.far_says(0, &progress.to_string());
    assert_eq!(rig.hear(near)["method"], "notifications/progress");
    rig.break_off(0);
    assert_eq!(rig.hear(near)["error"]["data"]["upstream"], "far");
    rig.assert_quiet();
}

/// The server asks the client of a call for something.
fn far_asks(rig: &mut Rig) {
    let params = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    rig.far_says(0, &request("q", "elicitation/create", &params));
}

#[test]
fn a_question_and_a_log_message_begin_an_answer() {
    let elicitation = json!({"elicitation": {}});
    for revision in [OLD, NEW] {
        let mut rig = Rig::changing(OLD, |external| external.with(Retry::new(1)));
        let near = client(&mut rig, revision, &elicitation);
        let get = |params| line(revision, 1, "prompts/get", params, &elicitation);
        rig.say(near, &get(json!({"name": "p"})));
        rig.far_hears(0);
        far_asks(&mut rig);
        let asked = rig.hear(near);
        let answer = json!({"action": "accept", "content": {}});
        let answer = match revision {
            OLD => json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}).to_string(),
            _ => get(
                json!({"name": "p", "requestState": asked["result"]["requestState"],
                "inputResponses": {"q1": answer}}),
            ),
        };
        rig.say(near, &answer);
        assert_eq!(rig.far_hears(0)["id"], "q");
        rig.break_off(0);
        assert_eq!(rig.hear(near)["error"]["data"]["upstream"], "far");
        rig.assert_quiet();
    }
    let mut rig = Rig::changing(OLD, |external| external.with(Retry::new(1)));
    let near = rig.open(OLD, &json!({}));
    rig.say(near, &request(1, "prompts/get", &json!({"name": "p"})));
    rig.far_hears(0);
    let log = json!({"level": "info", "data": "x"});
    let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": log});
    rig.far_says(0, &log.to_string());
    assert_eq!(rig.hear(near)["method"], "notifications/message");
    rig.break_off(0);
    assert_eq!(rig.hear(near)["error"]["data"]["upstream"], "far");
    rig.assert_quiet();
}

#[test]
fn a_user_who_does_not_answer_is_no_failure_of_the_server() {
    let elicitation = json!({"elicitation": {}});
    let breaker = Breaker::new().failures(1, Duration::from_secs(3600));
    let mut rig = Rig::changing(OLD, |external| {
        external
            .timeouts(Duration::from_secs(1), Duration::from_secs(1))
            .with(breaker.clone())
    });
    let near = rig.open(OLD, &elicitation);
    let call = request(1, "tools/call", &json!({"name": "x"}));
    for (is_asked, is_open) in [(true, false), (false, true)] {
        rig.say(near, &call);
        rig.far_hears(0);
        if is_asked {
            far_asks(&mut rig);
            assert_eq!(rig.hear(near)["method"], "elicitation/create");
        }
        rig.pass(Duration::from_secs(2));
        let error = rig.hear(near)["error"].clone();
        assert_eq!(error["data"]["reason"], "upstream_timeout");
        // The cancellation.
        rig.far_hears(0);
        assert_eq!(breaker.is_open(), is_open);
    }
}

#[test]
fn a_server_that_fails_often_is_left_alone_and_named() {
    let breaker = Breaker::new().failures(2, Duration::from_secs(3600));
    let mut rig = Rig::changing(OLD, |external| {
        external
            .timeouts(Duration::from_secs(1), Duration::from_secs(1))
            .with(breaker.clone())
    });
    let near = rig.open(OLD, &json!({}));
    let call = request(1, "tools/call", &json!({"name": "x"}));
    // An answer that is an error is an answer.
    for _ in 0..3 {
        rig.say(near, &call);
        let asked = rig.far_hears(0);
        let error =
            json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}});
        rig.far_says(0, &error.to_string());
        rig.hear(near);
    }
    assert!(!breaker.is_open());
    for _ in 0..2 {
        rig.say(near, &call);
        rig.far_hears(0);
        rig.pass(Duration::from_secs(2));
        let error = rig.hear(near)["error"].clone();
        assert_eq!(error["data"]["reason"], "upstream_timeout");
        // The cancellation.
        rig.far_hears(0);
    }
    assert!(breaker.is_open());
    rig.say(near, &call);
    let error = rig.hear(near)["error"].clone();
    assert_eq!(
        error["data"],
        json!({"reason": "upstream_unavailable", "upstream": "far"})
    );
    let why = error["message"].as_str().unwrap();
    assert!(why.contains("failed too often"), "{why}");
    rig.assert_quiet();
}
