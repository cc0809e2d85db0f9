//! A server with a policy, seen on the wire: what is allowed, how often, for how long, what is
//! masked and what is written down.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpbolt::limits::{Quota, Rate};
use mcpbolt::mcp::{ErrorKind, Method, Profile, Revision};
use mcpbolt::policy::{AuditOutcome, Permissions, Policy, Redaction};
use mcpbolt::server::{
    Arguments, Builder, Context, HandlerError, Resource, ResourceContents, Server, Tool, ToolResult,
};
use mcpbolt::store::LocalStore;
use serde_json::{Value, json};

use crate::wire::Wire;

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

/// A server whose tools and resources stand for what a policy is about.
fn server() -> Builder {
    Server::builder("guarded", "1")
        .actions(true)
        .tool(Tool::new("open"), |_: Arguments, _| async { "done" })
        .tool(Tool::new("shut"), |_: Arguments, _| async { "done" })
        .tool(
            Tool::new("slow"),
            |_: Arguments, context: Context| async move {
                context.sleep(Duration::from_secs(3600)).await;
                "late"
            },
        )
        .tool(Tool::new("leak"), |_: Arguments, _| async {
            ToolResult::error("login failed: password=hunter2 for sk-1234567890abcdef")
        })
        .tool(Tool::new("break"), |_: Arguments, _| async {
            let error =
                HandlerError::protocol(ErrorKind::Internal, "no db at mysql://u:hunter2@db/");
            Err::<(), _>(error.with_data(&json!({"api_key": "hunter2", "n": 1})))
        })
        .inline_tool(Tool::new("inline"), |_: Arguments| "done")
        .resource(Resource::new("file:///srv/a.txt", "a"), |uri, _| async {
            Ok(ResourceContents::text(uri, "0123456789"))
        })
        .resource(
            Resource::new("file:///srv/secret/b.txt", "b"),
            |uri, _| async { Ok(ResourceContents::text(uri, "secret")) },
        )
        .resource_template(Resource::new("file:///{+path}", "any"), |uri, _, _| async {
            Ok(ResourceContents::text(uri, "any"))
        })
        .subscriptions()
}

fn permissions() -> Permissions {
    serde_json::from_value(json!({
        "tools": {"allowed": ["*"], "denied": ["shut"]},
        "resources": {"allowed": ["file:///srv/**"], "denied": ["file:///srv/secret/**"]},
    }))
    .unwrap()
}

fn in_each(server: &Server, check: impl Fn(Revision, &mut Wire)) {
    for revision in Revision::ALL {
        check(revision, &mut Wire::open(server, revision, json!({})));
    }
}

fn names(list: &Value, member: &str) -> Vec<String> {
    let of = |item: &Value| item[member].as_str().unwrap().to_owned();
    let items = list["result"].as_object().unwrap().values();
    items
        .filter_map(Value::as_array)
        .flatten()
        .map(of)
        .collect()
}

/// R-PER-02, R-PER-03, R-PER-05: what is denied is not there, in no list and by no name.
#[test]
fn what_is_denied_looks_as_if_it_was_not_there() {
    let server = server().policy(Policy::new().permissions(permissions()));
    in_each(&server.build().unwrap(), |revision, wire| {
        let tools = names(&wire.ask(revision, "tools/list", json!({})), "name");
        assert!(
            tools.contains(&"open".into()) && !tools.contains(&"shut".into()),
            "{tools:?}"
        );
        let resources = names(&wire.ask(revision, "resources/list", json!({})), "uri");
        assert_eq!(resources, ["file:///srv/a.txt"]);

        let mut call = |name: &str| wire.ask(revision, "tools/call", json!({"name": name}));
        assert_eq!(call("open")["result"]["content"][0]["text"], "done");
        let (denied, unknown) = (call("shut"), call("nothing"));
        assert_eq!(code(&denied), ErrorKind::ToolNotFound.code(revision));
        let masked = denied["error"].to_string().replace("shut", "nothing");
        let unknown = unknown["error"].to_string();
        assert_eq!(masked, unknown, "nothing tells them apart");

        let mut read = |uri: &str| wire.ask(revision, "resources/read", json!({"uri": uri}));
        assert_eq!(
            read("file:///srv/a.txt")["result"]["contents"][0]["text"],
            "0123456789"
        );
        assert_eq!(
            read("file:///srv/x/y")["result"]["contents"][0]["text"],
            "any"
        );
        for denied in [
            "file:///srv/secret/b.txt",
            "file:///srv/./secret/b.txt",
            "file:///etc/passwd",
            "file:///srv/../etc/passwd",
        ] {
            let answer = read(denied);
            assert_eq!(
                code(&answer),
                ErrorKind::ResourceNotFound.code(revision),
                "{answer}"
            );
            assert_eq!(answer["error"]["data"], json!({"uri": denied}));
        }
        if revision < Revision::V2026_07_28 {
            let mut subscribe =
                |uri: &str| wire.ask(revision, "resources/subscribe", json!({"uri": uri}));
            assert!(subscribe("file:///srv/a.txt")["result"].is_object());
            assert_eq!(code(&subscribe("file:///srv/secret/b.txt")), -32002);
        }
    });
}

/// R-PER-05: the profile that has a word for it shows what it denies, and says so.
#[test]
fn a_profile_with_a_word_for_it_says_that_it_is_denied() {
    let policy = Policy::new().permissions(permissions());
    let server = server()
        .profile(Profile::Extended)
        .policy(policy)
        .build()
        .unwrap();
    let old = Revision::V2024_11_05;
    let mut wire = Wire::open(&server, old, json!({}));
    let tools = names(&wire.ask(old, "tools/list", json!({})), "name");
    assert!(tools.contains(&"shut".into()));
    let error = wire.ask(old, "tools/call", json!({"name": "shut"}))["error"].take();
    let told = json!({"code": -32005, "message": "Permission denied for tool: shut", "data": {"tool": "shut"}});
    assert_eq!(error, told);
    let uri = "file:///srv/secret/b.txt";
    let error = wire.ask(old, "resources/read", json!({"uri": uri}))["error"].take();
    let told = json!({"code": -32005, "message": format!("Access denied to resource: {uri}"), "data": {"uri": uri}});
    assert_eq!(error, told);
}

/// R-PER-06, R-S14-05: the handler is cancelled, and the model learns why.
#[test]
fn a_tool_that_takes_too_long_is_answered_without_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let mut permissions = Permissions::all();
    permissions.max_tool_execution_time = Some(50);
    let policy = Policy::new()
        .permissions(permissions)
        .timeout_of("open", Duration::from_secs(3600))
        .audit(move |event| sink.lock().unwrap().push(event.outcome.name()));
    let server = server().policy(policy).build().unwrap();
    in_each(&server, |revision, wire| {
        let begun = wire.begin("tools/call", json!({"name": "slow"}));
        assert!(begun.is_empty(), "{begun:?}");
        assert!(wire.pass(Duration::from_millis(40)).is_empty());
        let answers = wire.pass(Duration::from_millis(20));
        assert_eq!(answers.len(), 1, "{revision}");
        assert_eq!(answers[0]["result"]["isError"], true, "{answers:?}");
        assert_eq!(wire.connection.in_flight(), 0);
        let open = wire.ask(revision, "tools/call", json!({"name": "open"}));
        assert_eq!(open["result"]["content"][0]["text"], "done");
        assert!(
            wire.pass(Duration::from_secs(10)).is_empty(),
            "answered once"
        );
    });
    assert_eq!(*seen.lock().unwrap(), ["timed_out", "done"].repeat(5));

    let policy = Policy::new().tool_timeout(Duration::from_millis(50));
    let server = self::server()
        .profile(Profile::Extended)
        .policy(policy)
        .build()
        .unwrap();
    let mut wire = Wire::open(&server, Revision::V2024_11_05, json!({}));
    wire.begin("tools/call", json!({"name": "slow"}));
    let answers = wire.pass(Duration::from_millis(60));
    assert_eq!(code(&answers[0]), -32004, "{answers:?}");
    assert_eq!(answers[0]["error"]["data"], json!({"tool": "slow"}));
}

/// R-PER-06
#[test]
fn a_resource_that_is_too_large_is_not_given_out() {
    let mut permissions = Permissions::all();
    permissions.max_resource_size = Some(9);
    let build = |profile| {
        let policy = Policy::new().permissions(permissions.clone());
        server().profile(profile).policy(policy).build().unwrap()
    };
    in_each(&build(Profile::Official), |revision, wire| {
        let large = wire.ask(
            revision,
            "resources/read",
            json!({"uri": "file:///srv/a.txt"}),
        );
        assert_eq!(code(&large), -32603, "{large}");
        assert_eq!(large["error"]["data"], json!({"maxResourceSize": 9}));
        let small = wire.ask(
            revision,
            "resources/read",
            json!({"uri": "file:///srv/secret/b.txt"}),
        );
        assert_eq!(small["result"]["contents"][0]["text"], "secret");
    });
    let old = Revision::V2024_11_05;
    let mut wire = Wire::open(&build(Profile::Extended), old, json!({}));
    let large = wire.ask(old, "resources/read", json!({"uri": "file:///srv/a.txt"}));
    assert_eq!(code(&large), -32001, "{large}");
    assert_eq!(large["error"]["data"]["uri"], "file:///srv/a.txt");
}

/// R-S14-05, R-TOL-03: clients that nothing tells apart have one together, however often they connect.
#[test]
fn who_asks_too_often_is_told_how_long_to_wait() {
    let rate = Rate {
        burst: 3,
        per_second: 0,
    };
    for revision in Revision::ALL {
        let server = server().policy(Policy::new().rate(rate)).build().unwrap();
        for name in ["open", "inline", "open"] {
            let mut wire = Wire::open(&server, revision, json!({}));
            let answer = wire.ask(revision, "tools/call", json!({"name": name}));
            assert_eq!(
                answer["result"]["content"][0]["text"], "done",
                "{revision} {answer}"
            );
        }
        let mut wire = Wire::open(&server, revision, json!({}));
        let call = wire.ask(revision, "tools/call", json!({"name": "open"}));
        assert_eq!(call["result"]["isError"], true, "{call}");
        let list = wire.ask(revision, "tools/list", json!({}));
        assert_eq!(code(&list), ErrorKind::RateLimited.code(revision));
        // A rate of 0 has three in 366 days.
        let wait = list["error"]["data"]["retryAfter"].as_u64().unwrap();
        assert!((10_000_000..11_000_000).contains(&wait), "{wait}");
        if revision < Revision::V2026_07_28 {
            assert!(wire.ask(revision, "ping", json!({}))["result"].is_object());
        }
    }
}

/// R-S14-05, R-ACT-30, R-ACT-33: what a client may do in a period is counted, whatever comes of it, but
/// for what it may not do at all.
#[test]
fn a_quota_is_used_up_by_calls() {
    let quota = Quota {
        calls: 2,
        period: Duration::from_secs(3600),
    };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let limited = |counts: Counts| {
        let sink = seen.clone();
        let policy = Policy::new()
            .permissions(permissions())
            .quota(quota)
            .audit(move |event| sink.lock().unwrap().push(event.outcome));
        let policy = match counts {
            Counts::Here => policy,
            Counts::OnAStore => policy.share(Arc::new(LocalStore::new())),
        };
        server().policy(policy).build().unwrap()
    };
    let counts = [Counts::Here, Counts::OnAStore];
    let cases = Revision::ALL.into_iter();
    for (revision, counts) in cases.flat_map(|it| counts.map(|counts| (it, counts))) {
        let mut wire = Wire::open(&limited(counts), revision, json!({}));
        for name in ["shut", "open", "leak", "open"] {
            wire.ask(revision, "tools/call", json!({"name": name}));
            wire.ask(revision, "tools/list", json!({}));
        }
        use AuditOutcome::*;
        let outcomes = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(outcomes, [Denied, Done, ToolFailed, Limited], "{revision}");
        let call = wire.ask(revision, "tools/call", json!({"name": "open"}));
        let told = "the quota of 2 calls in 3600s is used up: try again in 3600 s";
        assert_eq!(call["result"]["content"][0]["text"], told, "{call}");
        assert_eq!(call["result"]["isError"], true);
        seen.lock().unwrap().clear();
    }
    for counts in counts {
        let mut wire = Wire::new(limited(counts));
        let mut act = || wire.act(r#"{"action":"open","params":{}}"#);
        assert_eq!(
            (&act()["status"], &act()["status"]),
            (&json!("success"), &json!("success"))
        );
        let error = &act()["error"];
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("QUOTA_EXCEEDED"), &json!(429))
        );
        assert_eq!(error["details"], json!({"retry_after_seconds": 3600}));
    }
}

/// Where calls are counted.
#[derive(Clone, Copy)]
enum Counts {
    Here,
    OnAStore,
}

/// R-ERR-29, R-S14-05: secrets that a handler lets slip are told to nobody.
#[test]
fn planted_secrets_reach_neither_clients_nor_the_audit() {
    let seen = Arc::new(Mutex::new(String::new()));
    let sink = seen.clone();
    let policy = Policy::new()
        .redaction(Redaction::new().secret("open sesame"))
        .audit_arguments()
        .audit(move |event| *sink.lock().unwrap() += &event.to_json());
    let server = server().policy(policy).build().unwrap();
    in_each(&server, |revision, wire| {
        let arguments = json!({"password": "hunter2", "text": "say open sesame", "n": 7});
        for name in ["leak", "break", "open", "no sk-1234567890abcdef"] {
            let params = json!({"name": name, "arguments": arguments});
            let answer = wire.ask(revision, "tools/call", params).to_string();
            assert!(
                !answer.contains("hunter2") && !answer.contains("sk-1234"),
                "{answer}"
            );
        }
        let leak = wire.ask(revision, "tools/call", json!({"name": "leak"}));
        let told = "login failed: password=*** for ***";
        assert_eq!(leak["result"]["content"][0]["text"], told);
        let broken = wire.ask(revision, "tools/call", json!({"name": "break"}));
        assert_eq!(broken["error"]["message"], "no db at mysql://***@db/");
        assert_eq!(broken["error"]["data"], json!({"api_key": "***", "n": 1}));
    });
    let seen = seen.lock().unwrap();
    for secret in ["hunter2", "sk-1234", "open sesame"] {
        assert!(!seen.contains(secret), "{seen}");
    }
    assert!(
        seen.contains("say ***") && seen.contains(r#"\"n\":7"#),
        "{seen}"
    );
}

/// R-S14-05: who did what, when and with which outcome, once for each.
#[test]
fn the_audit_has_one_event_for_each_request_and_says_what_came_of_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let rate = Rate {
        burst: 8,
        per_second: 0,
    };
    let policy = Policy::new()
        .permissions(permissions())
        .rate(rate)
        .audit(move |event| {
            sink.lock()
                .unwrap()
                .push(serde_json::to_value(event).unwrap())
        });
    let server = server().policy(policy).build().unwrap();
    let revision = Revision::V2025_11_25;
    let mut wire = Wire::new(server);
    wire.connection.set_principal("ada");
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    wire.say(hello);
    wire.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    for name in ["open", "inline", "leak", "shut", "break"] {
        wire.ask(revision, "tools/call", json!({"name": name}));
    }
    wire.ask(
        revision,
        "resources/read",
        json!({"uri": "file:///srv/a.txt"}),
    );
    wire.ask(revision, "tools/list", json!({}));
    assert!(wire.begin("tools/call", json!({"name": "slow"})).is_empty());
    wire.say(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"begun"}}"#,
    );
    let waited = Instant::now();
    while seen.lock().unwrap().len() < 7 {
        assert!(waited.elapsed() < Duration::from_secs(30), "{seen:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    wire.ask(revision, "tools/call", json!({"name": "open"}));
    let seen = seen.lock().unwrap();
    let said: Vec<_> = seen
        .iter()
        .map(|event| [&event["name"], &event["outcome"], &event["code"]].map(Value::clone))
        .collect();
    let expected = [
        json!(["open", "done", null]),
        json!(["inline", "done", null]),
        json!(["leak", "tool_failed", null]),
        json!(["shut", "denied", -32602]),
        json!(["break", "tool_failed", -32603]),
        json!(["file:///srv/a.txt", "done", null]),
        json!(["slow", "cancelled", null]),
        json!(["open", "limited", null]),
    ];
    assert_eq!(json!(said), json!(expected));
    for event in seen.iter() {
        assert_eq!(event["principal"], "ada");
        assert_eq!(event["revision"], "2025-11-25");
        assert!(event["seconds"].as_f64().unwrap() >= 0.0);
    }
    assert_eq!(seen[6]["id"], "\"begun\"", "as it stands on the wire");
}

/// R-S14-05: a guard sees what is given to a tool, and has the last word.
#[test]
fn a_guard_looks_at_arguments() {
    let server = server().guard(|access| match (access.method, access.arguments) {
        (Method::CallTool, Some(arguments)) if arguments.contains("$(") => Err(
            HandlerError::protocol(ErrorKind::InvalidParams, "no commands in arguments"),
        ),
        _ => Ok(()),
    });
    in_each(&server.build().unwrap(), |revision, wire| {
        let mut call = |text: &str| {
            let params = json!({"name": "open", "arguments": {"text": text}});
            wire.ask(revision, "tools/call", params)
        };
        assert_eq!(code(&call("$(rm -r)")), -32602);
        assert_eq!(call("a dollar $")["result"]["content"][0]["text"], "done");
    });
}

/// Keeps the fields of events, by name.
#[cfg(feature = "tracing")]
struct Subscriber(Arc<Mutex<Vec<(String, String)>>>);

#[cfg(feature = "tracing")]
impl tracing::field::Visit for Subscriber {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        let said = (field.name().to_owned(), format!("{value:?}"));
        self.0.lock().unwrap().push(said);
    }
}

#[cfg(feature = "tracing")]
impl tracing::Subscriber for Subscriber {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "mcpbolt::audit"
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Self(self.0.clone()));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// R-S14-05: the audit as structured events, without secrets.
#[cfg(feature = "tracing")]
#[test]
fn the_audit_goes_to_tracing_field_by_field() {
    let seen = Arc::default();
    let policy = Policy::new().audit_to_tracing().audit_arguments();
    let server = server().policy(policy).build().unwrap();
    let mut wire = Wire::open(&server, Revision::V2025_11_25, json!({}));
    // Answered on this thread.
    let params = json!({"name": "inline", "arguments": {"password": "hunter2"}});
    tracing::subscriber::with_default(Subscriber(Arc::clone(&seen)), || {
        wire.ask(Revision::V2025_11_25, "tools/call", params);
    });
    let seen: Vec<(String, String)> = seen.lock().unwrap().clone();
    let field = |name: &str| {
        let found = seen.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.trim_matches('"').to_owned())
    };
    assert_eq!(field("method").as_deref(), Some("tools/call"), "{seen:?}");
    assert_eq!(field("name").as_deref(), Some("inline"));
    assert_eq!(field("outcome").as_deref(), Some("done"));
    assert!(field("seconds").is_some());
    assert!(!format!("{seen:?}").contains("hunter2"));
}
