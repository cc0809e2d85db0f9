//! The duties of a server to every client, on the wire in each revision.

use mcpbolt::mcp::{Era, ErrorKind, LogLevel, Profile, Revision};
use mcpbolt::server::{
    Arguments, Content, Context, Json, Prompt, PromptResult, Resource, ResourceContents, Role,
    Server, Tool,
};
use serde_json::{Value, json};

use crate::server;
use crate::wire::Wire;

fn in_each(server: &Server, capabilities: Value, check: impl Fn(Revision, &mut Wire)) {
    for revision in Revision::ALL {
        let mut wire = Wire::open(server, revision, capabilities.clone());
        check(revision, &mut wire);
    }
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

const CALLS: [(&str, &str); 9] = [
    ("tools/list", "tools"),
    ("tools/call", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resources"),
    ("resources/read", "resources"),
    ("resources/subscribe", "resources"),
    ("prompts/list", "prompts"),
    ("prompts/get", "prompts"),
    ("completion/complete", "completions"),
];

/// R-DSC-01, R-DSC-03, R-DSC-05, R-CAP-01, R-ERR-15, R-LOG-06, R-TOL-01, R-RES-01, R-PRM-01, R-CMP-01,
/// R-LIF-04.
#[test]
fn what_is_declared_is_served_and_nothing_else() {
    let all = server(0).list_changes();
    let all = all.completion(|_, _| async { Ok(Vec::new()) });
    for (server, is_full) in [(server(0), false), (all, true)] {
        let server = server.build().unwrap();
        in_each(&server, json!({}), |revision, wire| {
            let declared = match revision.era() {
                Era::Stateless => {
                    let found = wire.ask(revision, "server/discover", json!({}));
                    let versions = found["result"]["supportedVersions"].clone();
                    assert!(
                        versions
                            .as_array()
                            .unwrap()
                            .contains(&json!(revision.name()))
                    );
                    found["result"]["capabilities"].clone()
                }
                // Its answer stands in the handshake, before this.
                Era::Handshake => {
                    let config = server.config().capabilities(revision);
                    serde_json::from_str(config).unwrap()
                }
            };
            for (method, capability) in CALLS {
                let answer = wire.ask(revision, method, json!({}));
                let defined = method != "resources/subscribe";
                let is_served = is_full && defined;
                assert_eq!(
                    code(&answer) != -32601,
                    is_served,
                    "{revision} {method} {answer}"
                );
                if method.ends_with("/list") && is_served {
                    let members = answer["result"].as_object().unwrap();
                    let is_empty = |value: &Value| *value == json!([]);
                    assert!(members.values().any(is_empty), "an empty list is a list");
                }
                let named = capability != "completions" || revision > Revision::V2024_11_05;
                assert_eq!(
                    declared.get(capability).is_some(),
                    is_full && named,
                    "{capability}"
                );
            }
            let level = wire.ask(revision, "logging/setLevel", json!({"level": "info"}));
            assert_eq!(code(&level) == -32601, revision.era() == Era::Stateless);
            assert!(declared.get("logging").is_some());
        });
    }
}

/// R-ERR-11, R-ERR-12, R-TOL-04, R-TOL-12, R-PRM-03, R-RES-10, R-ERR-29.
#[test]
fn what_is_wrong_is_told_by_who_it_is_wrong_with() {
    let server = server(1)
        .tool(Tool::new("fail"), |_: Arguments, _| async {
            Err::<&str, _>(std::io::Error::other("no paper"))
        })
        .tool(Tool::new("panic"), |_: Arguments, _| async {
            assert_eq!(1, 2, "the password is hunter2");
            "never"
        })
        .resource_template(Resource::new("a:{x}", "a"), |uri, _, _| async {
            Ok(ResourceContents::text(uri, ""))
        })
        .prompt(
            Prompt::new("greet").argument("to", "Whom", true),
            |_, _| async { Ok(PromptResult::user("Hi")) },
        )
        .build()
        .unwrap();
    in_each(&server, json!({}), |revision, wire| {
        let mut ask = |method: &str, params: Value| wire.ask(revision, method, params);
        assert_eq!(code(&ask("tools/call", json!({"name": "nobody"}))), -32602);
        assert_eq!(code(&ask("tools/call", json!({}))), -32602);
        assert_eq!(
            code(&ask("tools/call", json!({"name": "fail", "arguments": 1}))),
            -32602
        );
        assert_eq!(code(&ask("prompts/get", json!({"name": "nobody"}))), -32602);
        assert_eq!(code(&ask("prompts/get", json!({"name": "greet"}))), -32602);
        let number = json!({"name": "greet", "arguments": {"to": 1}});
        assert_eq!(code(&ask("prompts/get", number)), -32602, "R-PRM-02");
        let missing = ask("resources/read", json!({"uri": "b:1"}));
        assert_eq!(code(&missing), ErrorKind::ResourceNotFound.code(revision));
        let done = ask("tools/call", json!({"name": "tool-0"}));
        assert_eq!(done["result"]["content"][0]["text"], "done");
        for (tool, text) in [
            ("fail", "no paper"),
            ("panic", "the tool failed unexpectedly"),
        ] {
            let failed = ask("tools/call", json!({"name": tool}));
            assert_eq!(failed["result"]["isError"], true);
            assert_eq!(
                failed["result"]["content"],
                json!([{"type": "text", "text": text}])
            );
        }
    });
}

/// R-STR-03 to R-STR-06, R-TOL-06, R-RES-02, R-PRM-04, R-PRM-05.
#[test]
fn what_is_given_back_has_the_shape_of_its_revision() {
    let anything = r#"{"type":"array"}"#;
    let server = server(0)
        .tool(
            Tool::new("list").output_schema(anything),
            |_: Arguments, _| async { Json([1, 2]) },
        )
        .tool(Tool::new("object"), |_: Arguments, _| async {
            Json(json!({"a": 1}))
        })
        .tool(Tool::new("nothing"), |_: Arguments, _| async {})
        .resource(Resource::new("a:1", "bytes"), |uri, _| async {
            Ok(ResourceContents::blob(uri, [0xfb, 0xff], "image/png"))
        })
        .prompt(Prompt::new("look"), |_, _| async {
            let image = Content::image([0xfb, 0xff], "image/png");
            let messages = vec![
                (Role::User, Content::text("Look.")),
                (Role::Assistant, Content::text("Where?")),
                (Role::User, image),
            ];
            Ok(PromptResult {
                description: None,
                messages,
            })
        })
        .build()
        .unwrap();
    in_each(&server, json!({}), |revision, wire| {
        let rules = revision.rules();
        let mut call =
            |name: &str| wire.ask(revision, "tools/call", json!({"name": name}))["result"].clone();
        let (list, object) = (call("list"), call("object"));
        assert_eq!(list["content"][0]["text"], "[1,2]");
        assert_eq!(object["content"][0]["text"], r#"{"a":1}"#);
        let structured = |result: &Value| result.get("structuredContent").cloned();
        assert_eq!(
            structured(&list),
            rules.any_structured_content.then(|| json!([1, 2]))
        );
        assert_eq!(
            structured(&object),
            rules.structured_content.then(|| json!({"a": 1}))
        );
        assert_eq!(call("nothing")["content"], json!([]));
        let tools = wire.ask(revision, "tools/list", json!({}))["result"]["tools"].clone();
        assert_eq!(
            tools[0].get("outputSchema").is_some(),
            rules.any_structured_content
        );
        let read = wire.ask(revision, "resources/read", json!({"uri": "a:1"}));
        let contents = json!([{"uri": "a:1", "mimeType": "image/png", "blob": "+/8="}]);
        assert_eq!(read["result"]["contents"], contents);
        let prompt = wire.ask(revision, "prompts/get", json!({"name": "look"}));
        let messages = prompt["result"]["messages"].as_array().unwrap();
        let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["user", "assistant", "user"]);
        let image = json!({"type": "image", "data": "+/8=", "mimeType": "image/png"});
        assert_eq!(messages[2]["content"], image);
    });
}

/// R-SCH-09, R-STL-05.
#[test]
fn a_schema_is_shown_to_everybody_as_it_was_written() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"name": {"$anchor": "name", "type": "string"}},
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/name"}, "b": {"oneOf": [{"type": "null"}, {"const": 1.50}]}},
        "if": {"required": ["a"]}, "then": {"required": ["b"]},
        "x-own": [null, "é"],
    });
    let tool = Tool::new("shown").input_schema(&schema);
    let server = server(3)
        .tool(tool, |_: Arguments, _| async { "" })
        .build()
        .unwrap();
    in_each(&server, json!({}), |revision, wire| {
        let list = |wire: &mut Wire| wire.ask(revision, "tools/list", json!({}))["result"].clone();
        let first = list(wire);
        assert_eq!(first["tools"][3]["inputSchema"], schema);
        wire.ask(revision, "tools/call", json!({"name": "tool-1"}));
        let mut other = Wire::open(&server, revision, json!({"roots": {}}));
        assert_eq!((list(wire), list(&mut other)), (first.clone(), first));
    });
}

/// R-MET-08, R-STL-01.
#[test]
fn a_stateless_request_stands_for_itself() {
    let server = server(0).tool(
        Tool::new("roots"),
        |_: Arguments, context: Context| async move {
            context.roots().await.map(|roots| roots.len().to_string())
        },
    );
    let newest = Revision::V2026_07_28;
    let mut wire = Wire::open(&server.build().unwrap(), newest, json!({}));
    for declared in [false, true, false] {
        wire.capabilities = match declared {
            true => json!({"roots": {}}),
            false => json!({}),
        };
        let answer = wire.ask(newest, "tools/call", json!({"name": "roots"}));
        let expected = if declared {
            "input_required"
        } else {
            "complete"
        };
        assert_eq!(answer["result"]["resultType"], expected, "{answer}");
        assert_eq!(answer["result"]["isError"] == true, !declared);
    }
}

/// R-ERR-19, R-MET-05.
#[test]
fn an_envelope_is_whole_or_refused() {
    let mut wire = Wire::new(server(1).build().unwrap());
    let ask = |wire: &mut Wire, meta: &str| {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{{meta}}}}}}}"#
        );
        wire.say(&line).remove(0)
    };
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let none = r#""io.modelcontextprotocol/clientCapabilities""#;
    assert_eq!(code(&ask(&mut wire, version)), -32602);
    assert_eq!(
        code(&ask(&mut wire, &format!("{version},{none}:7"))),
        -32602
    );
    assert_eq!(
        code(&ask(
            &mut wire,
            r#""io.modelcontextprotocol/protocolVersion":7"#
        )),
        -32602
    );
    let whole = ask(&mut wire, &format!("{version},{none}:{{}}"));
    assert!(
        whole["result"]["tools"].is_array(),
        "without a name, too: {whole}"
    );
}

/// R-MET-03: keys that a revision does not define may hold anything.
#[test]
fn an_older_revision_takes_no_notice_of_newer_keys() {
    let server = server(1).build().unwrap();
    for revision in Revision::ALL
        .into_iter()
        .filter(|r| r.era() == Era::Handshake)
    {
        let mut wire = Wire::open(&server, revision, json!({}));
        let meta = json!({
            "io.modelcontextprotocol/clientCapabilities": 7,
            "io.modelcontextprotocol/logLevel": [],
            "io.modelcontextprotocol/subscriptionId": {"a": 1},
            "traceparent": null,
        });
        let answer = wire.ask(
            revision,
            "tools/call",
            json!({"name": "tool-0", "_meta": meta}),
        );
        assert_eq!(answer["result"]["content"][0]["text"], "done");
    }
}

/// R-CMP-06.
#[test]
fn a_completion_is_never_answered_with_a_question() {
    let server = server(0)
        .prompt(
            Prompt::new("greet").argument("to", "Whom", true),
            |_, _| async { Ok(PromptResult::user("Hi")) },
        )
        .completion(|_, context| async move {
            let roots = context.roots().await?;
            Ok(vec![roots.len().to_string()])
        })
        .build()
        .unwrap();
    let newest = Revision::V2026_07_28;
    let mut wire = Wire::open(&server, newest, json!({"roots": {}}));
    let target = json!({"type": "ref/prompt", "name": "greet"});
    let params = json!({"ref": target, "argument": {"name": "to", "value": ""}});
    let answer = wire.ask(newest, "completion/complete", params);
    assert_eq!(code(&answer), -32603, "{answer}");
}

/// R-ERR-28: the codes of a profile, up to 2025-11-25.
#[test]
fn a_server_speaks_the_codes_of_a_profile() {
    let of = |profile: Profile, revision: Revision| {
        let server = server(1).profile(profile).build().unwrap();
        let mut wire = Wire::open(&server, revision, json!({}));
        code(&wire.ask(revision, "tools/call", json!({"name": "nobody"})))
    };
    assert_eq!(of(Profile::Chain, Revision::V2025_03_26), -32001);
    assert_eq!(of(Profile::Patterns, Revision::V2025_06_18), -32601);
    assert_eq!(of(Profile::Chain, Revision::V2026_07_28), -32602);
}

/// R-RES-03, R-RES-05: a template of files gives out none that lie elsewhere.
#[test]
fn no_path_leads_out_of_a_template() {
    let template = Resource::new("file:///{+path}", "files");
    let server = server(0).resource_template(template, |uri, _, _| async {
        Ok(ResourceContents::text(uri, "inside"))
    });
    in_each(&server.build().unwrap(), json!({}), |revision, wire| {
        let mut read = |uri: &str| wire.ask(revision, "resources/read", json!({"uri": uri}));
        for inside in ["file:///a/b.txt", "file:///a..b/...", "file:///a/.b"] {
            assert_eq!(
                read(inside)["result"]["contents"][0]["text"],
                "inside",
                "{inside}"
            );
        }
        for outside in [
            "file:///../a",
            "file:///a/%2E%2e/b",
            "file:///a/..%2fb",
            "file:///a\\..\\b",
            "file:///a/..",
        ] {
            let missing = ErrorKind::ResourceNotFound.code(revision);
            assert_eq!(code(&read(outside)), missing, "{outside}");
        }
    });
}

/// R-LOG-04.
#[test]
fn log_messages_come_before_the_answer_of_their_request() {
    let server = server(0).tool(
        Tool::new("log"),
        |_: Arguments, context: Context| async move {
            for n in 0..3 {
                context.log(LogLevel::Info, None, &json!(n));
            }
            "logged"
        },
    );
    let mut wire = Wire::open(&server.build().unwrap(), Revision::V2026_07_28, json!({}));
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"debug"}"#;
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":"log","method":"tools/call","params":{{"name":"log",{meta}}}}}"#
    );
    let mut heard = wire.say(&call);
    let begun = std::time::Instant::now();
    while heard.iter().all(|said| said["id"] != "log") {
        assert!(begun.elapsed().as_secs() < 30, "{heard:?}");
        heard.extend(wire.hear());
    }
    let data: Vec<_> = heard
        .iter()
        .map(|said| said["params"]["data"].as_u64())
        .collect();
    assert_eq!(data, [Some(0), Some(1), Some(2), None]);
    assert!(wire.hear().is_empty());
}

/// R-MET-10: the keys of traces have no prefix, and travel as they are.
#[test]
fn the_keys_of_traces_travel_as_they_are() {
    let server = server(0).tool(Tool::new("plain"), |_: Arguments, _| async { "plain" });
    let server = server.build().unwrap();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = seen.clone();
    let trace =
        mcpbolt::connection::Trace::new(move |_, line| sink.lock().unwrap().push(line.to_owned()));
    let client = mcpbolt::client::Client::builder("x", "1")
        .trace(trace)
        .connect(&server);
    let client = mcpbolt::client::block_on(client).unwrap();
    let keys = json!({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b", "baggage": "k=v"});
    client
        .call_tool("plain", &json!({}))
        .meta(&keys)
        .wait()
        .unwrap();
    let lines = seen.lock().unwrap();
    let call = lines
        .iter()
        .find(|line| line.contains("tools/call"))
        .unwrap();
    let call: Value = serde_json::from_str(call).unwrap();
    for (key, value) in keys.as_object().unwrap() {
        assert_eq!(call["params"]["_meta"][key], *value);
    }
}
