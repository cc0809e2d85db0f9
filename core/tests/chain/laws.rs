//! What holds for every message: bytes, ids, answers, addressees.

use std::time::Duration;

use mcpbolt::connection::{Framing, Principal};
use mcpbolt::mcp::{Revision, meta};
use mcpbolt::policy::{Credentials, Policy};
use serde_json::{Value, json};

use crate::rig::{Rig, request, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;

/// Params of a call and results of one alike.
const ODD: [&str; 4] = [
    r#"{ "b" : 1e2, "a":[ 1.0 ,-0,"\u0041\/" ],"a":2,"name":"x","content":[] }"#,
    r#"{"name":"x","content":[],"arguments":{"q":"é😀","deep":[[[[{}]]]]}}"#,
    r#"{"unknown":null,"name":"x","content":[],"_meta":{ "own":  {"x" : 1} , "traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" }}"#,
    r#"{"name":"\u0078","content":[]}"#,
];

/// The params with the number of hops where a hop adds it.
fn with_hops(params: &str, hops: usize) -> String {
    let own = format!("\"dev.mcpbolt/hops\":{hops}");
    let (at, text) = match params.find("\"_meta\":{") {
        Some(at) => (at + "\"_meta\":{".len(), format!("{own},")),
        None => (1, format!("\"_meta\":{{{own}}},")),
    };
    format!("{}{text}{}", &params[..at], &params[at..])
}

/// R-CHN-10, R-CHN-07, R-CHN-21, R-MET-11, R-ANN-04.
#[test]
fn params_and_results_pass_byte_for_byte_through_one_two_and_five_hops() {
    for hops in [1, 2, 5] {
        for revision in [Revision::V2024_11_05, OLD] {
            let mut rig = Rig::new(revision, hops);
            let near = rig.open(revision, &json!({}));
            for params in ODD {
                let head = r#"{"jsonrpc":"2.0","id":"\u006fne","method":"tools/call","params":"#;
                rig.say(near, &format!("{head}{params}}}"));
                let arrived = rig.far_line(0);
                let message: Value = serde_json::from_str(&arrived).unwrap();
                let expected = with_hops(params, hops);
                let id = &message["id"];
                assert_eq!(
                    arrived,
                    format!(
                        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{expected}}}"#
                    )
                );
                rig.far_says(
                    0,
                    &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{params}}}"#),
                );
                let answer = rig.hear_line(near);
                assert_eq!(
                    answer,
                    format!(r#"{{"jsonrpc":"2.0","id":"\u006fne","result":{params}}}"#)
                );
            }
            rig.assert_quiet();
        }
    }
}

/// R-CHN-10 in the stateless era: the envelope of the client is the one that arrives.
#[test]
fn the_envelope_of_a_stateless_request_passes_unchanged() {
    for hops in [1, 2, 5] {
        let mut rig = Rig::new(NEW, hops);
        let near = rig.connect(Framing::Line);
        let line = stateless(
            7,
            "tools/call",
            json!({"name": "x"}),
            &json!({"sampling": {}}),
        );
        rig.say(near, &line);
        let arrived = rig.far_line(0);
        let expected: Value = serde_json::from_str(&line).unwrap();
        let mut expected = expected["params"].clone();
        expected["_meta"]["dev.mcpbolt/hops"] = hops.into();
        let arrived: Value = serde_json::from_str(&arrived).unwrap();
        assert_eq!(arrived["params"], expected);
        let result = json!({"resultType": "complete", "content": []});
        rig.answer(0, &arrived, &result);
        assert_eq!(
            rig.hear(near),
            json!({"jsonrpc": "2.0", "id": 7, "result": result})
        );
    }
}

/// R-CHN-07: reports of progress find the client by its own token, and none follows the answer.
#[test]
fn progress_tokens_are_each_hops_own() {
    for (near_is_new, far) in [(false, OLD), (true, OLD), (false, NEW), (true, NEW)] {
        let mut rig = Rig::new(far, 1);
        let clients: Vec<_> = (0..2)
            .map(|_| match near_is_new {
                true => rig.connect(Framing::Line),
                false => rig.open(OLD, &json!({})),
            })
            .collect();
        let params = json!({"name": "x", "_meta": {"progressToken": "same"}});
        let mut asked = Vec::new();
        for (far, near) in clients.iter().enumerate() {
            let line = match near_is_new {
                true => stateless(1, "tools/call", params.clone(), &json!({})),
                false => request(1, "tools/call", &params),
            };
            rig.say(*near, &line);
            let arrived = rig.far_hears(far);
            assert_eq!(arrived["params"]["_meta"]["progressToken"], arrived["id"]);
            asked.push((far, arrived));
        }
        for ((far, arrived), near) in asked.iter().zip(&clients) {
            let token = &arrived["id"];
            let report = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 0.5, "own": [far]}});
            rig.far_says(*far, &report.to_string());
            let heard = rig.hear(*near);
            assert_eq!(
                heard["params"],
                json!({"progressToken": "same", "progress": 0.5, "own": [far]})
            );
            rig.answer(*far, arrived, &json!({"content": []}));
            assert_eq!(rig.hear(*near)["id"], 1);
            rig.far_says(*far, &report.to_string());
        }
        rig.assert_quiet();
    }
}

/// R-CAN-12: a cancellation goes to the one request of the one server, with its id and its reason.
#[test]
fn cancellations_go_to_the_one_request_with_equal_ids_everywhere() {
    let mut rig = Rig::new(OLD, 1);
    let clients = [rig.open(OLD, &json!({})), rig.open(OLD, &json!({}))];
    let mut ids = Vec::new();
    for (far, near) in clients.into_iter().enumerate() {
        rig.say(near, &request("same", "tools/call", &json!({"name": "x"})));
        ids.push(rig.far_hears(far)["id"].clone());
    }
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "same", "reason": "enough"}});
    rig.say(clients[1], &cancel.to_string());
    let heard = rig.far_hears(1);
    assert_eq!(
        heard["params"],
        json!({"requestId": ids[1], "reason": "enough"})
    );
    // Again, of something unknown, and after the answer: dropped.
    rig.say(clients[1], &cancel.to_string());
    rig.answer(1, &json!({"id": ids[1]}), &json!({}));
    rig.answer(0, &json!({"id": ids[0]}), &json!({"content": []}));
    assert_eq!(rig.hear(clients[0])["id"], "same");
    rig.say(clients[0], &cancel.to_string());
    rig.assert_quiet();
}

/// Questions of the server go to the client whose call caused them, and both sides may cancel them.
#[test]
fn questions_find_the_client_of_the_call_and_are_withdrawn() {
    let mut rig = Rig::new(OLD, 1);
    let capabilities = json!({"sampling": {}});
    let clients = [rig.open(OLD, &capabilities), rig.open(OLD, &capabilities)];
    for (far, near) in clients.into_iter().enumerate() {
        assert_eq!(
            rig.fars.lock().unwrap()[far].capabilities,
            capabilities,
            "R-CHN-09"
        );
        rig.say(near, &request(1, "tools/call", &json!({"name": "x"})));
        rig.far_hears(far);
    }
    let ask = |id: &str| {
        request(
            id,
            "sampling/createMessage",
            &json!({"messages": [], "maxTokens": 1, "_meta": {"progressToken": id}}),
        )
    };
    rig.far_says(1, &ask("same"));
    rig.far_says(0, &ask("same"));
    for (far, near) in clients.into_iter().enumerate() {
        let question = rig.hear(near);
        assert_eq!(question["method"], "sampling/createMessage");
        assert_eq!(question["params"]["_meta"]["progressToken"], question["id"]);
        let report = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": question["id"], "progress": 1}});
        rig.say(near, &report.to_string());
        assert_eq!(
            rig.far_hears(far)["params"],
            json!({"progressToken": "same", "progress": 1})
        );
        let said = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"by": near}});
        rig.say(near, &said.to_string());
        assert_eq!(
            rig.far_hears(far),
            json!({"jsonrpc": "2.0", "id": "same", "result": {"by": near}})
        );
    }
    rig.far_says(0, &ask("late"));
    let question = rig.hear(clients[0]);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "late"}});
    rig.far_says(0, &cancel.to_string());
    assert_eq!(rig.hear(clients[0])["params"]["requestId"], question["id"]);
    // What was not declared is not asked.
    rig.far_says(0, &request(3, "roots/list", &json!({})));
    assert_eq!(rig.far_hears(0)["error"]["code"], -32601);
    rig.assert_quiet();
}

/// R-CHN-14: the calls in flight fail at once, the session gets another connection with its subscriptions, and the client
/// hears that the lists may have changed.
#[test]
fn a_lost_server_fails_its_calls_and_comes_back() {
    for far in [OLD, NEW] {
        let mut rig = Rig::new(far, 1);
        let near = rig.open(OLD, &json!({}));
        rig.say(
            near,
            &request(1, "resources/subscribe", &json!({"uri": "a:b"})),
        );
        let arrived = rig.far_hears(0);
        match far {
            OLD => rig.answer(0, &arrived, &json!({})),
            // One stream has it all. The one before ends when this one is acknowledged, and then the client is answered.
            _ => {
                let filter = &arrived["params"]["notifications"];
                assert_eq!(filter["resourceSubscriptions"], json!(["a:b"]));
                assert_eq!(filter["toolsListChanged"], true);
                assert!(rig.nears[near].lines.is_empty());
                let params = json!({"notifications": filter, "_meta": {meta::SUBSCRIPTION_ID: arrived["id"]}});
                let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params});
                rig.far_says(0, &acknowledged.to_string());
                assert_eq!(rig.far_hears(0)["method"], "notifications/cancelled");
            }
        }
        assert_eq!(rig.hear(near)["result"], json!({}));
        rig.say(near, &request(2, "tools/call", &json!({"name": "x"})));
        rig.far_hears(0);
        rig.break_off(0);
        let failed = rig.hear(near);
        assert_eq!(
            (&failed["id"], &failed["error"]["code"]),
            (&json!(2), &json!(-32603))
        );
        assert_eq!(
            failed["error"]["data"],
            json!({"reason": "upstream_unavailable", "upstream": "far"})
        );
        rig.pass(Duration::from_secs(1));
        rig.step();
        let restored = rig.far_line(1);
        assert!(restored.contains("a:b"), "{restored}");
        let told: Vec<_> = (0..3).map(|_| rig.hear(near)["method"].clone()).collect();
        assert!(
            told.contains(&json!("notifications/tools/list_changed")),
            "{told:?}"
        );
        rig.say(near, &request(3, "tools/list", &json!({})));
        let arrived = rig.far_hears(1);
        rig.answer(1, &arrived, &json!({"tools": []}));
        assert_eq!(rig.hear(near)["id"], 3);
        rig.assert_quiet();
    }
}

/// R-CHN-09: a server of the stateless era asks a client of the handshake era only what the client declares.
#[test]
fn what_the_client_has_not_declared_is_not_asked_in_a_round() {
    let mut rig = Rig::new(NEW, 1);
    let near = rig.open(OLD, &json!({"sampling": {}}));
    for (id, method) in ["roots/list", "tools/call", "own/method"]
        .iter()
        .enumerate()
    {
        rig.say(near, &request(id, "tools/call", &json!({"name": "x"})));
        let arrived = rig.far_hears(0);
        let asked = json!({"q": {"method": method, "params": {}}});
        let result = json!({"resultType": "input_required", "inputRequests": asked});
        rig.answer(0, &arrived, &result);
        let told = rig.hear(near);
        let reason = &told["error"]["data"]["reason"];
        assert_eq!(reason, "upstream_answer_not_valid", "{told}");
    }
    rig.assert_quiet();
}

/// R-CHN-12: a subscription holds when the server has acknowledged it, and not when it refuses or says nothing.
#[test]
fn a_subscription_that_the_server_does_not_acknowledge_fails() {
    let mut rig = Rig::new(NEW, 1);
    let near = rig.open(OLD, &json!({}));
    let subscribe = |id: u64| request(id, "resources/subscribe", &json!({"uri": "a:b"}));
    rig.say(near, &subscribe(1));
    let arrived = rig.far_hears(0);
    let error = json!({"code": -32602, "message": "no such resource"});
    let refusal = json!({"jsonrpc": "2.0", "id": arrived["id"], "error": error});
    rig.far_says(0, &refusal.to_string());
    let told = rig.hear(near)["error"]["message"].to_string();
    assert!(told.contains("no such resource"), "{told}");
    rig.say(near, &subscribe(2));
    let arrived = rig.far_hears(0);
    rig.pass(Duration::from_secs(61));
    assert_eq!(
        rig.hear(near)["error"]["data"]["reason"],
        "upstream_timeout"
    );
    assert_eq!(rig.far_hears(0)["params"]["requestId"], arrived["id"]);
    rig.assert_quiet();
}

/// R-CHN-14, R-CAN-09: the server is told to stop, and the client gets one answer.
#[test]
fn a_server_that_does_not_answer_in_time_is_cancelled() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.open(OLD, &json!({}));
    rig.say(near, &request(1, "tools/call", &json!({"name": "x"})));
    let arrived = rig.far_hears(0);
    rig.pass(Duration::from_secs(61));
    assert_eq!(rig.far_hears(0)["params"]["requestId"], arrived["id"]);
    let answer = rig.hear(near);
    assert_eq!(answer["error"]["data"]["reason"], "upstream_timeout");
    rig.answer(0, &arrived, &json!({}));
    rig.assert_quiet();
}

/// R-CHN-21.
#[test]
fn a_request_that_goes_in_a_circle_is_refused() {
    let mut rig = Rig::with(OLD, 1, |front| front.max_hops(3));
    let near = rig.open(OLD, &json!({}));
    let with = |hops: u64| {
        request(
            hops,
            "tools/list",
            &json!({"_meta": {"dev.mcpbolt/hops": hops}}),
        )
    };
    rig.say(near, &with(3));
    let refused = rig.hear(near);
    assert_eq!(refused["error"]["code"], -32600);
    assert_eq!(refused["error"]["data"]["reason"], "too_many_hops");
    rig.say(near, &with(2));
    assert_eq!(rig.far_hears(0)["params"]["_meta"]["dev.mcpbolt/hops"], 3);
    // A `_meta` that is no object does not hide the count.
    for odd in [json!(null), json!([])] {
        rig.say(
            near,
            &request(
                odd.to_string(),
                "tools/list",
                &json!({"_meta": odd, "x": 1}),
            ),
        );
        let line = rig.far_line(0);
        let params = r#""params":{"x":1,"_meta":{"dev.mcpbolt/hops":1}}"#;
        assert!(line.contains(params), "{line}");
    }
}

/// R-CHN-17, R-ERR-16: between the eras the code says so, within the older one the data.
#[test]
fn a_capability_that_is_missing_is_named_in_either_era() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.connect(Framing::Line);
    rig.say(
        near,
        &stateless(1, "tools/call", json!({"name": "x"}), &json!({})),
    );
    let arrived = rig.far_hears(0);
    let data = json!({"requiredCapabilities": {"sampling": {}}});
    let error = json!({"code": -32600, "message": "needs sampling", "data": data});
    rig.far_says(
        0,
        &json!({"jsonrpc": "2.0", "id": arrived["id"], "error": error}).to_string(),
    );
    let heard = rig.hear(near);
    assert_eq!(
        (&heard["error"]["code"], &heard["error"]["data"]),
        (&json!(-32021), &data)
    );
}

/// R-CHN-17, F-03.
#[test]
fn error_codes_are_those_of_the_clients_era() {
    for (far, near_is_new, sent, told) in [
        (OLD, false, -32002, -32002),
        (OLD, false, -32050, -32050),
        (OLD, true, -32002, -32602),
        (OLD, true, -32050, -32603),
        (OLD, true, -31000, -31000),
        (NEW, true, -32021, -32021),
        (NEW, false, -32021, -32600),
        (NEW, false, -32602, -32602),
    ] {
        let mut rig = Rig::new(far, 1);
        let (near, line) = match near_is_new {
            true => (
                rig.connect(Framing::Line),
                stateless(1, "resources/read", json!({"uri": "a:b"}), &json!({})),
            ),
            false => (
                rig.open(OLD, &json!({})),
                request(1, "resources/read", &json!({"uri": "a:b"})),
            ),
        };
        rig.say(near, &line);
        let arrived = rig.far_hears(0);
        let error = json!({"code": sent, "message": "no", "data": {"x": 1}});
        rig.far_says(
            0,
            &json!({"jsonrpc": "2.0", "id": arrived["id"], "error": error}).to_string(),
        );
        let heard = rig.hear(near);
        assert_eq!(
            heard["error"],
            json!({"code": told, "message": "no", "data": {"x": 1}})
        );
    }
}

/// A server without batches gets the elements one by one (R-CHN-18).
#[test]
fn a_batch_is_split_and_each_element_is_answered_once() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.open(Revision::V2025_03_26, &json!({}));
    let one = |id: u64| request(id, "tools/call", &json!({"name": "x"}));
    rig.say(near, &format!("[{},{}]", one(1), one(2)));
    let (first, second) = (rig.far_hears(0), rig.far_hears(0));
    rig.answer(0, &second, &json!({"n": 2}));
    rig.answer(0, &first, &json!({"n": 1}));
    for n in [2, 1] {
        let heard = rig.hear(near);
        assert_eq!(
            (&heard["id"], &heard["result"]),
            (&json!(n), &json!({"n": n}))
        );
    }
    rig.assert_quiet();
}

/// R-CHN-15: the token of a client appears nowhere on the other side, in either era, whether or not this side verifies it.
#[test]
fn the_token_of_a_client_stays_at_the_front() {
    const CANARY: &str = "canary-7c1f";
    let eras = [(OLD, false), (OLD, true), (NEW, false), (NEW, true)];
    let cases = eras.map(|(far, near)| [(far, near, true), (far, near, false)]);
    for (far, near_is_new, verifies) in cases.into_iter().flatten() {
        let mut rig = Rig::with(far, 1, |front| {
            if !verifies {
                return front;
            }
            front.policy(Policy::new().verifier(|credentials| match credentials {
                Credentials::Bearer(CANARY) => Ok(Principal::new("ada")),
                _ => Err("who are you?".to_owned()),
            }))
        });
        let auth = json!({"type": "bearer", "token": CANARY});
        let params = json!({"name": "x", "_meta": {"auth": auth, "own": 1}});
        let (near, line) = match near_is_new {
            true => (
                rig.connect(Framing::Line),
                stateless(1, "tools/call", params.clone(), &json!({})),
            ),
            false => {
                let near = rig.connect(Framing::Line);
                let info = json!({"name": "near", "version": "1"});
                let hello = json!({"protocolVersion": OLD.name(), "capabilities": {}, "clientInfo": info, "_meta": {"auth": auth}});
                rig.say(near, &request(0, "initialize", &hello));
                assert_eq!(rig.hear(near)["result"]["protocolVersion"], OLD.name());
                (near, request(1, "tools/call", &params))
            }
        };
        // Names are compared decoded.
        rig.say(near, &line.replace("\"auth\"", r#""\u0061uth""#));
        let told = json!({"jsonrpc": "2.0", "method": "notifications/own", "params": params});
        let mut heard = vec![rig.far_line(0)];
        rig.say(near, &told.to_string());
        heard.push(rig.far_line(0));
        for arrived in heard {
            assert!(arrived.contains("\"own\":1"), "{arrived}");
            assert!(!arrived.contains(CANARY), "{arrived}");
        }
        rig.break_off(0);
        let failed = rig.hear_line(near);
        assert!(failed.contains("upstream_unavailable") && !failed.contains(CANARY));
    }
}

/// R-SUB-04: the id of a stream is that of the request on its hop.
#[test]
fn streams_with_equal_ids_are_kept_apart() {
    let mut rig = Rig::new(NEW, 1);
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let clients: Vec<_> = (0..2)
        .map(|_| {
            rig.post(&stateless(
                "same",
                "subscriptions/listen",
                filter.clone(),
                &json!({}),
            ))
        })
        .collect();
    let asked: Vec<_> = clients.iter().map(|_| rig.far_hears(0)).collect();
    for (arrived, near) in asked.iter().zip(&clients).rev() {
        let own = json!({meta::SUBSCRIPTION_ID: arrived["id"]});
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": own}});
        rig.far_says(0, &changed.to_string());
        let heard = rig.hear(*near);
        assert_eq!(heard["params"]["_meta"][meta::SUBSCRIPTION_ID], "same");
    }
    rig.answer(
        0,
        &asked[0],
        &json!({"resultType": "complete", "_meta": {meta::SUBSCRIPTION_ID: asked[0]["id"]}}),
    );
    assert_eq!(
        rig.hear(clients[0])["result"]["_meta"][meta::SUBSCRIPTION_ID],
        "same"
    );
    // R-CAN-06: the other client is gone.
    rig.leave(clients[1]);
    assert_eq!(rig.far_hears(0)["params"]["requestId"], asked[1]["id"]);
    rig.assert_quiet();
}
