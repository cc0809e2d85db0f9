//! Several servers as one: what each client sees of them, and what it does not notice.

use std::time::Duration;

use mcpbolt::chain::{External, Front, Prefix};
use mcpbolt::connection::Framing;
use mcpbolt::mcp::{Era, Revision, meta};
use mcpbolt::server::Server;
use serde_json::{Value, json};

use crate::rig::{Rig, request, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;
const PARTIAL: &str = "dev.mcpbolt/partial";

/// A client of that revision that has opened its session, if it has one.
pub fn client(rig: &mut Rig, revision: Revision) -> usize {
    match revision.era() {
        Era::Handshake => rig.open(revision, &json!({})),
        Era::Stateless => rig.connect(Framing::Line),
    }
}

pub fn say(rig: &mut Rig, near: usize, revision: Revision, method: &str, params: Value) {
    let line = match revision.era() {
        Era::Handshake => request("id", method, &params),
        Era::Stateless => stateless("id", method, params, &json!({})),
    };
    rig.say(near, &line);
}

/// The next line that the server hears, but for the streams that the front listens to.
pub fn hears(rig: &mut Rig, name: &str) -> Value {
    let far = rig.far(name);
    loop {
        let heard = rig.far_hears(far);
        if heard["method"] != "subscriptions/listen" {
            return heard;
        }
    }
}

/// The server answers the next request.
pub fn answers(rig: &mut Rig, name: &str, method: &str, result: &Value) -> Value {
    let heard = hears(rig, name);
    assert_eq!(heard["method"], method);
    let far = rig.far(name);
    rig.answer(far, &heard, result);
    heard
}

pub fn names(list: &Value, name: &str) -> Vec<String> {
    let elements = list.as_array().unwrap().iter();
    elements
        .map(|one| one[name].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn servers_whose_names_could_be_the_same_are_refused() {
    let server = Server::builder("x", "1").build().unwrap();
    let external = |name: &str, prefix: &str| {
        let external = External::server(name, &server);
        match prefix {
            "" => external,
            prefix => external.prefix(Prefix::new(prefix).unwrap()),
        }
    };
    for (one, other, is_refused) in [
        (("a", ""), ("b", ""), true),
        (("a", ""), ("a", "a"), true),
        (("a", "a"), ("b", "a"), true),
        (("a", "a"), ("b", "a_b"), true),
        (("a", "git"), ("b", "Git"), true),
        (("a", "A_b"), ("b", "a"), true),
        (("a", "a_b"), ("b", "a"), true),
        (("a", "a"), ("b", "a-b"), false),
        (("a", "a"), ("b", "ab"), false),
        (("a", ""), ("b", "b"), false),
    ] {
        let front = Front::new(external(one.0, one.1));
        let joined = front.join(external(other.0, other.1));
        assert_eq!(joined.is_err(), is_refused, "{one:?} {other:?}");
    }
}

/// Parsers of URLs take the prefix of `http://PREFIX/a` for a host, and write `http://7/` as `http://0.0.0.7/`.
#[test]
fn prefixes_that_are_other_hosts_in_uris_are_refused() {
    for prefix in [
        "7",
        "0127",
        "0x7f",
        "0X",
        "localhost",
        "xn--a",
        "Xn--",
        "",
        "a.b",
        "ä",
    ] {
        assert!(Prefix::new(prefix).is_err(), "{prefix:?}");
    }
    for prefix in ["a7", "7a", "0xg", "x0", "7-", "_7", "xn-a"] {
        assert!(Prefix::new(prefix).is_ok(), "{prefix:?}");
    }
}

/// R-NAM-01: a tool whose name is too long with the prefix is left out and named.
#[test]
fn tools_whose_names_are_too_long_with_the_prefix_are_left_out() {
    let (fits, long) = ("x".repeat(126), "y".repeat(127));
    let page = json!({"tools": [{"name": long}, {"name": fits}, {"name": "z"}], "_meta": {"a": 1}});
    let too_long = json!([format!("a_{long}")]);
    for far in [OLD, NEW] {
        let mut rig = Rig::joined(&[("a", far), ("b", far)]);
        let near = client(&mut rig, OLD);
        say(&mut rig, near, OLD, "tools/list", json!({}));
        answers(&mut rig, "a", "tools/list", &page);
        answers(&mut rig, "b", "tools/list", &json!({"tools": []}));
        let told = rig.hear(near)["result"].take();
        assert_eq!(
            names(&told["tools"], "name"),
            [format!("a_{fits}"), "a_z".to_owned()]
        );
        assert_eq!(told["_meta"]["dev.mcpbolt/tooLong"], too_long);

        let mut rig = Rig::with(far, 1, |front| front.with(Prefix::new("a").unwrap()));
        let near = client(&mut rig, OLD);
        say(&mut rig, near, OLD, "tools/list", json!({}));
        answers(&mut rig, "far", "tools/list", &page);
        let told = rig.hear(near)["result"].take();
        assert_eq!(
            names(&told["tools"], "name"),
            [format!("a_{fits}"), "a_z".to_owned()]
        );
        assert_eq!(
            told["_meta"],
            json!({"a": 1, "dev.mcpbolt/tooLong": too_long})
        );
    }
}

/// In every combination of eras: lists are those of all servers, page by page, and what they name reaches the server that has it
/// (R-CHN-11, R-NAM-03).
#[test]
fn lists_are_merged_and_calls_reach_the_server_of_the_name() {
    for (near_is, a, b) in [
        (OLD, OLD, NEW),
        (NEW, NEW, OLD),
        (OLD, OLD, OLD),
        (NEW, NEW, NEW),
    ] {
        let mut rig = Rig::joined(&[("a", a), ("b", b), ("plain", a)]);
        let near = client(&mut rig, near_is);
        say(&mut rig, near, near_is, "tools/list", json!({}));
        let page = |tools: Value, cursor: &str| match cursor {
            "" => json!({"tools": tools}),
            cursor => json!({"tools": tools, "nextCursor": cursor}),
        };
        answers(
            &mut rig,
            "a",
            "tools/list",
            &page(json!([{"name": "x"}]), "two"),
        );
        answers(
            &mut rig,
            "b",
            "tools/list",
            &page(json!([{"name": "x"}, {"name": "y"}]), ""),
        );
        // The prefix of another server hides the first one of these.
        let plain = json!([{"name": "a_x"}, {"name": "x"}]);
        answers(&mut rig, "plain", "tools/list", &page(plain, "é\""));
        let first = rig.hear(near)["result"].take();
        assert_eq!(names(&first["tools"], "name"), ["a_x", "b_x", "b_y", "x"]);
        assert_eq!(first["_meta"].get(PARTIAL), None, "{first}");
        assert_eq!(first.get("resultType").is_some(), near_is == NEW);
        let next = json!({"cursor": first["nextCursor"]});
        say(&mut rig, near, near_is, "tools/list", next);
        let asked = answers(
            &mut rig,
            "a",
            "tools/list",
            &page(json!([{"name": "z"}]), ""),
        );
        assert_eq!(asked["params"]["cursor"], "two");
        let asked = answers(&mut rig, "plain", "tools/list", &page(json!([]), ""));
        assert_eq!(asked["params"]["cursor"], "é\"");
        let second = rig.hear(near)["result"].take();
        assert_eq!(names(&second["tools"], "name"), ["a_z"]);
        assert_eq!(second.get("nextCursor"), None);

        for (outer, server, inner) in [
            ("a_x", "a", "x"),
            ("b_a_x", "b", "a_x"),
            ("x", "plain", "x"),
            ("c_x", "plain", "c_x"),
        ] {
            say(
                &mut rig,
                near,
                near_is,
                "tools/call",
                json!({"name": outer}),
            );
            let link = json!({"type": "resource_link", "uri": "u://v", "name": "w"});
            let result = json!({"content": [link]});
            let heard = answers(&mut rig, server, "tools/call", &result);
            assert_eq!(heard["params"]["name"], inner);
            let told = rig.hear(near)["result"]["content"][0]["uri"].take();
            let outer = if server == "plain" {
                "u://v".into()
            } else {
                format!("u://{server}/v")
            };
            assert_eq!(told, outer);
        }
        rig.assert_only_listens();
    }
}

/// Prompts, resources, templates, completion and tasks, too.
#[test]
fn everything_that_has_a_name_reaches_its_server() {
    let mut rig = Rig::joined(&[("a", OLD), ("b", OLD)]);
    let near = client(&mut rig, OLD);
    for (method, params, inner) in [
        ("prompts/get", json!({"name": "b_x"}), json!({"name": "x"})),
        (
            "resources/read",
            json!({"uri": "u://b/x"}),
            json!({"uri": "u://x"}),
        ),
        (
            "resources/read",
            json!({"uri": "via:b/urn:x"}),
            json!({"uri": "urn:x"}),
        ),
        (
            "resources/subscribe",
            json!({"uri": "u://b/x"}),
            json!({"uri": "u://x"}),
        ),
        (
            "resources/unsubscribe",
            json!({"uri": "u://b/x"}),
            json!({"uri": "u://x"}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "b_x"}, "argument": {}}),
            json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {}}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "u://b/{x}"}, "argument": {}}),
            json!({"ref": {"type": "ref/resource", "uri": "u://{x}"}, "argument": {}}),
        ),
        (
            "tasks/get",
            json!({"taskId": "b_1"}),
            json!({"taskId": "1"}),
        ),
        (
            "tasks/cancel",
            json!({"taskId": "b_1"}),
            json!({"taskId": "1"}),
        ),
    ] {
        rig.say(near, &request("id", method, &params));
        let mut heard = answers(&mut rig, "b", method, &json!({"taskId": "1"}));
        heard["params"].as_object_mut().unwrap().remove("_meta");
        assert_eq!(heard["params"], inner, "{method}");
        let told = rig.hear(near)["result"].take();
        let is_task = method.starts_with("tasks");
        assert_eq!(told["taskId"], if is_task { "b_1" } else { "1" });
    }
    for (method, params, code) in [
        ("tools/call", json!({"name": "x"}), -32602),
        ("resources/read", json!({"uri": "u://x"}), -32002),
        ("tasks/get", json!({"taskId": "1"}), -32602),
        ("tools/call", json!({"name": 1}), -32602),
        ("tools/list", json!({"cursor": "x"}), -32602),
        ("other/method", json!({}), -32601),
    ] {
        rig.say(near, &request("ping", "ping", &json!({})));
        assert_eq!(rig.hear(near)["result"], json!({}));
        rig.say(near, &request("id", method, &params));
        assert_eq!(rig.hear(near)["error"]["code"], code, "{method}");
    }
    for (method, element, member) in [
        ("prompts/list", json!({"name": "x"}), "prompts"),
        ("resources/list", json!({"uri": "u://x"}), "resources"),
        (
            "resources/templates/list",
            json!({"uriTemplate": "{+x}"}),
            "resourceTemplates",
        ),
    ] {
        rig.say(near, &request("id", method, &json!({})));
        for name in ["a", "b"] {
            answers(&mut rig, name, method, &json!({member: [element]}));
        }
        let list = rig.hear(near)["result"][member].take();
        let key = element.as_object().unwrap().keys().next().unwrap();
        let expected = match member {
            "prompts" => ["a_x", "b_x"],
            "resources" => ["u://a/x", "u://b/x"],
            _ => ["via:a/{+x}", "via:b/{+x}"],
        };
        assert_eq!(names(&list, key), expected);
    }
    // The level is for all.
    rig.say(
        near,
        &request("id", "logging/setLevel", &json!({"level": "error"})),
    );
    for name in ["a", "b"] {
        answers(&mut rig, name, "logging/setLevel", &json!({}));
    }
    assert_eq!(rig.hear(near)["result"], json!({}));
    rig.assert_quiet();
    // Also for one that comes back.
    let far = rig.far("b");
    rig.break_off(far);
    rig.pass(Duration::from_millis(250));
    rig.step();
    let again = rig.fars.lock().unwrap().len() - 1;
    let restored = rig.far_hears(again);
    assert_eq!(restored["params"], json!({"level": "error"}));
}

/// R-CHN-14: a server that fails, or that is late, holds up nothing but its own part.
#[test]
fn a_list_without_a_sick_server_says_so() {
    for near_is in [OLD, NEW] {
        let mut rig = Rig::joined(&[("a", OLD), ("b", OLD), ("c", OLD)]);
        let near = client(&mut rig, near_is);
        say(&mut rig, near, near_is, "tools/list", json!({}));
        answers(
            &mut rig,
            "a",
            "tools/list",
            &json!({"tools": [{"name": "x"}], "ttlMs": 5}),
        );
        let refused = hears(&mut rig, "b");
        let far = rig.far("b");
        let error = json!({"jsonrpc": "2.0", "id": refused["id"], "error": {"code": -32603, "message": "sick"}});
        rig.far_says(far, &error.to_string());
        let late = hears(&mut rig, "c");
        rig.pass(Duration::from_millis(4999));
        rig.assert_quiet();
        rig.pass(Duration::from_millis(1));
        let list = rig.hear(near)["result"].take();
        assert_eq!(names(&list["tools"], "name"), ["a_x"]);
        let partial = list["_meta"][PARTIAL].as_object().unwrap();
        assert_eq!(partial["b"], "the server \"b\": sick");
        assert!(
            partial["c"]
                .as_str()
                .unwrap()
                .starts_with("the server \"c\": ")
        );
        assert_eq!(partial.len(), 2);
        if near_is == NEW {
            assert_eq!(list["ttlMs"], 0);
        }
        // It need not answer any more.
        let cancelled = hears(&mut rig, "c");
        assert_eq!(cancelled["params"]["requestId"], late["id"]);
        // Failures name the server.
        say(
            &mut rig,
            near,
            near_is,
            "tools/call",
            json!({"name": "b_x"}),
        );
        hears(&mut rig, "b");
        rig.break_off(far);
        let failed = rig.hear(near)["error"].take();
        assert_eq!(failed["data"]["upstream"], "b", "{failed}");
        rig.assert_quiet();
    }
}

/// What the front offers is what its servers offer, without waiting for those that are late; they are told of when they come.
#[test]
fn a_front_offers_what_its_servers_offer() {
    let mut rig = Rig::joined(&[("a", OLD), ("b", OLD)]);
    rig.silent = vec!["b"];
    let near = rig.connect(Framing::Line);
    let info = json!({"name": "near", "version": "1"});
    let params = json!({"protocolVersion": OLD.name(), "capabilities": {}, "clientInfo": info});
    rig.say(near, &request("open", "initialize", &params));
    rig.assert_is_waiting(near);
    rig.pass(Duration::from_secs(5));
    let opened = rig.hear(near)["result"].take();
    assert_eq!(opened["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(opened["capabilities"]["resources"]["subscribe"], true);
    assert_ne!(
        opened["serverInfo"]["name"], "script",
        "it speaks in its own name"
    );
    rig.say(
        near,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    );
    rig.pass(Duration::from_millis(250));
    rig.assert_is_waiting(near);
    let far = rig.far("b");
    rig.far_opens(far);
    let mut told: Vec<_> = (0..3).map(|_| rig.hear(near)["method"].take()).collect();
    told.sort_by_key(Value::to_string);
    let all = ["prompts", "resources", "tools"];
    assert_eq!(
        told,
        all.map(|kind| json!(format!("notifications/{kind}/list_changed")))
    );

    let near = rig.post(&stateless(1, "server/discover", json!({}), &json!({})));
    let far = rig.fars.lock().unwrap().len() - 1;
    assert_eq!(rig.fars.lock().unwrap()[far].name, "b");
    rig.far_opens(far);
    let offered = rig.hear(near)["result"].take();
    assert_eq!(offered["capabilities"]["tools"]["listChanged"], true);
    rig.assert_quiet();
}

/// Commands that are installed when they start first may all be late: then the client waits for the first of them, and no longer.
#[test]
fn a_client_waits_for_one_server_at_least() {
    let mut rig = Rig::joined(&[("a", OLD), ("b", OLD)]);
    rig.silent = vec!["a", "b"];
    let near = rig.connect(Framing::Line);
    let info = json!({"name": "near", "version": "1"});
    let params = json!({"protocolVersion": OLD.name(), "capabilities": {}, "clientInfo": info});
    rig.say(near, &request("open", "initialize", &params));
    rig.pass(Duration::from_secs(5));
    rig.pass(Duration::from_secs(4));
    rig.assert_is_waiting(near);
    let far = rig.far("b");
    rig.far_opens(far);
    let opened = rig.hear(near)["result"].take();
    assert_eq!(opened["capabilities"]["resources"]["subscribe"], true);
    rig.assert_is_waiting(near);
}

/// Each change reaches the client by its own name, also of a server that comes late or ends its stream.
#[test]
fn one_stream_has_the_changes_of_all_servers() {
    let mut rig = Rig::joined(&[("a", OLD), ("b", NEW), ("c", NEW)]);
    rig.silent = vec!["c"];
    let near = rig.connect(Framing::Line);
    let filter =
        json!({"toolsListChanged": true, "resourceSubscriptions": ["u://a/x", "u://b/x", "u://x"]});
    let listen = stateless(
        "l",
        "subscriptions/listen",
        json!({"notifications": filter}),
        &json!({}),
    );
    rig.say(near, &listen);
    let a = rig.far("a");
    let subscribe = rig.far_hears(a);
    assert_eq!(subscribe["params"], json!({"uri": "u://x"}));
    rig.answer(a, &subscribe, &json!({}));
    let b = rig.far("b");
    let inner = rig.far_hears(b);
    assert_eq!(
        inner["params"]["notifications"],
        json!({"toolsListChanged": true, "resourceSubscriptions": ["u://x"]})
    );
    let tell = |rig: &mut Rig, far: usize, listen: &Value, method: &str, mut params: Value| {
        if !listen.is_null() {
            params["_meta"] = json!({meta::SUBSCRIPTION_ID: listen["id"]});
        }
        let told = json!({"jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params});
        rig.far_says(far, &told.to_string());
    };
    let (acknowledge, own) = (
        "subscriptions/acknowledged",
        json!({meta::SUBSCRIPTION_ID: "l"}),
    );
    let heard = |rig: &mut Rig| {
        let told = rig.hear(near);
        assert_eq!(told["params"]["_meta"], own, "{told}");
        (told["method"].clone(), told["params"]["uri"].clone())
    };
    tell(
        &mut rig,
        b,
        &inner,
        acknowledge,
        json!({"notifications": inner["params"]["notifications"]}),
    );
    rig.assert_is_waiting(near);
    rig.pass(Duration::from_secs(5));
    let granted =
        json!({"toolsListChanged": true, "resourceSubscriptions": ["u://a/x", "u://b/x"]});
    let acknowledged = rig.hear(near)["params"].take();
    assert_eq!(
        acknowledged,
        json!({"notifications": granted, "_meta": own})
    );
    let changed = (json!("notifications/tools/list_changed"), Value::Null);
    let updated = "resources/updated";
    tell(&mut rig, a, &Value::Null, updated, json!({"uri": "u://x"}));
    assert_eq!(
        heard(&mut rig),
        (json!("notifications/resources/updated"), json!("u://a/x"))
    );
    tell(&mut rig, b, &inner, updated, json!({"uri": "u://x"}));
    assert_eq!(
        heard(&mut rig),
        (json!("notifications/resources/updated"), json!("u://b/x"))
    );
    // A server that comes later is listened to, too.
    let c = rig.far("c");
    rig.far_opens(c);
    let latest = rig.far_hears(c);
    let filter = json!({"notifications": {"toolsListChanged": true}});
    assert_eq!(latest["params"]["notifications"], filter["notifications"]);
    rig.assert_is_waiting(near);
    tell(&mut rig, c, &latest, acknowledge, filter);
    assert_eq!(heard(&mut rig), changed);
    // A server that ends its stream is listened to again, and the client's stays open.
    rig.answer(b, &inner, &json!({"resultType": "complete"}));
    rig.assert_quiet();
    rig.pass(Duration::from_millis(250));
    let inner = rig.far_hears(b);
    assert_eq!(inner["method"], "subscriptions/listen");
    tell(
        &mut rig,
        b,
        &inner,
        acknowledge,
        json!({"notifications": inner["params"]["notifications"]}),
    );
    assert_eq!(heard(&mut rig), changed);
    assert_eq!(heard(&mut rig).1, "u://b/x");
    tell(&mut rig, b, &inner, "tools/list_changed", json!({}));
    assert_eq!(heard(&mut rig), changed);

    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "l"}});
    rig.say(near, &cancel.to_string());
    assert_eq!(rig.far_hears(a)["method"], "resources/unsubscribe");
    assert_eq!(rig.far_hears(b)["params"]["requestId"], inner["id"]);
    rig.assert_is_waiting(near);
}

/// R-SUB-08: the streams at the servers end with the client, and nothing tries to open them again.
#[test]
fn a_stream_ends_at_all_servers_when_its_client_leaves() {
    let mut rig = Rig::joined(&[("a", NEW), ("b", NEW)]);
    let near = rig.connect(Framing::Line);
    let params = json!({"notifications": {"toolsListChanged": true}});
    rig.say(
        near,
        &stateless("l", "subscriptions/listen", params, &json!({})),
    );
    let streams: Vec<_> = ["a", "b"]
        .iter()
        .map(|name| {
            let far = rig.far(name);
            (far, rig.far_hears(far)["id"].take())
        })
        .collect();
    rig.leave(near);
    for (far, stream) in streams {
        assert_eq!(rig.far_hears(far)["params"]["requestId"], stream);
    }
    rig.pass(Duration::from_secs(60));
    for far in rig.fars.lock().unwrap().iter() {
        assert!(far.lines.is_empty(), "{:?}", far.lines);
    }
}

/// R-CHN-12, R-CHN-13: questions of either kind of server, in one session.
#[test]
fn questions_are_put_to_the_client_of_the_call_whichever_server_asks() {
    let capabilities = json!({"elicitation": {}});
    let question = json!({"message": "?", "requestedSchema": {"type": "object"}});
    let mut rig = Rig::joined(&[("a", OLD), ("b", NEW)]);
    let near = rig.connect(Framing::Line);
    let call = |name: &str, more: Value| {
        let mut params = more;
        params["name"] = name.into();
        stateless("call", "tools/call", params, &capabilities)
    };
    rig.say(near, &call("a_x", json!({})));
    let a = rig.far("a");
    let called = rig.far_hears(a);
    rig.far_says(a, &request("q", "elicitation/create", &question));
    let asked = rig.hear(near)["result"].take();
    let key = asked["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let answers = json!({"requestState": asked["requestState"], "inputResponses": {key: {"action": "decline"}}});
    rig.say(near, &call("a_x", answers.clone()));
    assert_eq!(rig.far_hears(a)["result"], json!({"action": "decline"}));
    rig.answer(a, &called, &json!({"content": []}));
    assert_eq!(rig.hear(near)["result"]["content"], json!([]));
    // The states of a server of the stateless era are its own.
    rig.say(
        near,
        &call("b_x", json!({"requestState": "s", "inputResponses": {}})),
    );
    let b = rig.far("b");
    let called = rig.far_hears(b);
    assert_eq!(called["params"]["requestState"], "s");
    rig.answer(
        b,
        &called,
        &json!({"resultType": "complete", "content": []}),
    );
    assert_eq!(rig.hear(near)["result"]["content"], json!([]));
    for state in [answers, json!({"requestState": "s"})] {
        rig.say(near, &call("a_x", state));
        assert_eq!(rig.hear(near)["error"]["code"], -32602);
    }
    rig.assert_quiet();
}
