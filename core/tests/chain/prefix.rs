//! The names of a server under a prefix, on every message that has names.

use mcpbolt::chain::Prefix;
use mcpbolt::connection::Framing;
use mcpbolt::mcp::{Revision, meta};
use serde_json::{Value, json};

use crate::rig::{Rig, request, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;

fn rig(revision: Revision) -> Rig {
    Rig::with(revision, 1, |front| front.with(Prefix::new("p").unwrap()))
}

/// What the client says, the server hears; what the server answers, the client hears. Names that are odd, and URIs whose
/// parts look like a prefix, come back as they were (R-CHN-10 for every other byte).
#[test]
fn names_and_uris_have_the_prefix_on_the_side_of_the_client_alone() {
    let table = [
        (
            "tools/list",
            json!({}),
            json!({}),
            json!({"tools": [{"name": "x", "title": "x"}, {"name": "p_x"}, {"name": "é"}]}),
            json!({"tools": [{"name": "p_x", "title": "x"}, {"name": "p_p_x"}, {"name": "p_é"}]}),
        ),
        (
            "tools/call",
            json!({"name": "p_p_x", "arguments": {"name": "x"}}),
            json!({"name": "p_x", "arguments": {"name": "x"}}),
            json!({"content": [{"type": "text", "text": "a://b"}, {"type": "resource_link", "uri": "a://b", "name": "x"}, {"type": "resource", "resource": {"uri": "file:///a", "text": ""}}]}),
            json!({"content": [{"type": "text", "text": "a://b"}, {"type": "resource_link", "uri": "a://p/b", "name": "x"}, {"type": "resource", "resource": {"uri": "file://p//a", "text": ""}}]}),
        ),
        (
            "prompts/list",
            json!({}),
            json!({}),
            json!({"prompts": [{"name": "x"}], "nextCursor": "x"}),
            json!({"prompts": [{"name": "p_x"}], "nextCursor": "x"}),
        ),
        (
            "prompts/get",
            json!({"name": "p_x"}),
            json!({"name": "x"}),
            json!({"messages": [{"role": "user", "content": {"type": "resource_link", "uri": "a://b"}}]}),
            json!({"messages": [{"role": "user", "content": {"type": "resource_link", "uri": "a://p/b"}}]}),
        ),
        (
            "resources/list",
            json!({}),
            json!({}),
            json!({"resources": [{"uri": "a://p/b"}, {"uri": "urn:x"}]}),
            json!({"resources": [{"uri": "a://p/p/b"}, {"uri": "via:p/urn:x"}]}),
        ),
        (
            "resources/templates/list",
            json!({}),
            json!({}),
            json!({"resourceTemplates": [{"uriTemplate": "a://{b}"}, {"uriTemplate": "{+b}"}, {"uriTemplate": "via:p/a://{b}"}, {"uriTemplate": "via://{b}"}]}),
            json!({"resourceTemplates": [{"uriTemplate": "a://p/{b}"}, {"uriTemplate": "via:p/{+b}"}, {"uriTemplate": "via:p/via:p/a://{b}"}, {"uriTemplate": "via://p/{b}"}]}),
        ),
        (
            "resources/read",
            json!({"uri": "a://p/p/b"}),
            json!({"uri": "a://p/b"}),
            json!({"contents": [{"uri": "a://p/b", "text": "a://b"}]}),
            json!({"contents": [{"uri": "a://p/p/b", "text": "a://b"}]}),
        ),
        (
            "resources/read",
            json!({"uri": "via:p/urn:x"}),
            json!({"uri": "urn:x"}),
            json!({"contents": [{"uri": "urn:x"}]}),
            json!({"contents": [{"uri": "via:p/urn:x"}]}),
        ),
        (
            "resources/read",
            json!({"uri": "via:p/a://b"}),
            json!({"uri": "a://b"}),
            json!({"contents": []}),
            json!({"contents": []}),
        ),
        (
            "resources/read",
            json!({"uri": "via:p/via:p/a://b"}),
            json!({"uri": "via:p/a://b"}),
            json!({"contents": []}),
            json!({"contents": []}),
        ),
        (
            "resources/subscribe",
            json!({"uri": "a://p/b"}),
            json!({"uri": "a://b"}),
            json!({}),
            json!({}),
        ),
        (
            "resources/unsubscribe",
            json!({"uri": "a://p/b"}),
            json!({"uri": "a://b"}),
            json!({}),
            json!({}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "p_x"}, "argument": {"name": "x", "value": "p_"}}),
            json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "x", "value": "p_"}}),
            json!({"completion": {"values": ["x"]}}),
            json!({"completion": {"values": ["x"]}}),
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "a://p/{b}"}, "argument": {}}),
            json!({"ref": {"type": "ref/resource", "uri": "a://{b}"}, "argument": {}}),
            json!({}),
            json!({}),
        ),
    ];
    let mut rig = rig(OLD);
    let near = rig.open(OLD, &json!({}));
    for (method, said, heard, result, told) in table {
        rig.say(near, &request("id", method, &said));
        let mut arrived = rig.far_hears(0);
        arrived["params"].as_object_mut().unwrap().remove("_meta");
        assert_eq!(arrived["params"], heard, "{method}");
        rig.answer(0, &arrived, &result);
        assert_eq!(rig.hear(near)["result"], told, "{method}");
    }
    let updated = |uri: &str| json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}});
    rig.far_says(0, &updated("a://b").to_string());
    assert_eq!(rig.hear(near), updated("a://p/b"));
    rig.assert_quiet();
}

#[test]
fn what_has_no_prefix_is_unknown_and_never_reaches_the_server() {
    let mut rig = rig(OLD);
    let near = rig.open(OLD, &json!({}));
    for (method, params, code) in [
        ("tools/call", json!({"name": "x"}), -32602),
        ("tools/call", json!({"name": "px"}), -32602),
        ("prompts/get", json!({"name": "q_x"}), -32602),
        ("resources/read", json!({"uri": "a://b"}), -32002),
        ("resources/read", json!({"uri": "a://px/b"}), -32002),
        ("resources/read", json!({"uri": "urn:x"}), -32002),
        ("resources/read", json!({"uri": "via:q/urn:x"}), -32002),
    ] {
        rig.say(near, &request(1, method, &params));
        assert_eq!(rig.hear(near)["error"]["code"], code, "{params}");
    }
    // What has no name has no prefix.
    rig.say(near, &request(2, "tools/call", &json!({"name": 1})));
    assert_eq!(rig.far_hears(0)["params"]["name"], 1);
    for bad in ["", "a b", "a/b", "é", "localhost", "LocalHost"] {
        assert!(Prefix::new(bad).is_err(), "{bad}");
    }
}

/// Parsers of URLs write the first segment in lower case, so URIs have it so, and are found in either case; names keep theirs.
#[test]
fn the_case_of_a_prefix_counts_in_names_alone() {
    let mut rig = Rig::with(OLD, 1, |front| front.with(Prefix::new("Git").unwrap()));
    let near = rig.open(OLD, &json!({}));
    for (uri, inner, outer) in [
        ("file://git//a", "file:///a", "file://git//a"),
        ("file://Git//a", "file:///a", "file://git//a"),
        ("file://GIT/Git/a", "file://Git/a", "file://git/Git/a"),
        ("via:Git/urn:x", "urn:x", "via:git/urn:x"),
    ] {
        rig.say(near, &request(1, "resources/read", &json!({"uri": uri})));
        let arrived = rig.far_hears(0);
        assert_eq!(arrived["params"]["uri"], inner, "{uri}");
        let contents = json!({"contents": [{"uri": inner}]});
        rig.answer(0, &arrived, &contents);
        let told = rig.hear(near)["result"]["contents"][0]["uri"].take();
        assert_eq!(told, outer);
    }
    rig.say(near, &request(2, "tools/call", &json!({"name": "Git_x"})));
    assert_eq!(rig.far_hears(0)["params"]["name"], "x");
    rig.say(near, &request(3, "tools/call", &json!({"name": "git_x"})));
    assert_eq!(rig.hear(near)["error"]["code"], -32602);
    rig.assert_quiet();
}

/// R-SUB-02: the stream of a client of the stateless era names resources as the client does.
#[test]
fn a_stream_has_the_names_of_the_client() {
    let filter = |uri: &str| json!({"notifications": {"resourceSubscriptions": [uri]}});
    for far in [Revision::NEWEST, OLD] {
        let mut rig = rig(far);
        let near = rig.connect(Framing::Line);
        let listen = stateless(7, "subscriptions/listen", filter("a://p/b"), &json!({}));
        rig.say(near, &listen);
        let arrived = rig.far_hears(0);
        let own = |id: &Value| json!({meta::SUBSCRIPTION_ID: id});
        let mut told = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a://b"}});
        if far == OLD {
            assert_eq!(arrived["params"], json!({"uri": "a://b"}));
            rig.answer(0, &arrived, &json!({}));
        } else {
            assert_eq!(
                arrived["params"]["notifications"],
                filter("a://b")["notifications"]
            );
            let mut params = filter("a://b");
            params["_meta"] = own(&arrived["id"]);
            told["params"]["_meta"] = own(&arrived["id"]);
            let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params});
            rig.far_says(0, &acknowledged.to_string());
        }
        let mut expected = filter("a://p/b");
        expected["_meta"] = own(&json!(7));
        assert_eq!(rig.hear(near)["params"], expected, "{far}");
        rig.far_says(0, &told.to_string());
        let expected = json!({"uri": "a://p/b", "_meta": own(&json!(7))});
        assert_eq!(rig.hear(near)["params"], expected, "{far}");
    }
}

/// And the session of the handshake era, whose stream the front listens to.
#[test]
fn an_update_has_the_name_of_the_client_between_the_eras() {
    let mut rig = rig(Revision::NEWEST);
    let near = rig.open(OLD, &json!({}));
    rig.say(
        near,
        &request(1, "resources/subscribe", &json!({"uri": "a://p/b"})),
    );
    let arrived = rig.far_hears(0);
    let filter = &arrived["params"]["notifications"];
    assert_eq!(filter["resourceSubscriptions"], json!(["a://b"]));
    let own = json!({meta::SUBSCRIPTION_ID: arrived["id"]});
    for (method, params) in [
        (
            "subscriptions/acknowledged",
            json!({"notifications": filter, "_meta": own}),
        ),
        ("resources/updated", json!({"uri": "a://b", "_meta": own})),
    ] {
        let method = format!("notifications/{method}");
        let told = json!({"jsonrpc": "2.0", "method": method, "params": params});
        rig.far_says(0, &told.to_string());
    }
    assert_eq!(rig.hear(near)["id"], 1);
    assert_eq!(rig.hear(near)["params"], json!({"uri": "a://p/b"}));
}
