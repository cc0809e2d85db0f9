//! Several servers as one: cursors, notifications of clients, and streams that a server refuses.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpbolt::chain::{ChainNotification, Middleware};
use mcpbolt::connection::Framing;
use mcpbolt::mcp::{Revision, meta};
use serde_json::json;

use crate::joined::{answers, client, hears, names, say};
use crate::rig::{Rig, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;

/// A cursor of null is none, and a cursor need not be a text (R-PAG-05, R-PAG-07).
#[test]
fn cursors_may_be_null_and_need_be_no_text() {
    for revision in [OLD, NEW] {
        let mut rig = Rig::joined(&[("a", revision), ("b", revision)]);
        let near = client(&mut rig, revision);
        say(
            &mut rig,
            near,
            revision,
            "tools/list",
            json!({"cursor": null}),
        );
        let asked = hears(&mut rig, "a");
        assert_eq!(asked["params"].get("cursor"), None);
        let far = rig.far("a");
        let id = &asked["id"];
        let page =
            r#"{"tools":[{"name":"x"}],"nextCursor":"\ud800\u0041","resultType":"complete"}"#;
        rig.far_says(
            far,
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{page}}}"#),
        );
        answers(
            &mut rig,
            "b",
            "tools/list",
            &json!({"tools": [], "resultType": "complete"}),
        );
        let page = rig.hear(near)["result"].take();
        assert_eq!(names(&page["tools"], "name"), ["a_x"]);
        let cursor = json!({"cursor": page["nextCursor"]});
        say(&mut rig, near, revision, "tools/list", cursor);
        let arrived = loop {
            let line = rig.far_line(far);
            if line.contains("tools/list") {
                break line;
            }
        };
        assert!(arrived.contains(r#""cursor":"\ud800\u0041""#), "{arrived}");
        rig.assert_only_listens();
    }
    // What it holds is of clients.
    let mut rig = Rig::joined(&[("a", OLD), ("b", OLD)]);
    let near = client(&mut rig, OLD);
    // `{"a":1}`, `{"a":"x"`, `{"c":"x"}`, `{}`
    for cursor in ["eyJhIjoxfQ", "eyJhIjoieCI", "eyJjIjoieCJ9", "e30"] {
        say(&mut rig, near, OLD, "tools/list", json!({"cursor": cursor}));
        assert_eq!(rig.hear(near)["error"]["code"], -32602, "{cursor}");
    }
    rig.assert_quiet();
}

/// Counts the notifications of clients.
struct Counter(Arc<Mutex<Vec<String>>>);

impl Middleware for Counter {
    fn notification(&self, notification: ChainNotification) -> Option<ChainNotification> {
        self.0.lock().unwrap().push(notification.method.clone());
        Some(notification)
    }
}

/// R-CHN-08: a notification of a client is one, however many servers hear it.
#[test]
fn middleware_sees_a_notification_of_a_client_once() {
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let members = [("a", OLD), ("b", NEW), ("c", OLD)];
    let mut rig = Rig::joined_with(&members, |front| front.with(Counter(seen.clone())));
    let near = client(&mut rig, OLD);
    let params = json!({"own": 1});
    let own = json!({"jsonrpc": "2.0", "method": "notifications/own", "params": params});
    rig.say(near, &own.to_string());
    for (name, _) in members {
        let heard = hears(&mut rig, name);
        assert_eq!(heard["method"], "notifications/own");
        assert_eq!(heard["params"]["own"], 1, "{name}");
    }
    assert_eq!(*seen.lock().unwrap(), ["notifications/own"]);
    rig.assert_only_listens();
}

/// R-SUB-01: what one server refuses of a stream takes nothing from its lists, nor from other servers.
#[test]
fn a_server_that_refuses_a_stream_is_asked_once_more_for_the_lists_alone() {
    for lists_too in [false, true] {
        let mut rig = Rig::joined(&[("a", NEW), ("b", NEW)]);
        let near = rig.connect(Framing::Line);
        let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["u://a/x"]});
        let params = json!({"notifications": filter});
        rig.say(
            near,
            &stateless("l", "subscriptions/listen", params, &json!({})),
        );
        assert_eq!(rig.hear(near)["params"]["notifications"], filter);
        let (a, b) = (rig.far("a"), rig.far("b"));
        let lists = json!({"toolsListChanged": true});
        assert_eq!(rig.far_hears(b)["params"]["notifications"], lists);
        let refuse = |rig: &mut Rig| {
            let asked = rig.far_hears(a);
            let error = json!({"code": -32602, "message": "no such resource"});
            let refused = json!({"jsonrpc": "2.0", "id": asked["id"], "error": error});
            rig.far_says(a, &refused.to_string());
            asked["params"]["notifications"].clone()
        };
        let both = json!({"toolsListChanged": true, "resourceSubscriptions": ["u://x"]});
        assert_eq!(refuse(&mut rig), both);
        if lists_too {
            assert_eq!(refuse(&mut rig), lists);
            rig.pass(Duration::from_secs(60));
            rig.assert_quiet();
            continue;
        }
        let again = rig.far_hears(a);
        assert_eq!(again["params"]["notifications"], lists);
        let own = json!({meta::SUBSCRIPTION_ID: again["id"]});
        for (method, params) in [
            (
                "subscriptions/acknowledged",
                json!({"notifications": lists, "_meta": own}),
            ),
            ("tools/list_changed", json!({"_meta": own})),
        ] {
            let method = format!("notifications/{method}");
            let told = json!({"jsonrpc": "2.0", "method": method, "params": params});
            rig.far_says(a, &told.to_string());
            // Also as soon as the stream is open: the client may have missed something.
            assert_eq!(rig.hear(near)["method"], "notifications/tools/list_changed");
        }
        rig.assert_quiet();
    }
}
