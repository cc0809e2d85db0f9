//! Clients that share a connection to the server, as its operator has declared: what each asks for is kept apart.

use std::time::{Duration, Instant};

use mcpbolt::chain::{Front, Isolation};
use mcpbolt::connection::{Framing, Principal};
use mcpbolt::mcp::{Revision, meta};
use mcpbolt::policy::{Credentials, Policy};
use serde_json::{Value, json};

use crate::rig::{Rig, request, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;
const UPDATED: &str = "notifications/resources/updated";
const CHANGED: &str = "notifications/tools/list_changed";

/// A front whose clients all share a connection.
fn shared(far: Revision) -> Rig {
    Rig::over(far, 1, |external| {
        Front::new(external.isolation(Isolation::Shared))
    })
}

/// Opens a session of the handshake era with the client's capabilities.
pub fn open(rig: &mut Rig, capabilities: &Value, who: Option<&str>) -> usize {
    let near = rig.connect(Framing::Line);
    let mut params = json!({"protocolVersion": OLD.name(), "capabilities": capabilities, "clientInfo": {"name": "near", "version": "1"}});
    if let Some(who) = who {
        params["_meta"]["auth"] = json!({"type": "bearer", "token": who});
    }
    rig.say(near, &request("open", "initialize", &params));
    assert!(rig.hear(near)["result"].is_object());
    rig.say(
        near,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    );
    near
}

fn say(rig: &mut Rig, near: usize, method: &str, params: &Value) {
    rig.say(near, &request(1, method, params));
}

fn tell(rig: &mut Rig, method: &str, params: &Value) {
    let told = json!({"jsonrpc": "2.0", "method": method, "params": params});
    rig.far_says(0, &told.to_string());
}

fn count(rig: &Rig) -> usize {
    rig.fars.lock().unwrap().len()
}

/// The server is asked for something and answers.
#[track_caller]
fn serve(rig: &mut Rig, near: usize, method: &str, params: &Value) -> Value {
    say(rig, near, method, params);
    let heard = rig.far_hears(0);
    assert_eq!(
        (&heard["method"], &heard["params"]["uri"]),
        (&json!(method), &params["uri"])
    );
    rig.answer(0, &heard, &json!({}));
    assert!(rig.hear(near)["result"].is_object());
    heard
}

/// R-CHN-07: ids, progress tokens and cancellations, of clients of both eras with equal ids and tokens.
#[test]
fn clients_with_equal_ids_and_tokens_share_a_connection() {
    let mut rig = shared(OLD);
    let nears = [
        open(&mut rig, &json!({}), None),
        open(&mut rig, &json!({"sampling": {}}), None),
        rig.connect(Framing::Line),
    ];
    let mut calls = Vec::new();
    for (index, near) in nears.into_iter().enumerate() {
        let params = json!({"name": index.to_string(), "_meta": {"progressToken": "t"}});
        match index {
            2 => rig.say(near, &stateless(1, "tools/call", params, &json!({}))),
            _ => say(&mut rig, near, "tools/call", &params),
        }
        calls.push(rig.far_hears(0));
    }
    assert_eq!(count(&rig), 1);
    for (index, near) in nears.into_iter().enumerate().rev() {
        let token = &calls[index]["params"]["_meta"]["progressToken"];
        tell(
            &mut rig,
            "notifications/progress",
            &json!({"progressToken": token, "progress": index}),
        );
        let heard = rig.hear(near);
        assert_eq!(
            heard["params"],
            json!({"progressToken": "t", "progress": index})
        );
    }
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    rig.say(nears[1], &cancel.to_string());
    assert_eq!(rig.far_hears(0)["params"]["requestId"], calls[1]["id"]);
    for index in [2, 0] {
        rig.answer(0, &calls[index], &json!({"content": [], "of": index}));
        assert_eq!(rig.hear(nears[index])["result"]["of"], index);
    }
    rig.assert_quiet();
}

/// Each hears of its own resources alone, and all of lists. The server ends a subscription when nobody has it any more.
#[test]
fn subscriptions_are_kept_apart_and_end_with_the_last() {
    let mut rig = shared(OLD);
    let [one, two] = [0, 1].map(|_| open(&mut rig, &json!({}), None));
    let (a, b) = (json!({"uri": "x:a"}), json!({"uri": "x:b"}));
    serve(&mut rig, one, "resources/subscribe", &a);
    serve(&mut rig, two, "resources/subscribe", &a);
    serve(&mut rig, two, "resources/subscribe", &b);
    tell(&mut rig, UPDATED, &a);
    assert_eq!(
        [rig.hear(one), rig.hear(two)].map(|it| it["params"]["uri"].clone()),
        ["x:a", "x:a"]
    );
    tell(&mut rig, UPDATED, &b);
    assert_eq!(rig.hear(two)["params"]["uri"], "x:b");
    tell(&mut rig, CHANGED, &json!({}));
    assert_eq!(
        [rig.hear(one), rig.hear(two)].map(|it| it["method"].clone()),
        [CHANGED, CHANGED]
    );
    // Tasks would be those of all, and this is for one client.
    tell(
        &mut rig,
        "notifications/tasks/status",
        &json!({"taskId": "t", "status": "working"}),
    );
    rig.assert_quiet();

    // The other one still has it.
    say(&mut rig, one, "resources/unsubscribe", &a);
    assert_eq!(rig.hear(one)["result"], json!({}));
    tell(&mut rig, UPDATED, &a);
    assert_eq!(rig.hear(two)["params"]["uri"], "x:a");
    serve(&mut rig, two, "resources/unsubscribe", &a);
    rig.leave(two);
    let ended = rig.far_hears(0);
    assert_eq!(
        (&ended["method"], &ended["params"]),
        (&json!("resources/unsubscribe"), &b)
    );
    rig.answer(0, &ended, &json!({}));
    tell(&mut rig, UPDATED, &b);
    say(&mut rig, one, "tasks/list", &json!({}));
    assert_eq!(rig.hear(one)["error"]["code"], -32601);
    rig.assert_quiet();
}

/// R-CHN-07: what the server grants one client, another one on the same connection does not hear of, neither while the server has not
/// decided about that one nor when it has refused.
#[test]
fn a_client_hears_of_what_was_granted_to_it() {
    let policy = || {
        Policy::new().verifier(|credentials: &Credentials<'_>| match credentials {
            Credentials::Bearer(name) => Ok(Principal::new(*name)),
            _ => Err("who is it?".to_owned()),
        })
    };
    let mut rig = Rig::over(OLD, 1, |external| {
        Front::new(external.isolation(Isolation::Shared)).policy(policy())
    });
    let a = json!({"uri": "x:a"});
    let [ada, eve] = ["ada", "eve"].map(|who| {
        let near = rig.connect(Framing::Line);
        let auth = json!({"auth": {"type": "bearer", "token": who}});
        let params = json!({"notifications": {"resourceSubscriptions": ["x:a"]}, "_meta": auth});
        rig.say(
            near,
            &stateless(1, "subscriptions/listen", params, &json!({})),
        );
        let heard = rig.far_hears(0);
        assert_eq!(
            (&heard["method"], &heard["params"]),
            (&json!("resources/subscribe"), &a)
        );
        (near, heard)
    });
    let granted = |rig: &mut Rig, near| rig.hear(near)["params"]["notifications"].take();
    rig.answer(0, &ada.1, &json!({}));
    assert_eq!(
        granted(&mut rig, ada.0),
        json!({"resourceSubscriptions": ["x:a"]})
    );
    tell(&mut rig, UPDATED, &a);
    assert_eq!(rig.hear(ada.0)["method"], UPDATED);
    rig.assert_quiet();
    let error = json!({"code": -31996, "message": "more has to be granted for this"});
    let refused = json!({"jsonrpc": "2.0", "id": eve.1["id"], "error": error});
    rig.far_says(0, &refused.to_string());
    // R-SUB-03
    assert_eq!(granted(&mut rig, eve.0), json!({}));
    tell(&mut rig, UPDATED, &a);
    assert_eq!(rig.hear(ada.0)["method"], UPDATED);
    rig.assert_quiet();
    // It ends with the last that has it.
    rig.leave(eve.0);
    rig.assert_quiet();
    rig.leave(ada.0);
    assert_eq!(rig.far_hears(0)["method"], "resources/unsubscribe");
    rig.assert_quiet();
}

/// The server has the least severe level of all, and each client hears what it wants.
#[test]
fn log_levels_are_kept_apart() {
    let mut rig = shared(OLD);
    let [one, two] = [0, 1].map(|_| open(&mut rig, &json!({}), None));
    for (near, level, is_told) in [
        (one, "warning", true),
        (two, "debug", true),
        (one, "error", false),
    ] {
        say(&mut rig, near, "logging/setLevel", &json!({"level": level}));
        assert_eq!(rig.hear(near)["result"], json!({}));
        if is_told {
            let heard = rig.far_hears(0);
            assert_eq!(heard["params"]["level"], level);
            rig.answer(0, &heard, &json!({}));
        }
    }
    let log = |level: &str| json!({"level": level, "data": "x"});
    for (near, hears) in [(one, vec!["error"]), (two, vec!["info", "error"])] {
        say(&mut rig, near, "tools/call", &json!({"name": "x"}));
        let heard = rig.far_hears(0);
        for level in ["info", "error"] {
            tell(&mut rig, "notifications/message", &log(level));
        }
        for level in hears {
            assert_eq!(rig.hear(near)["params"]["level"], level);
        }
        rig.answer(0, &heard, &json!({"content": []}));
        assert_eq!(rig.hear(near)["id"], 1);
    }
    // Nobody knows whose these are.
    tell(&mut rig, "notifications/message", &log("error"));
    rig.assert_quiet();
}

/// R-CHN-14: what each had is restored once, and each hears that lists may be others.
#[test]
fn a_lost_server_is_restored_for_all_that_share_it() {
    for far in [OLD, NEW] {
        let mut rig = shared(far);
        let [one, two] = [0, 1].map(|_| open(&mut rig, &json!({}), None));
        for (near, uri) in [(one, "x:a"), (two, "x:b"), (two, "x:a")] {
            say(&mut rig, near, "resources/subscribe", &json!({"uri": uri}));
            let heard = loop {
                let heard = rig.far_hears(0);
                let wanted = heard["params"]["notifications"]["resourceSubscriptions"].to_string();
                if heard["method"] == "resources/subscribe" || wanted.contains(uri) {
                    break heard;
                }
            };
            match far {
                OLD => rig.answer(0, &heard, &json!({})),
                _ => acknowledge(&mut rig, 0, &heard),
            }
            assert_eq!(rig.hear(near)["result"], json!({}));
        }
        rig.break_off(0);
        rig.pass(Duration::from_secs(1));
        rig.step();
        assert_eq!(count(&rig), 2);
        let mut uris = Vec::new();
        match far {
            OLD => {
                for _ in 0..2 {
                    uris.push(rig.far_hears(1)["params"]["uri"].clone());
                }
            }
            _ => {
                let filter = rig.far_hears(1)["params"]["notifications"].take();
                uris.extend(filter["resourceSubscriptions"].as_array().unwrap().clone());
            }
        }
        assert_eq!(uris, ["x:a", "x:b"]);
        for near in [one, two] {
            let heard: Vec<_> = (0..3).map(|_| rig.hear(near)["method"].clone()).collect();
            assert!(heard.contains(&json!(CHANGED)), "{heard:?}");
        }
        assert!(rig.nears.iter().all(|near| near.lines.is_empty()));
        assert!(rig.fars.lock().unwrap()[1].lines.is_empty());
    }
}

/// R-CHN-14: not when the wait for the next attempt is over, but when the server is there again, whoever finds that out.
#[test]
fn a_lost_server_is_restored_as_soon_as_a_call_has_found_it_again() {
    for far in [OLD, NEW] {
        let mut rig = shared(far);
        let near = open(&mut rig, &json!({}), None);
        say(
            &mut rig,
            near,
            "resources/subscribe",
            &json!({"uri": "x:a"}),
        );
        let heard = loop {
            let heard = rig.far_hears(0);
            if heard.to_string().contains("x:a") {
                break heard;
            }
        };
        match far {
            OLD => rig.answer(0, &heard, &json!({})),
            _ => acknowledge(&mut rig, 0, &heard),
        }
        assert_eq!(rig.hear(near)["result"], json!({}));
        rig.break_off(0);
        say(&mut rig, near, "tools/call", &json!({"name": "x"}));
        let heard: Vec<_> = (0..2).map(|_| rig.far_hears(1).to_string()).collect();
        assert!(heard.iter().any(|line| line.contains("tools/call")));
        assert!(heard.iter().any(|line| line.contains("x:a")), "{heard:?}");
        assert_eq!(count(&rig), 2);
    }
}

/// R-CHN-14: a server that cannot take a subscription back at once is asked again.
#[test]
fn a_subscription_is_restored_though_the_server_fails_at_first() {
    let mut rig = shared(OLD);
    let near = open(&mut rig, &json!({}), None);
    for uri in ["x:a", "x:b", "x:c"] {
        serve(&mut rig, near, "resources/subscribe", &json!({"uri": uri}));
    }
    rig.break_off(0);
    rig.pass(Duration::from_secs(1));
    rig.step();
    let [a, b, c] = [0, 1, 2].map(|_| rig.far_hears(1));
    let refuse = |rig: &mut Rig, heard: &Value, code: i64| {
        let error = json!({"code": code, "message": "not now"});
        let line = json!({"jsonrpc": "2.0", "id": heard["id"], "error": error});
        rig.far_says(1, &line.to_string());
    };
    rig.answer(1, &a, &json!({}));
    refuse(&mut rig, &b, -32603);
    // It is gone.
    refuse(&mut rig, &c, -32002);
    rig.pass(Duration::from_millis(249));
    assert!(rig.fars.lock().unwrap()[1].lines.is_empty());
    rig.pass(Duration::from_millis(1));
    let again = rig.far_hears(1);
    assert_eq!(again["params"], b["params"]);
    // No answer comes.
    rig.pass(Duration::from_secs(3600));
    assert_eq!(rig.far_hears(1)["method"], "notifications/cancelled");
    rig.pass(Duration::from_secs(1));
    let again = rig.far_hears(1);
    assert_eq!(again["params"], b["params"]);
    refuse(&mut rig, &again, -32603);
    rig.nears[near].lines.clear();
    say(
        &mut rig,
        near,
        "resources/unsubscribe",
        &json!({"uri": "x:b"}),
    );
    let ended = rig.far_hears(1);
    assert_eq!(ended["method"], "resources/unsubscribe");
    rig.answer(1, &ended, &json!({}));
    rig.hear(near);
    rig.pass(Duration::from_secs(3600));
    rig.assert_quiet();
}

fn acknowledge(rig: &mut Rig, far: usize, listen: &Value) {
    let own = json!({meta::SUBSCRIPTION_ID: listen["id"]});
    let params = json!({"notifications": listen["params"]["notifications"], "_meta": own});
    let told = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params});
    rig.far_says(far, &told.to_string());
}

/// A server of the stateless era hears what each client declares, and its questions reach the one that it asks.
#[test]
fn a_server_of_the_stateless_era_hears_of_each_client() {
    let mut rig = shared(NEW);
    let one = open(&mut rig, &json!({"elicitation": {}}), None);
    let two = open(&mut rig, &json!({}), None);
    for (near, declared) in [(two, json!({})), (one, json!({"elicitation": {}}))] {
        say(&mut rig, near, "tools/call", &json!({"name": "x"}));
        let heard = loop {
            let heard = rig.far_hears(0);
            if heard["method"] == "tools/call" {
                break heard;
            }
        };
        assert_eq!(
            heard["params"]["_meta"][meta::CLIENT_CAPABILITIES],
            declared
        );
        let question = json!({"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object"}}});
        let asks = json!({"resultType": "input_required", "inputRequests": {"q": question}});
        rig.answer(0, &heard, &asks);
        let told = rig.hear(near);
        match near == one {
            true => assert_eq!(told["method"], "elicitation/create"),
            false => assert_eq!(told["error"]["data"]["reason"], "upstream_answer_not_valid"),
        }
    }
    assert_eq!(count(&rig), 1);
}

/// R-POL-01, R-CHN-09: one connection for each verified client and what it declares. A question is put to the only call under way, and to
/// nobody if it could be another one's.
#[test]
fn the_sessions_of_a_principal_share_a_connection() {
    let verifier = |credentials: &Credentials<'_>| match credentials {
        Credentials::Bearer(name) => Ok::<_, String>(Principal::new(*name)),
        _ => Ok(Principal::new("anybody")),
    };
    let mut rig = Rig::over(OLD, 1, |external| {
        let front = Front::new(external.isolation(Isolation::Principal));
        front.policy(Policy::new().verifier(verifier))
    });
    let asks = json!({"elicitation": {}, "roots": {"listChanged": true}});
    let ada = [0, 1].map(|_| open(&mut rig, &asks, Some("ada")));
    assert_eq!(count(&rig), 1);
    let bob = open(&mut rig, &asks, Some("bob"));
    assert_eq!(count(&rig), 2);
    open(&mut rig, &json!({}), Some("ada"));
    assert_eq!(count(&rig), 3);
    // What one session says of its roots is not said for the other.
    let declared = rig.fars.lock().unwrap()[0].capabilities.clone();
    assert_eq!(declared, json!({"elicitation": {}, "roots": {}}));
    rig.say(
        ada[0],
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
    );
    rig.assert_quiet();

    let by = |who: &str| json!({"name": "x", "_meta": {"auth": {"type": "bearer", "token": who}}});
    let question = |id: &str| {
        request(
            id,
            "elicitation/create",
            &json!({"message": id, "requestedSchema": {"type": "object"}}),
        )
    };
    say(&mut rig, bob, "tools/call", &by("bob"));
    say(&mut rig, ada[1], "tools/call", &by("ada"));
    let call = rig.far_hears(0);
    rig.far_says(0, &question("first"));
    let asked = rig.hear(ada[1]);
    assert_eq!(asked["params"]["message"], "first");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}});
    rig.say(ada[1], &answer.to_string());
    let answer = rig.far_hears(0);
    assert_eq!(
        (&answer["id"], &answer["result"]["action"]),
        (&json!("first"), &json!("decline"))
    );
    say(&mut rig, ada[0], "tools/call", &by("ada"));
    rig.far_hears(0);
    rig.far_says(0, &question("second"));
    assert_eq!(rig.far_hears(0)["error"]["code"], -32601);
    rig.answer(0, &call, &json!({"content": []}));
    assert_eq!(rig.hear(ada[1])["id"], 1);
}

/// Connections of all clients together, of which each may be a process.
#[test]
fn connections_to_a_server_are_bounded_in_number() {
    let mut rig = Rig::over(OLD, 1, |external| Front::new(external.max_connections(2)));
    let [one, _] = [0, 1].map(|_| rig.open(OLD, &json!({})));
    let near = rig.connect(Framing::Line);
    let params = json!({"protocolVersion": OLD.name(), "capabilities": {}, "clientInfo": {"name": "near", "version": "1"}});
    rig.say(near, &request("open", "initialize", &params));
    let error = rig.hear(near)["error"].take();
    assert_eq!(error["data"]["reason"], "upstream_overloaded", "{error}");
    // What is left of a connection, such as a process that has yet to end, has its place for as long.
    rig.leave(one);
    let near = rig.connect(Framing::Line);
    rig.say(near, &request("open", "initialize", &params));
    rig.assert_is_waiting(near);
    assert_eq!(count(&rig), 2);
    rig.carrier_ends(0);
    assert!(rig.hear(near)["error"].is_null());
    assert_eq!(count(&rig), 3);
}

/// R-CHN-14: a server that ends soon after it has begun is not started by each call.
#[test]
fn a_server_that_ends_again_and_again_is_started_later_and_later() {
    let mut rig = shared(OLD);
    for far in 0..3 {
        let near = rig.post(&stateless(
            1,
            "tools/call",
            json!({"name": "x"}),
            &json!({}),
        ));
        rig.far_hears(far);
        rig.break_off(far);
        assert_eq!(
            rig.hear(near)["error"]["data"]["reason"],
            "upstream_unavailable"
        );
    }
    let begun = Instant::now();
    loop {
        let near = rig.post(&stateless(
            1,
            "tools/call",
            json!({"name": "x"}),
            &json!({}),
        ));
        rig.step();
        if count(&rig) > 3 {
            break;
        }
        assert_eq!(
            rig.hear(near)["error"]["data"]["reason"],
            "upstream_unavailable"
        );
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "it is not started again"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(begun.elapsed() >= Duration::from_millis(200));
}
