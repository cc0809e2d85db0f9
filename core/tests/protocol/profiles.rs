//! The profiles: every example of their documents, from `corpus/profiles.json`, on a whole connection
//! in memory; and what each says otherwise than the published revisions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpbolt::client::{CallToolResult, Client, ClientHost, GetPromptResult};
use mcpbolt::connection::{Config, Connection, Framing, OpeningMode, RequestOptions, StreamId};
use mcpbolt::error::RequestError;
use mcpbolt::mcp::{Method, Profile, Revision, Revisions, Side};
use mcpbolt::policy::{Permissions, Policy};
use mcpbolt::server::{
    Arguments, Builder, Completions, Content, Context, HandlerError, Prompt, PromptResult,
    Resource, ResourceContents, Role, Server, Tool, ToolResult,
};
use serde_json::{Value, json};

use crate::wire::Wire;
use crate::world::poll;

fn corpus() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus/profiles.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The servers of the conversations.
fn server(name: &str, profile: Profile) -> Server {
    let text = |uri: String, _: Context| async { Ok(ResourceContents::text(uri, "contents")) };
    let base = |name: &str| Server::builder(name, "1.0.0").profile(profile);
    let built = match name {
        "reference" => base("ServerName")
            .list_changes()
            .subscriptions()
            .tool(
                Tool::new("tool_name").description("What this tool does").input_schema(
                    r#"{"type":"object","properties":{"param1":{"type":"string"}},"required":["param1"]}"#,
                ),
                |_: Arguments, _| async { "Tool result as text" },
            )
            .tool(Tool::new("fails"), |_: Arguments, _| async { ToolResult::error("Not found") })
            .resource(Resource::new("file:///path/to/resource", "resource"), text)
            .prompt(Prompt::new("prompt_name").argument("arg1", "One", false), |_, _| async {
                Ok(PromptResult::user("Hello"))
            }),
        "one revision" => base("ServerName").revisions(Revisions::only(Revision::V2025_03_26)),
        "empty" => base("mcp-chain-server").offer_tools(),
        "chain" => chain(base("mcp-chain-server")),
        "chapter" => chapter(base("My MCP Server")),
        "gristle" => gristle(base("gristle")),
        other => panic!("no server {other}"),
    };
    built.build().unwrap()
}

fn chain(server: Builder) -> Builder {
    const WHERE: &str = r#"{"type":"object","properties":{"location":{"type":"string","description":"City name"}},"required":["location"]}"#;
    let weather = Tool::new("get_weather").description("Get current weather for a location");
    let report = Resource::new("file:///home/user/documents/report.pdf", "Monthly Report")
        .description("Monthly sales report")
        .mime_type("application/pdf");
    let review = Prompt::new("code_review")
        .description("Review code for best practices")
        .argument("language", "Programming language", true);
    server
        .tool(weather.input_schema(WHERE), |_: Arguments, _| async {
            "The weather in New York is 72°F and sunny."
        })
        .resource(report, |uri, _| async {
            Ok(ResourceContents::blob(uri, b"%PDF", "application/pdf"))
        })
        .prompt(review, |_, _| async {
            let text =
                "Please review this Python code for best practices and suggest improvements.";
            Ok(PromptResult {
                description: Some("Review Python code for best practices".into()),
                ..PromptResult::user(text)
            })
        })
}

fn chapter(server: Builder) -> Builder {
    const SEARCH: &str = r#"{"type":"object","properties":{"pattern":{"type":"string"},"directory":{"type":"string"}},"required":["pattern","directory"]}"#;
    let mut permissions = Permissions::all();
    permissions.tools.denied.push("forbidden".into());
    permissions.resources.denied.push("file:///etc/**".into());
    server
        .policy(Policy::new().permissions(permissions))
        .experimental("batch", r#"{"maxSize":3}"#)
        .tool(
            Tool::new("search_files")
                .description("Search")
                .input_schema(SEARCH),
            |_: Arguments, _| async { "main.py" },
        )
        .tool(
            Tool::new("forbidden").description("No"),
            |_: Arguments, _| async { "done" },
        )
        .tool(
            Tool::new("fails").description("Fails"),
            |_: Arguments, _| async { Err::<(), _>(HandlerError::new("no disk")) },
        )
        .resource(
            Resource::new("file:///home/user/document.pdf", "document"),
            |uri, _| async { Ok(ResourceContents::blob(uri, b"%PDF", "application/pdf")) },
        )
        .resource(Resource::new("file:///broken", "broken"), |_, _| async {
            Err::<String, _>(HandlerError::new("no disk"))
        })
        .resource_template(Resource::new("file:///{path}", "files"), |_, _, _| async {
            Err::<String, _>(HandlerError::not_found("nothing there"))
        })
        .completion(|request, _| async move {
            assert_eq!(request.value, "ho");
            Ok(Completions::from(vec!["home".to_owned()]))
        })
        .prompt(
            Prompt::new("code_review")
                .description("Review")
                .argument("language", "Which", true)
                .argument("file", "Which", true),
            |_, _| async {
                Ok(PromptResult {
                    description: None,
                    messages: vec![(Role::System, Content::text("Be brief."))],
                })
            },
        )
}

fn gristle(server: Builder) -> Builder {
    const WHERE: &str =
        r#"{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]}"#;
    server
        .list_changes()
        .subscriptions()
        .tool(
            Tool::new("get_weather").input_schema(WHERE),
            |_: Arguments, _| async { "Weather data..." },
        )
        .tool(Tool::new("limited"), |_: Arguments, _| async {
            ToolResult::error("API rate limit exceeded. Retry in 60s.")
        })
        .tool(
            Tool::new("analyze_repo"),
            |_: Arguments, context: Context| async move {
                context.progress(25.0, Some(100.0), Some("Analyzing 250/1000 files..."));
                "done"
            },
        )
        .tool(
            Tool::new("waits"),
            |_: Arguments, context: Context| async move {
                context.sleep(Duration::from_secs(3600)).await;
                ToolResult::error("Operation cancelled")
            },
        )
}

/// Whether `said` has all that `shown` has.
fn holds(said: &Value, shown: &Value) -> bool {
    match (said, shown) {
        (Value::Object(said), Value::Object(shown)) => shown
            .iter()
            .all(|(name, value)| said.get(name).is_some_and(|said| holds(said, value))),
        (Value::Array(said), Value::Array(shown)) => shown
            .iter()
            .enumerate()
            .all(|(i, value)| said.get(i).is_some_and(|said| holds(said, value))),
        (Value::Number(said), Value::Number(shown)) => said.as_f64() == shown.as_f64(),
        (said, shown) => said == shown,
    }
}

fn line(json: &Value) -> String {
    json.as_str()
        .map_or_else(|| json.to_string(), str::to_owned)
}

/// A server in conversation.
struct Talk {
    wire: Wire,
    /// Lines of the server's that nobody looked at yet.
    seen: usize,
}

impl Talk {
    /// The server's next line for which `is` holds; those before it are passed over.
    fn next(&mut self, what: &str, is: impl Fn(&Value) -> bool) -> (String, Value) {
        let begun = Instant::now();
        loop {
            while let Some(line) = self.wire.lines.get(self.seen) {
                self.seen += 1;
                let value: Value = serde_json::from_str(line).unwrap();
                if is(&value) {
                    return (line.clone(), value);
                }
            }
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "{what}: {:?}",
                self.wire.lines
            );
            std::thread::sleep(Duration::from_millis(1));
            self.wire.hear();
        }
    }
}

fn is_answer(message: &Value) -> bool {
    message.get("method").is_none()
}

/// R-CHN-01, R-CHN-02, R-CHN-04, R-CHN-05, R-PER-05, R-PER-07, R-PER-08, R-S14-01, R-S14-03, R-ERR-20,
/// R-ERR-28, R-LIF-07, R-LIF-08, R-CMP-05, R-PRM-06, R-CAN-10, R-PAG-07, R-S14-02: every JSON example of the four documents,
/// and what becomes of it.
#[test]
fn every_example_of_the_documents_is_taken_or_said_as_shown() {
    for conversation in corpus() {
        let profile: Profile = conversation["profile"].as_str().unwrap().parse().unwrap();
        let server = server(conversation["server"].as_str().unwrap(), profile);
        let mut talk = Talk {
            wire: Wire::new(server.clone()),
            seen: 0,
        };
        for example in conversation["examples"].as_array().unwrap() {
            let what = format!("{profile}, {}", example["at"]);
            show(&mut talk, &server, profile, example, &what);
            println!("{what}: {}", example["outcome"].as_str().unwrap());
        }
    }
}

fn show(talk: &mut Talk, server: &Server, profile: Profile, example: &Value, what: &str) {
    let json = &example["json"];
    match example["outcome"].as_str().unwrap() {
        "asked" => {
            talk.wire.say(&line(json));
            if let Some(answer) = example.get("answer") {
                let (_, said) = talk.next(what, is_answer);
                assert!(holds(&said, answer), "{what}: {said}");
            }
        }
        "said" => {
            let is_shown = |said: &Value| is_answer(said) == is_answer(json);
            let (raw, said) = talk.next(what, is_shown);
            match json {
                Value::String(shown) => assert_eq!(&raw, shown, "{what}"),
                shown if example["exact"] == true => assert_eq!(&said, shown, "{what}"),
                shown => assert!(holds(&said, shown), "{what}: {said}"),
            }
        }
        "told" => {
            talk.wire.say(&line(json));
            let answers = talk.wire.lines[talk.seen..].iter();
            let named = answers.filter(|line| line.contains("\"method\"")).count();
            let rest = talk.wire.lines.len() - talk.seen - named;
            let is_cancel = json["method"] == "notifications/cancelled";
            assert_eq!(
                rest,
                usize::from(is_cancel),
                "{what}: {:?}",
                talk.wire.lines
            );
        }
        "notified" => {
            server.resource_updated(example["updated"].as_str().unwrap());
            let (_, said) = talk.next(what, |said| !is_answer(said));
            assert_eq!(&said, json, "{what}");
        }
        "read" => read(profile, json, example["method"].as_str().unwrap(), what),
        "heard" => {
            let method = json["method"].as_str().unwrap();
            let known = Method::parse(method).unwrap();
            assert!(known.defined(Revision::V2025_03_26, Side::Server), "{what}");
            let mut client = ByHand::open(profile);
            client.hear(&json.to_string());
            assert!(!client.connection.is_closed(), "{what}");
        }
        "tool" => {
            let (name, text) = (json["name"].as_str().unwrap(), |key: &str| {
                json[key].as_str().unwrap()
            });
            let tool = Tool::new(name)
                .title(text("title"))
                .description(text("description"));
            let tool = tool.input_schema(json["inputSchema"].to_string());
            let listed = listed(
                Server::builder("one", "1").tool(tool, |_: Arguments, _| async { "" }),
                "tools",
            );
            assert_eq!(&listed, json, "{what}");
        }
        "schema" => {
            let tool = Tool::new("one").input_schema(json.to_string());
            let listed = listed(
                Server::builder("one", "1").tool(tool, |_: Arguments, _| async { "" }),
                "tools",
            );
            assert_eq!(&listed["inputSchema"], json, "{what}");
        }
        "resource" => {
            let resource = Resource::new(json["uri"].as_str().unwrap(), "one");
            let resource = resource.mime_type(json["mimeType"].as_str().unwrap());
            let built = Server::builder("one", "1").resource(resource, |uri, _| async {
                Ok(ResourceContents::text(uri, ""))
            });
            assert!(holds(&listed(built, "resources"), json), "{what}");
        }
        "shape" => assert!(example["text"].is_string() && example["why"].is_string()),
        other => panic!("{what}: no outcome {other}"),
    }
}

/// The one item that a server lists.
fn listed(server: Builder, kind: &str) -> Value {
    let revision = Revision::V2025_06_18;
    let mut wire = Wire::open(&server.build().unwrap(), revision, json!({}));
    wire.ask(revision, &format!("{kind}/list"), json!({}))["result"][kind][0].take()
}

/// A client, driven by hand.
struct ByHand {
    connection: Connection,
    host: ClientHost,
    stream: StreamId,
}

impl ByHand {
    fn new(profile: Profile) -> Self {
        let mut config = Config::new(Side::Client, "by hand", "1");
        config.profile = profile;
        config.opening = OpeningMode::Handshake;
        let mut connection = Connection::new(Arc::new(config), Instant::now());
        Self {
            stream: connection.open_stream(Framing::Line),
            connection,
            host: ClientHost::new(),
        }
    }

    /// One that has finished the handshake of its profile's revision.
    fn open(profile: Profile) -> Self {
        let mut client = Self::new(profile);
        let hello: Value = serde_json::from_str(&client.say()[0]).unwrap();
        let answer = json!({"jsonrpc": "2.0", "id": hello["id"], "result": {
            "protocolVersion": hello["params"]["protocolVersion"],
            "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}});
        client.hear(&answer.to_string());
        client.say();
        client
    }

    fn say(&mut self) -> Vec<String> {
        self.connection
            .handle_submissions(Instant::now(), &mut self.host);
        let output = self.connection.output(self.stream);
        let mut bytes = Vec::new();
        while !output.is_empty() {
            bytes.extend_from_slice(output.head());
            output.advance(output.head().len());
        }
        let said = String::from_utf8(bytes).unwrap();
        said.lines().map(str::to_owned).collect()
    }

    fn hear(&mut self, line: &str) {
        let input = self.connection.input(self.stream);
        input.extend(line.as_bytes());
        input.extend(b"\n");
        self.connection
            .receive(self.stream, Instant::now(), &mut self.host);
    }
}

/// Has a client ask for something and answers with that.
fn read(profile: Profile, shown: &Value, method: &str, what: &str) {
    let mut client = ByHand::open(profile);
    let handle = client.connection.handle();
    let mut response = handle
        .request(method, None, RequestOptions::default())
        .unwrap();
    let asked: Value = serde_json::from_str(&client.say()[0]).unwrap();
    let mut answer = shown.clone();
    answer["jsonrpc"] = "2.0".into();
    answer["id"] = asked["id"].clone();
    client.hear(&answer.to_string());
    let outcome = poll(&mut response).unwrap_or_else(|| panic!("{what}: nothing was taken"));
    let message = match outcome {
        Ok(message) => message,
        Err(RequestError::Peer(error)) => {
            let data = error
                .data
                .map(|data| serde_json::from_str::<Value>(&data).unwrap());
            let seen = json!({"code": error.code, "message": error.message, "data": data});
            return assert_eq!(seen, shown["error"], "{what}");
        }
        Err(other) => panic!("{what}: {other}"),
    };
    let result = message.as_ref().result().unwrap().to_owned();
    let member = |name: &str| {
        let value: Value = serde_json::from_str(&result).unwrap();
        value[name].clone()
    };
    match method {
        "tools/list" => drop(serde_json::from_value::<Vec<Tool>>(member("tools")).unwrap()),
        "tools/call" => drop(serde_json::from_str::<CallToolResult>(&result).unwrap()),
        "resources/read" => {
            drop(serde_json::from_value::<Vec<ResourceContents>>(member("contents")).unwrap());
        }
        "resources/list" => {
            drop(serde_json::from_value::<Vec<Resource>>(member("resources")).unwrap());
            assert!(member("nextCursor").is_string(), "{what}");
        }
        "prompts/list" => {
            drop(serde_json::from_value::<Vec<Prompt>>(member("prompts")).unwrap());
            assert!(member("nextCursor").is_string(), "{what}");
        }
        "prompts/get" => drop(serde_json::from_str::<GetPromptResult>(&result).unwrap()),
        other => panic!("{what}: no result of {other}"),
    }
}

/// R-CHN-03, R-LIF-01, R-LIF-07, R-LIF-08: the first thing a client says, and its bare `initialized`,
/// after a result that names no server.
#[test]
fn a_client_opens_as_its_profile_has_it() {
    for (profile, version, ready) in [
        (
            Profile::Reference,
            "2025-06-18",
            "notifications/initialized",
        ),
        (Profile::Chain, "2025-03-26", "initialized"),
        (Profile::Extended, "2024-11-05", "notifications/initialized"),
        (Profile::Patterns, "2025-03-26", "notifications/initialized"),
    ] {
        let mut client = ByHand::new(profile);
        let said = client.say();
        let hello: Value = serde_json::from_str(&said[0]).unwrap();
        assert_eq!((said.len(), &hello["method"]), (1, &json!("initialize")));
        assert_eq!(hello["params"]["protocolVersion"], version, "{profile}");
        assert!(
            client
                .connection
                .handle()
                .request("tools/list", None, RequestOptions::default())
                .is_err()
        );
        let result = json!({"protocolVersion": version, "capabilities": {"tools": {}}});
        client.hear(&json!({"jsonrpc": "2.0", "id": hello["id"], "result": result}).to_string());
        let lenient = matches!(profile, Profile::Chain | Profile::Extended);
        assert_eq!(client.connection.is_closed(), !lenient, "{profile}");
        if lenient {
            let bare = json!({"jsonrpc": "2.0", "method": ready});
            assert_eq!(client.say(), [bare.to_string()]);
        }
    }
}

/// R-LIF-10, R-ERR-20: what a server answers to a version that nobody speaks.
#[test]
fn a_version_that_is_not_spoken_gets_the_one_of_the_profile() {
    for (profile, version) in [
        (Profile::Official, Some("2025-11-25")),
        (Profile::Reference, None),
        (Profile::Chain, Some("2025-03-26")),
        (Profile::Extended, Some("2024-11-05")),
        (Profile::Patterns, Some("2025-03-26")),
    ] {
        let server = Server::builder("s", "1").profile(profile).build().unwrap();
        let mut wire = Wire::new(server);
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1.0.0","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
        let answer = wire.say(hello).remove(0);
        match version {
            Some(version) => assert_eq!(answer["result"]["protocolVersion"], version, "{profile}"),
            None => {
                assert_eq!(answer["error"]["code"], -32602);
                let supported = json!(["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]);
                assert_eq!(
                    answer["error"]["data"],
                    json!({"supported": supported, "requested": "1.0.0"})
                );
            }
        }
    }
}

/// R-ERR-28, R-CHN-05: a server of a profile does not mention it in the newest revision, and none without
/// one in any: the same requests, the official answers.
#[test]
fn nothing_of_a_profile_leaks_into_official_traffic() {
    let said = |profile: Profile, revision: Revision| {
        let server = chapter(Server::builder("s", "1").profile(profile))
            .build()
            .unwrap();
        let mut wire = Wire::open(&server, revision, json!({}));
        for (method, params) in [
            ("tools/list", json!({})),
            ("tools/call", json!({"name": "nothing"})),
            ("tools/call", json!({"name": "forbidden"})),
            ("tools/call", json!({"name": "fails"})),
            (
                "tools/call",
                json!({"name": "search_files", "arguments": {}}),
            ),
            ("resources/read", json!({"uri": "file:///nothing"})),
            ("resources/read", json!({"uri": "file:///etc/shadow"})),
            ("resources/read", json!({"uri": "file:///broken"})),
            ("prompts/get", json!({"name": "nothing"})),
            (
                "prompts/get",
                json!({"name": "code_review", "arguments": {"language": "a", "file": "b"}}),
            ),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/resource", "name": "file:///{path}"}, "argument": {"name": "path", "value": "ho"}}),
            ),
            ("com.example/nothing", json!({})),
        ] {
            wire.ask(revision, method, params);
        }
        wire.lines
    };
    let newest = Revision::V2026_07_28;
    let official = said(Profile::Official, newest);
    for profile in Profile::ALL {
        assert_eq!(said(profile, newest), official, "{profile}");
    }
    let codes = |lines: Vec<String>| {
        let code =
            |line: &String| serde_json::from_str::<Value>(line).unwrap()["error"]["code"].as_i64();
        lines.iter().filter_map(code).collect::<Vec<_>>()
    };
    for revision in Revision::ALL {
        let own = |code: &i64| (-32005..=-32003).contains(code) || *code == -32001;
        assert!(
            !codes(said(Profile::Official, revision)).iter().any(own),
            "{revision}"
        );
    }
}

/// R-S14-04: a failure of the carrier, an error of the protocol and a tool that fails are three things.
#[test]
fn three_kinds_of_failure_are_kept_apart() {
    let server = gristle(Server::builder("s", "1").profile(Profile::Patterns))
        .build()
        .unwrap();
    let mut config = Client::config("c", "1");
    config.profile = Profile::Patterns;
    config.opening = OpeningMode::Handshake;
    let handle = mcpbolt::io::connect_pair(&server, config).unwrap();
    let client = mcpbolt::client::block_on(Client::open(handle)).unwrap();
    let call = |name: &str| client.call_tool(name, &json!({})).wait();
    let failed = call("limited").unwrap();
    assert!(failed.is_error && failed.text().contains("Retry in 60s"));
    let unknown = call("invalid_tool").unwrap_err();
    assert!(
        matches!(&unknown, RequestError::Peer(error) if error.code == -32601),
        "{unknown}"
    );
    client.handle().close();
    let lost = call("limited").unwrap_err();
    assert!(matches!(lost, RequestError::Closed(_)), "{lost}");
}

/// R-ERR-27, R-S14-06, R-CAN-10: answered once under the profile that has it, never elsewhere; what the
/// handler makes of it is nobody's.
#[test]
fn a_cancelled_call_is_answered_once_where_the_profile_says_so() {
    for profile in Profile::ALL {
        let server = gristle(Server::builder("s", "1").profile(profile))
            .build()
            .unwrap();
        let revision = Revision::V2025_03_26;
        let mut wire = Wire::open(&server, revision, json!({}));
        let mut heard = wire.begin("tools/call", json!({"name": "waits"}));
        heard.extend(wire.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"begun"}}"#));
        heard.extend(wire.hear_until(|wire| wire.connection.in_flight() == 0));
        heard.extend(wire.pass(Duration::from_secs(7200)));
        let codes: Vec<_> = heard
            .iter()
            .map(|said| said["error"]["code"].as_i64())
            .collect();
        let expected: &[_] = match profile {
            Profile::Patterns => &[Some(-32800)],
            _ => &[],
        };
        assert_eq!(codes, expected, "{profile} {heard:?}");
    }
}
