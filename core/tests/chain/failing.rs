//! Middleware for servers that are lost or fail.

use std::time::Duration;

use mcpbolt::chain::{Breaker, External, Retry};
use mcpbolt::connection::Framing;
use mcpbolt::mcp::Revision;
use serde_json::{Value, json};

use crate::joined;
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
    rig.answer(0, &list, &tools());
    rig.hear(near);
    (rig, near)
}

fn hinted(name: &str, hint: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {hint: true}})
}

fn tools() -> Value {
    let reads = hinted("reads", "readOnlyHint");
    json!({"tools": [reads, hinted("writes", "destructiveHint")]})
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
            if method == "tools/call" {
                // It may be another version.
                let list = rig.far_hears(1);
                assert_eq!(list["method"], "tools/list");
                rig.answer(1, &list, &tools());
            }
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

/// The server answers a request for its list on that connection.
#[track_caller]
fn lists(rig: &mut Rig, far: usize, hint: &str) {
    let list = rig.far_hears(far);
    assert_eq!(list["method"], "tools/list");
    let tools = json!({"tools": [hinted("a", hint)]});
    rig.answer(far, &list, &tools);
}

/// What a connection lists holds for calls over that connection alone, and is not forgotten when other clients come and go.
#[test]
fn a_call_is_sent_again_if_the_lists_of_both_connections_allow_it() {
    const YES: &str = "idempotentHint";
    const NO: &str = "destructiveHint";
    for (before, after, is_repeated) in [(YES, YES, true), (YES, NO, false), (NO, YES, false)] {
        let mut rig = Rig::changing(OLD, |external| {
            external.with(Retry::new(1).trusting_annotations())
        });
        let near = rig.open(OLD, &json!({}));
        let call = request(1, "tools/call", &json!({"name": "a"}));
        // A list is asked for if none has passed.
        rig.say(near, &call);
        lists(&mut rig, 0, before);
        let called = rig.far_hears(0);
        rig.answer(0, &called, &json!({"content": []}));
        rig.hear(near);
        // Another client, whose connection leads to another version.
        let other = rig.open(OLD, &json!({}));
        rig.say(other, &request(1, "tools/list", &json!({})));
        lists(&mut rig, 1, if before == YES { NO } else { YES });
        rig.hear(other);
        rig.leave(other);
        rig.say(near, &call);
        assert_eq!(rig.far_hears(0)["method"], "tools/call");
        rig.break_off(0);
        if before == YES {
            lists(&mut rig, 2, after);
        }
        if is_repeated {
            let called = rig.far_hears(2);
            assert_eq!(called["method"], "tools/call");
            rig.answer(2, &called, &json!({"content": []}));
        }
        let answer = loop {
            let heard = rig.hear(near);
            // That lists may be others.
            if heard["id"] == 1 {
                break heard;
            }
        };
        let reason = &answer["error"]["data"]["reason"];
        assert_eq!(reason == "upstream_unavailable", !is_repeated, "{answer}");
        rig.nears[near].lines.clear();
        rig.assert_quiet();
    }
}

/// A tool that is not listed, and a list that does not come, are asked about once; the call is sent once.
#[test]
fn a_tool_of_which_nothing_is_known_is_called_once() {
    for is_listed in [true, false] {
        let mut rig = Rig::changing(OLD, |external| {
            external.with(Retry::new(1).trusting_annotations())
        });
        let near = rig.open(OLD, &json!({}));
        for _ in 0..2 {
            rig.say(near, &request(1, "tools/call", &json!({"name": "other"})));
            let mut heard = rig.far_hears(0);
            if heard["method"] == "tools/list" {
                let error = json!({"code": -32603, "message": "no"});
                let line = json!({"jsonrpc": "2.0", "id": heard["id"], "error": error});
                match is_listed {
                    true => rig.answer(0, &heard, &json!({"tools": [hinted("a", "x")]})),
                    false => rig.far_says(0, &line.to_string()),
                }
                heard = rig.far_hears(0);
            }
            assert_eq!(heard["params"]["name"], "other");
            rig.answer(0, &heard, &json!({"content": []}));
            rig.hear(near);
        }
        rig.say(near, &request(1, "tools/call", &json!({"name": "other"})));
        if !is_listed {
            let list = rig.far_hears(0);
            rig.answer(0, &list, &json!({"tools": []}));
        }
        assert_eq!(rig.far_hears(0)["method"], "tools/call");
        rig.break_off(0);
        assert!(rig.hear(near)["error"].is_object());
        rig.assert_quiet();
    }
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

const HOUR: Duration = Duration::from_secs(3600);

/// Two servers, of which `b` is behind a breaker.
fn two(revision: Revision, breaker: &Breaker) -> Rig {
    let guarded = |external: External| match external.name() {
        "b" => external.with(breaker.clone()),
        _ => external,
    };
    let members = [("a", revision), ("b", revision)];
    Rig::joined_over(&members, guarded, |front| front)
}

/// The client asks for the list of all, and `a` gives its own part. Returns the tools of the joined list when it comes, and why it
/// lacks the part of `b`; `b` may have said something meanwhile.
fn listed(rig: &mut Rig, near: usize, b: impl FnOnce(&mut Rig)) -> (Vec<String>, Value) {
    ask(rig, near, "tools/list", json!({}));
    joined::answers(rig, "a", "tools/list", &json!({"tools": [{"name": "x"}]}));
    b(rig);
    let mut result = rig.hear(near)["result"].take();
    let missing = result["_meta"]["dev.mcpbolt/partial"]["b"].take();
    (joined::names(&result["tools"], "name"), missing)
}

#[track_caller]
fn assert_rests(missing: &Value) {
    let why = missing.as_str().unwrap();
    assert!(why.contains("failed too often"), "{why}");
}

/// R-CHN-14: a list does not wait again for a server that was too late twice: when its connection opened, or when it was asked.
#[test]
fn a_list_waits_no_more_for_a_server_that_is_always_late() {
    for opens in [false, true] {
        let breaker = Breaker::new().failures(2, HOUR).rest(HOUR);
        let mut rig = two(OLD, &breaker);
        if !opens {
            rig.silent.push("b");
        }
        let near = rig.connect(Framing::Line);
        for is_open in [false, true] {
            let (tools, missing) = listed(&mut rig, near, |rig| {
                rig.assert_is_waiting(near);
                rig.pass(Duration::from_secs(6));
            });
            assert_eq!(tools, ["a_x"]);
            assert!(missing.as_str().unwrap().contains("\"b\""), "{missing}");
            assert_eq!(breaker.is_open(), is_open);
        }
        let (tools, missing) = listed(&mut rig, near, |_| {});
        assert_eq!(tools, ["a_x"]);
        assert_rests(&missing);
        // Nor does a session that opens.
        if !opens {
            rig.open(OLD, &json!({}));
        }
    }
}

/// A server that cannot be connected to is tried by one request at a time, until it is there again.
#[test]
fn a_server_that_is_there_again_is_in_the_next_list() {
    let rest = Duration::from_millis(50);
    let breaker = Breaker::new().failures(1, HOUR).rest(rest);
    let mut rig = two(NEW, &breaker);
    rig.silent.push("b");
    let near = rig.connect(Framing::Line);
    let refuses = |rig: &mut Rig| {
        rig.step();
        let far = rig.fars.lock().unwrap().len() - 1;
        rig.break_off(far);
    };
    let (_, missing) = listed(&mut rig, near, refuses);
    assert!(!missing.is_null());
    assert!(breaker.is_open());
    let (_, missing) = listed(&mut rig, near, |_| {});
    assert_rests(&missing);
    std::thread::sleep(rest * 2);
    // The list that tries it fails, and others do not wait meanwhile.
    let (_, missing) = listed(&mut rig, near, refuses);
    assert!(!missing.as_str().unwrap().contains("failed too often"));
    assert!(breaker.is_open());
    std::thread::sleep(rest * 2);
    rig.silent.clear();
    let (tools, missing) = listed(&mut rig, near, |rig| {
        let far = rig.fars.lock().unwrap().len() - 1;
        let asked = rig.far_hears(far);
        assert_eq!(asked["method"], "tools/list");
        rig.answer(far, &asked, &json!({"tools": [{"name": "y"}]}));
    });
    assert_eq!(
        (tools, missing),
        (vec!["a_x".into(), "b_y".into()], Value::Null)
    );
    assert!(!breaker.is_open());
}

/// R-CHN-14: sessions open at once while the only server rests, and one of them tries it after that.
#[test]
fn a_session_that_needs_a_connection_tries_a_server_that_rested() {
    let rest = Duration::from_millis(50);
    let breaker = Breaker::new().failures(1, HOUR).rest(rest);
    let mut rig = Rig::changing(OLD, |external| {
        let patience = Duration::from_secs(1);
        external.timeouts(patience, patience).with(breaker.clone())
    });
    let open = |rig: &mut Rig, time| {
        let near = rig.connect(Framing::Line);
        let params = json!({"protocolVersion": OLD.name(), "capabilities": {}, "clientInfo": {"name": "near", "version": "1"}});
        rig.say(near, &request("open", "initialize", &params));
        rig.pass(time);
        rig.hear(near)["error"].take()
    };
    rig.silent.push("far");
    let error = open(&mut rig, Duration::from_secs(2));
    assert_eq!(error["data"]["reason"], "upstream_timeout", "{error}");
    assert!(breaker.is_open());
    let error = open(&mut rig, Duration::ZERO);
    assert!(error["message"].as_str().unwrap().contains("too often"));
    rig.silent.clear();
    std::thread::sleep(rest * 2);
    rig.open(OLD, &json!({}));
    assert!(!breaker.is_open());
}

/// What five clients wait for in vain has failed once.
#[test]
fn an_attempt_to_connect_that_several_clients_wait_for_is_one_failure() {
    let breaker = Breaker::new().failures(2, HOUR).rest(HOUR);
    let own = breaker.clone();
    let mut rig = Rig::changing(NEW, move |external| external.with(own.clone()));
    rig.silent = vec!["far"];
    for far in 0..2 {
        assert!(!breaker.is_open());
        let nears: Vec<_> = (0..5)
            .map(|id| {
                let params = json!({"name": "x"});
                rig.post(&stateless(id, "tools/call", params, &json!({})))
            })
            .collect();
        assert_eq!(rig.fars.lock().unwrap().len(), far + 1);
        rig.break_off(far);
        for near in nears {
            let reason = rig.hear(near)["error"]["data"]["reason"].take();
            assert_eq!(reason, "upstream_unavailable");
        }
    }
    assert!(breaker.is_open());
}

/// Those whose time is up while they wait for one attempt to connect have met one failure, too.
#[test]
fn an_attempt_that_several_clients_give_up_waiting_for_is_one_failure() {
    let breaker = Breaker::new().failures(2, HOUR).rest(HOUR);
    let mut rig = Rig::changing(NEW, |external| {
        let patience = Duration::from_secs(1);
        external.timeouts(patience, patience).with(breaker.clone())
    });
    rig.silent = vec!["far"];
    let nears: Vec<_> = (0..5)
        .map(|id| {
            let params = json!({"name": "x"});
            rig.post(&stateless(id, "tools/call", params, &json!({})))
        })
        .collect();
    rig.pass(Duration::from_secs(2));
    for near in nears {
        let reason = rig.hear(near)["error"]["data"]["reason"].take();
        assert_eq!(reason, "upstream_timeout");
    }
    assert!(!breaker.is_open());
}
