//! Lists that servers allow to be kept: who gets them without the server, and until when (R-CHN-16).

use std::collections::BTreeMap;

use mcpbolt::chain::{Front, Isolation, Middleware, Pins, tool_pin};
use mcpbolt::connection::{Framing, Principal};
use mcpbolt::mcp::{Revision, meta};
use mcpbolt::policy::{Credentials, Policy};
use serde_json::{Value, json};

use crate::joined::{answers, client, hears, names, say};
use crate::rig::{Rig, request, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;
const DAY: u64 = 24 * 3600 * 1000;

fn page(tool: &str, scope: &str) -> Value {
    json!({"tools": [{"name": tool}], "resultType": "complete", "ttlMs": DAY, "cacheScope": scope})
}

fn list(capabilities: &Value) -> String {
    stateless("id", "tools/list", json!({}), capabilities)
}

/// The names of tools that the client hears of next.
#[track_caller]
fn tools(rig: &mut Rig, near: usize) -> Vec<String> {
    names(&rig.hear(near)["result"]["tools"], "name")
}

/// R-CCH-03, R-CCH-04: other clients get a public list, each in the form of its revision; other cursors, other capabilities and
/// params that are not known are asked for.
#[test]
fn a_public_list_is_asked_for_once() {
    let mut rig = Rig::new(NEW, 1);
    let near = rig.connect(Framing::Line);
    rig.say(near, &list(&json!({})));
    let listed = rig.far_hears(0);
    rig.answer(0, &listed, &page("x", "public"));
    assert_eq!(rig.hear(near)["result"]["ttlMs"], DAY);
    for _ in 0..3 {
        let other = rig.post(&list(&json!({})));
        let told = rig.hear(other)["result"].take();
        assert_eq!(told["tools"], json!([{"name": "x"}]));
        assert_eq!(told["cacheScope"], "public");
        let ttl = told["ttlMs"].as_u64().unwrap();
        assert!((DAY / 2..DAY).contains(&ttl), "{ttl}");
    }
    let others = [
        list(&json!({"elicitation": {}})),
        stateless("id", "tools/list", json!({"cursor": "2"}), &json!({})),
        stateless("id", "tools/list", json!({"filter": "x"}), &json!({})),
        stateless(
            "id",
            "tools/list",
            json!({"_meta": {"com.example/x": 1}}),
            &json!({}),
        ),
    ];
    for line in others {
        rig.say(near, &line);
        let listed = rig.far_hears(0);
        rig.answer(0, &listed, &page("y", "public"));
        assert_eq!(tools(&mut rig, near), ["y"], "{line}");
    }

    let (older, _) = rig.open_and_hear_listen(OLD, &json!({}));
    for is_asked in [true, false] {
        rig.say(older, &request(1, "tools/list", &json!({})));
        if is_asked {
            let listed = rig.far_hears(1);
            rig.answer(1, &listed, &page("x", "public"));
        }
        let told = rig.hear(older);
        assert_eq!(told["result"], json!({"tools": [{"name": "x"}]}));
    }
    rig.assert_quiet();
}

/// R-CCH-05: a private list is for one verified client, or for the connection of one that nobody verified.
#[test]
fn a_private_list_is_kept_for_one_client() {
    let verifier = |credentials: &Credentials<'_>| match credentials {
        Credentials::Bearer(name) => Ok(Principal::new(*name)),
        _ => Err("who are you?".to_owned()),
    };
    let mut rig = Rig::with(NEW, 1, |front| {
        front.policy(Policy::new().verifier(verifier))
    });
    let by = |who: &str| {
        let params = json!({"_meta": {"auth": {"type": "bearer", "token": who}}});
        stateless("id", "tools/list", params, &json!({}))
    };
    for (who, is_asked) in [("ada", true), ("bob", true), ("ada", false), ("bob", false)] {
        let near = rig.post(&by(who));
        if is_asked {
            let listed = rig.far_hears(0);
            rig.answer(0, &listed, &page(who, "private"));
        }
        assert_eq!(tools(&mut rig, near), [who]);
    }
    rig.assert_quiet();

    let mut rig = Rig::new(NEW, 1);
    let sessions = [rig.connect(Framing::Line), rig.connect(Framing::Line)];
    for round in 0..2 {
        for (far, near) in sessions.into_iter().enumerate() {
            rig.say(near, &list(&json!({})));
            if round == 0 {
                let listed = rig.far_hears(far);
                rig.answer(far, &listed, &page("own", "private"));
            }
            assert_eq!(tools(&mut rig, near), ["own"]);
        }
    }
    // Nobody knows who these are.
    for _ in 0..2 {
        let near = rig.post(&list(&json!({})));
        let listed = rig.far_hears(2);
        rig.answer(2, &listed, &page("own", "private"));
        assert_eq!(tools(&mut rig, near), ["own"]);
    }
    rig.assert_quiet();
}

/// R-CCH-05: clients that share a connection do not share what is private.
#[test]
fn a_private_list_of_a_shared_connection_is_asked_for_by_each_client() {
    let mut rig = Rig::over(NEW, 1, |external| {
        Front::new(external.isolation(Isolation::Shared))
    });
    for who in ["ada", "bob"] {
        let near = crate::shared::open(&mut rig, &json!({}), None);
        if who == "ada" {
            // Both hear of changes by one stream.
            assert_eq!(rig.far_hears(0)["method"], "subscriptions/listen");
        }
        rig.say(near, &request(1, "tools/list", &json!({})));
        let listed = rig.far_hears(0);
        rig.answer(0, &listed, &page(who, "private"));
        assert_eq!(tools(&mut rig, near), [who]);
    }
}

/// Middleware of a server that says nothing else sees each list, since it may change it for a client.
#[test]
fn a_list_that_middleware_has_to_see_is_not_kept() {
    struct Seeing;
    impl Middleware for Seeing {}
    let mut rig = Rig::changing(NEW, |external| external.with(Seeing));
    for _ in 0..2 {
        let near = rig.post(&list(&json!({})));
        let listed = rig.far_hears(0);
        rig.answer(0, &listed, &page("x", "public"));
        assert_eq!(tools(&mut rig, near), ["x"]);
    }
}

/// R-CCH-07: what a client hears of is true when it asks; and a server that was lost may come back as another one.
#[test]
fn a_change_and_the_loss_of_a_server_end_a_kept_list() {
    let mut rig = Rig::new(NEW, 1);
    let near = rig.connect(Framing::Line);
    let listen = json!({"notifications": {"toolsListChanged": true}});
    rig.say(
        near,
        &stateless("l", "subscriptions/listen", listen, &json!({})),
    );
    let heard = rig.far_hears(0);
    let own = json!({meta::SUBSCRIPTION_ID: heard["id"]});
    for (round, tool) in ["first", "second"].into_iter().enumerate() {
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": own}});
        if round > 0 {
            rig.far_says(0, &changed.to_string());
            assert_eq!(rig.hear(near)["method"], "notifications/tools/list_changed");
        }
        for is_asked in [true, false] {
            rig.say(near, &list(&json!({})));
            if is_asked {
                let listed = rig.far_hears(0);
                rig.answer(0, &listed, &page(tool, "public"));
            }
            assert_eq!(tools(&mut rig, near), [tool]);
        }
    }
    // An answer that a change has overtaken is not kept.
    let other = rig.post(&list(&json!({"sampling": {}})));
    let listed = rig.far_hears(1);
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": own}});
    rig.far_says(0, &changed.to_string());
    assert_eq!(rig.hear(near)["method"], "notifications/tools/list_changed");
    rig.answer(1, &listed, &page("old", "public"));
    assert_eq!(tools(&mut rig, other), ["old"]);
    let other = rig.post(&list(&json!({"sampling": {}})));
    let listed = rig.far_hears(1);
    rig.answer(1, &listed, &page("third", "public"));
    assert_eq!(tools(&mut rig, other), ["third"]);

    rig.break_off(1);
    let other = rig.post(&list(&json!({"sampling": {}})));
    let listed = rig.far_hears(2);
    rig.answer(2, &listed, &page("fourth", "public"));
    assert_eq!(tools(&mut rig, other), ["fourth"]);
}

/// Of several servers only those are asked whose part is not kept; a list that lacks a part is kept by nobody.
#[test]
fn a_list_of_several_servers_is_made_of_kept_parts() {
    for is in [OLD, NEW] {
        let mut rig = Rig::joined(&[("a", NEW), ("b", NEW), ("c", OLD)]);
        let near = client(&mut rig, is);
        let ask = |rig: &mut Rig, asked: &[(&str, &str)]| {
            say(rig, near, is, "tools/list", json!({}));
            for (server, tool) in asked {
                answers(rig, server, "tools/list", &page(tool, "public"));
            }
            tools(rig, near)
        };
        let all = [("a", "x"), ("b", "x"), ("c", "x")];
        assert_eq!(ask(&mut rig, &all), ["a_x", "b_x", "c_x"]);
        // The server of the handshake era does not say how long its list may be kept.
        assert_eq!(ask(&mut rig, &[("c", "y")]), ["a_x", "b_x", "c_y"]);

        let mut rig = Rig::joined(&[("a", NEW), ("b", NEW)]);
        let near = client(&mut rig, is);
        say(&mut rig, near, is, "tools/list", json!({}));
        answers(&mut rig, "a", "tools/list", &page("x", "public"));
        let heard = hears(&mut rig, "b");
        let failed = json!({"jsonrpc": "2.0", "id": heard["id"], "error": {"code": -32603, "message": "no"}});
        let b = rig.far("b");
        rig.far_says(b, &failed.to_string());
        assert_eq!(tools(&mut rig, near), ["a_x"]);
        say(&mut rig, near, is, "tools/list", json!({}));
        answers(&mut rig, "b", "tools/list", &page("x", "private"));
        assert_eq!(tools(&mut rig, near), ["a_x", "b_x"]);
        say(&mut rig, near, is, "tools/list", json!({}));
        let told = rig.hear(near)["result"].take();
        assert_eq!(names(&told["tools"], "name"), ["a_x", "b_x"]);
        if is == NEW {
            assert_eq!(told["cacheScope"], "private");
        }
        rig.assert_only_listens();
    }
}

/// R-CCH-10: what a client may see is decided for each, whoever the list was kept from.
#[test]
fn a_kept_list_shows_each_client_what_it_may_see() {
    let verifier = |credentials: &Credentials<'_>| match credentials {
        Credentials::Bearer("ada") => Ok(Principal::new("ada").with_scopes(["s"])),
        Credentials::Bearer(name) => Ok(Principal::new(*name)),
        _ => Err("who are you?".to_owned()),
    };
    let policy = || {
        Policy::new()
            .verifier(verifier)
            .scope("x", "s")
            .filter_lists()
    };
    let mut rig = Rig::with(NEW, 1, |front| front.policy(policy()));
    for (round, (who, sees)) in [("ada", vec!["x"]), ("bob", vec![]), ("ada", vec!["x"])]
        .into_iter()
        .enumerate()
    {
        let params = json!({"_meta": {"auth": {"type": "bearer", "token": who}}});
        let near = rig.post(&stateless("id", "tools/list", params, &json!({})));
        if round == 0 {
            let listed = rig.far_hears(0);
            rig.answer(0, &listed, &page("x", "public"));
        }
        let told = rig.hear(near)["result"].take();
        assert_eq!(names(&told["tools"], "name"), sees, "{who}");
        assert_eq!(told["cacheScope"], "private");
    }
    rig.assert_quiet();
}

/// Without room nothing is kept.
#[test]
fn a_front_may_keep_no_lists() {
    let mut rig = Rig::with(NEW, 1, |front| front.list_cache(0));
    for _ in 0..2 {
        let near = rig.post(&list(&json!({})));
        let listed = rig.far_hears(0);
        rig.answer(0, &listed, &page("x", "public"));
        assert_eq!(tools(&mut rig, near), ["x"]);
    }
}

/// What middleware of the server hides is hidden in kept lists, and what it refuses is refused to those who got one; until the list
/// changes.
#[test]
fn a_kept_list_has_the_tools_that_are_as_they_were_pinned() {
    let described =
        |name: &str, description: &str| json!({"name": name, "description": description});
    let pins = ["a", "b"].map(|name| {
        let pin = tool_pin(&described(name, "pinned").to_string());
        (name.to_owned(), pin)
    });
    let mut rig = Rig::changing(NEW, |external| {
        external.with(Pins::new("far", BTreeMap::from(pins.clone()), |_| {}))
    });
    let answer = |rig: &mut Rig, far: usize, a: &str| {
        let listed = rig.far_hears(far);
        assert_eq!(listed["method"], "tools/list");
        let mut page = page("new", "public");
        page["tools"] = json!([
            described("a", a),
            described("b", "other"),
            described("c", "")
        ]);
        rig.answer(far, &listed, &page);
    };
    let near = rig.connect(Framing::Line);
    rig.say(near, &list(&json!({})));
    answer(&mut rig, 0, "pinned");
    assert_eq!(tools(&mut rig, near), ["a"]);
    // Another client, whose connection has yet to open, gets the list, and calls what the server has there.
    let other = rig.connect(Framing::Line);
    rig.say(other, &list(&json!({})));
    assert_eq!(tools(&mut rig, other), ["a"]);
    let call = |tool: &str| stateless("id", "tools/call", json!({"name": tool}), &json!({}));
    rig.say(other, &call("a"));
    answer(&mut rig, 1, "pinned");
    let called = rig.far_hears(1);
    assert_eq!(called["method"], "tools/call");
    rig.answer(1, &called, &json!({"content": []}));
    assert!(rig.hear(other)["error"].is_null());
    for tool in ["b", "c"] {
        rig.say(other, &call(tool));
        assert_eq!(rig.hear(other)["error"]["code"], -32602);
    }
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    rig.far_says(0, &changed.to_string());
    rig.say(other, &list(&json!({})));
    answer(&mut rig, 1, "drifted");
    assert_eq!(tools(&mut rig, other), [""; 0]);
    for near in [near, other] {
        rig.say(near, &list(&json!({})));
        assert_eq!(tools(&mut rig, near), [""; 0]);
    }
    rig.say(other, &call("a"));
    let why = rig.hear(other)["error"]["message"].take();
    assert!(why.as_str().unwrap().ends_with("is not what was pinned"));
    rig.assert_quiet();
}
