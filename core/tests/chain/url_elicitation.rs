//! Users that have to visit pages before a request can go on: an error in 2025-11-25, a round in 2026-07-28.

use std::time::Duration;

use mcpbolt::chain::{Front, Isolation};
use mcpbolt::connection::{Framing, Principal};
use mcpbolt::mcp::Revision;
use mcpbolt::policy::{Credentials, Policy};
use serde_json::{Value, json};

use crate::rig::{Rig, request, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;

fn page(id: &str) -> Value {
    json!({"mode": "url", "elicitationId": id, "url": format!("https://example.com/{id}"), "message": "Log in"})
}

fn can_visit() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}})
}

/// The server refuses the request until these pages are visited.
fn refuse(rig: &mut Rig, far: usize, heard: &Value, pages: &[Value]) -> Value {
    let error = json!({"code": -32042, "message": "visit first", "data": {"elicitations": pages}});
    let line = json!({"jsonrpc": "2.0", "id": heard["id"], "error": error});
    rig.far_says(far, &line.to_string());
    error
}

fn call(more: &Value, capabilities: &Value) -> String {
    let mut params = json!({"name": "x", "arguments": {"a": 1}});
    let more = more.as_object().unwrap().clone();
    params.as_object_mut().unwrap().extend(more);
    stateless("call", "tools/call", params, capabilities)
}

/// The params of the retry with which a client answers all questions of a round, which are those of these pages.
fn answered(round: &Value, pages: &[Value], action: &str) -> Value {
    let result = &round["result"];
    assert_eq!(result["resultType"], "input_required", "{round}");
    let mut responses = json!({});
    let requests = result["inputRequests"].as_object().unwrap();
    for ((key, request), page) in requests.iter().zip(pages) {
        let mut page = page.clone();
        page.as_object_mut().unwrap().remove("elicitationId");
        assert_eq!(
            (&request["method"], &request["params"]),
            (&json!("elicitation/create"), &page)
        );
        responses[key] = json!({"action": action});
    }
    assert_eq!(requests.len(), pages.len());
    json!({"requestState": result["requestState"], "inputResponses": responses})
}

/// R-CHN-12, R-ERR-05: the client is asked for all pages at once, and the server gets the request again when its user has
/// finished, or after a while if it does not say so.
#[test]
fn a_server_that_wants_pages_visited_gets_the_request_again() {
    for says_finished in [true, false] {
        let mut rig = Rig::new(OLD, 1);
        let near = rig.post(&call(&json!({}), &can_visit()));
        // The first connection tells the era of the server.
        let first = rig.far_hears(1);
        let pages = [page("one"), page("two")];
        refuse(&mut rig, 1, &first, &pages);
        let round = rig.hear(near);
        let retry = answered(&round, &pages, "accept");
        let near = rig.post(&call(&retry, &can_visit()));
        for id in ["one", "two", "another"] {
            rig.assert_is_waiting(near);
            assert!(rig.fars.lock().unwrap()[1].lines.is_empty());
            if says_finished {
                rig.far_says(1, &finished(id));
                if id == "two" {
                    break;
                }
            }
        }
        if !says_finished {
            rig.pass(Duration::from_secs(21));
        }
        let again = rig.far_hears(1);
        assert_eq!(again["params"], first["params"]);
        assert_ne!(again["id"], first["id"]);
        rig.answer(1, &again, &json!({"content": []}));
        assert_eq!(rig.hear(near)["result"]["resultType"], "complete");
        rig.assert_quiet();
    }
}

/// R-ERR-05: the server may say that the user has finished before the call has learnt of the page, as another call has had it visited.
#[test]
fn a_call_does_not_wait_for_a_page_that_is_finished_already() {
    for is_lost in [false, true] {
        let mut rig = Rig::new(OLD, 1);
        let near = rig.connect(Framing::Line);
        rig.say(near, &call(&json!({}), &can_visit()));
        let mut heard = rig.far_hears(0);
        rig.far_says(0, &finished("one"));
        let far = usize::from(is_lost);
        if is_lost {
            // Another server may give another page this id.
            rig.break_off(0);
            rig.hear(near);
            rig.say(near, &call(&json!({}), &can_visit()));
            heard = rig.far_hears(far);
        }
        refuse(&mut rig, far, &heard, &[page("one")]);
        let round = rig.hear(near);
        let retry = answered(&round, &[page("one")], "accept");
        rig.say(near, &call(&retry, &can_visit()));
        if is_lost {
            assert!(rig.fars.lock().unwrap()[far].lines.is_empty());
            rig.pass(Duration::from_secs(21));
        }
        let again = rig.far_hears(far);
        assert_eq!(again["params"], heard["params"]);
        rig.answer(far, &again, &json!({"content": []}));
        assert_eq!(rig.hear(near)["result"]["resultType"], "complete");
        rig.assert_quiet();
    }
}

/// The end of a visit lets a call go on once. A server that names the page again is to say again that the user has finished.
#[test]
fn a_page_that_is_named_again_is_waited_for() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.connect(Framing::Line);
    rig.say(near, &call(&json!({}), &can_visit()));
    let mut heard = rig.far_hears(0);
    rig.far_says(0, &finished("one"));
    for is_again in [false, true] {
        refuse(&mut rig, 0, &heard, &[page("one")]);
        let round = rig.hear(near);
        let retry = answered(&round, &[page("one")], "accept");
        rig.say(near, &call(&retry, &can_visit()));
        if is_again {
            rig.assert_is_waiting(near);
            assert!(rig.fars.lock().unwrap()[0].lines.is_empty());
            rig.far_says(0, &finished("one"));
        }
        heard = rig.far_hears(0);
    }
    rig.answer(0, &heard, &json!({"content": []}));
    assert_eq!(rig.hear(near)["result"]["resultType"], "complete");
    rig.assert_quiet();
}

fn finished(id: &str) -> String {
    let params = json!({"elicitationId": id});
    let method = "notifications/elicitation/complete";
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// Two calls of one client that need the same page go on when its user has finished with it, though one of them is given up
/// or comes later.
#[test]
fn calls_that_wait_for_one_page_go_on_together() {
    for is_given_up in [false, true] {
        let mut rig = Rig::new(OLD, 1);
        let near = rig.connect(Framing::Line);
        let pages = [page("one")];
        let mut calls = Vec::new();
        let say = |rig: &mut Rig, id: u64, more: &Value| {
            let mut line: Value = serde_json::from_str(&call(more, &can_visit())).unwrap();
            line["id"] = id.into();
            rig.say(near, &line.to_string());
        };
        for id in [1, 2] {
            say(&mut rig, id, &json!({}));
            let heard = rig.far_hears(0);
            refuse(&mut rig, 0, &heard, &pages);
            let round = rig.hear(near);
            say(&mut rig, id + 2, &answered(&round, &pages, "accept"));
            rig.assert_is_waiting(near);
            calls.push(heard);
        }
        if is_given_up {
            let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}});
            rig.say(near, &cancel.to_string());
        }
        rig.far_says(0, &finished("one"));
        let left = if is_given_up { 1 } else { 2 };
        for _ in 0..left {
            let again = rig.far_hears(0);
            assert_eq!(again["method"], "tools/call");
            rig.answer(0, &again, &json!({"content": []}));
            assert_eq!(rig.hear(near)["result"]["resultType"], "complete");
        }
        rig.assert_quiet();
    }
}

/// R-CHN-07: of those that share a connection, the session hears the end whose user was sent to the page: by a request of the
/// server, or by an error.
#[test]
fn the_end_of_a_visit_reaches_the_session_whose_user_it_was() {
    let verifier = |credentials: &Credentials<'_>| match credentials {
        Credentials::Bearer(name) => Ok::<_, String>(Principal::new(*name)),
        _ => Ok(Principal::new("anybody")),
    };
    let mut rig = Rig::over(OLD, 1, |external| {
        let front = Front::new(external.isolation(Isolation::Principal));
        front.policy(Policy::new().verifier(verifier))
    });
    let nears = [0, 1, 2].map(|_| rig.open(OLD, &can_visit()));
    assert_eq!(rig.fars.lock().unwrap().len(), 1);
    for (near, by_error) in [(0, true), (1, false), (2, true)] {
        let id = near.to_string();
        let near = nears[near];
        rig.say(near, &request(1, "tools/call", &json!({"name": "x"})));
        let heard = rig.far_hears(0);
        if by_error {
            refuse(&mut rig, 0, &heard, &[page(&id)]);
            assert_eq!(rig.hear(near)["error"]["code"], -32042);
            continue;
        }
        rig.far_says(0, &request("q", "elicitation/create", &page(&id)));
        let asked = rig.hear(near);
        assert_eq!(asked["params"]["elicitationId"], id);
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}});
        rig.say(near, &answer.to_string());
        assert_eq!(rig.far_hears(0)["id"], "q");
        rig.answer(0, &heard, &json!({"content": []}));
        rig.hear(near);
    }
    for near in [1, 0, 2] {
        rig.far_says(0, &finished(&near.to_string()));
        let heard = rig.hear(nears[near]);
        assert_eq!(heard["params"], json!({"elicitationId": near.to_string()}));
        rig.assert_quiet();
    }
    // It has been told, and this is nobody's.
    for id in ["1", "7"] {
        rig.far_says(0, &finished(id));
        rig.assert_quiet();
    }
}

/// A user who does not want to, a client that leaves, and a client that opens no pages.
#[test]
fn a_page_that_is_not_visited_ends_the_call() {
    let mut rig = Rig::new(OLD, 1);
    let pages = [page("one")];
    for action in ["decline", "cancel"] {
        let near = rig.post(&call(&json!({}), &can_visit()));
        let heard = rig.far_hears(1);
        refuse(&mut rig, 1, &heard, &pages);
        let round = rig.hear(near);
        let near = rig.post(&call(&answered(&round, &pages, action), &can_visit()));
        let error = rig.hear(near)["error"].take();
        assert_eq!(
            (&error["code"], &error["data"]["reason"]),
            (&json!(-32603), &json!("elicitation_declined"))
        );
    }
    let near = rig.post(&call(&json!({}), &can_visit()));
    let heard = rig.far_hears(1);
    refuse(&mut rig, 1, &heard, &pages);
    rig.hear(near);
    rig.pass(Duration::from_secs(3601));
    rig.assert_quiet();

    for (pages, code) in [(&pages[..], -32021), (&[], -32603)] {
        let near = rig.post(&call(&json!({}), &json!({"elicitation": {}})));
        rig.step();
        let far = rig.fars.lock().unwrap().len() - 1;
        let heard = rig.far_hears(far);
        refuse(&mut rig, far, &heard, pages);
        assert_eq!(rig.hear(near)["error"]["code"], code);
    }
    rig.assert_quiet();
}

/// R-MRT-12
#[test]
fn a_server_that_wants_pages_visited_without_end_is_given_up() {
    let mut rig = Rig::new(OLD, 1);
    let (mut more, mut rounds) = (json!({}), 0);
    let error = loop {
        let near = rig.post(&call(&more, &can_visit()));
        rig.pass(Duration::from_secs(21));
        rig.step();
        if !rig.nears[near].lines.is_empty() {
            break rig.hear(near)["error"].take();
        }
        let heard = rig.far_hears(1);
        let pages = [page("one")];
        refuse(&mut rig, 1, &heard, &pages);
        let round = rig.hear(near);
        more = answered(&round, &pages, "accept");
        rounds += 1;
    };
    assert_eq!(
        (rounds, &error["data"]["reason"]),
        (10, &json!("upstream_answer_not_valid"))
    );
}

/// R-ERR-25, R-CHN-17: within 2025-11-25 the error is passed on as it is; a server of 2026-07-28 must not give it, and no client
/// of 2026-07-28 gets it.
#[test]
fn the_error_is_for_clients_of_the_handshake_era() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.open(OLD, &can_visit());
    rig.say(near, &request(1, "tools/call", &json!({"name": "x"})));
    let heard = rig.far_hears(0);
    let error = refuse(&mut rig, 0, &heard, &[page("one")]);
    assert_eq!(rig.hear(near)["error"], error);

    let mut rig = Rig::new(NEW, 1);
    let near = rig.post(&call(&json!({}), &can_visit()));
    let heard = rig.far_hears(0);
    refuse(&mut rig, 0, &heard, &[page("one")]);
    assert_eq!(rig.hear(near)["error"]["code"], -32603);
}

/// R-CHN-13: a client of the handshake era that opens no pages is told so, instead of its user being asked nothing.
#[test]
fn a_client_that_opens_no_pages_is_told_that_it_should() {
    let mut rig = Rig::new(NEW, 1);
    let near = rig.open(OLD, &json!({"elicitation": {}}));
    rig.say(near, &request(1, "tools/call", &json!({"name": "x"})));
    let heard = rig.far_hears(0);
    let mut page = page("one");
    page.as_object_mut().unwrap().remove("elicitationId");
    let wanted = json!({"q": {"method": "elicitation/create", "params": page}});
    let result = json!({"resultType": "input_required", "inputRequests": wanted});
    rig.answer(0, &heard, &result);
    let error = rig.hear(near)["error"].take();
    assert_eq!(error["code"], -32600);
    let lacks = &error["data"]["requiredCapabilities"];
    assert_eq!(lacks, &json!({"elicitation": {"url": {}}}));
    rig.assert_quiet();
}
