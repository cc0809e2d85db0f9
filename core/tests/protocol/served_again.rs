//! Definitions that a client listed, served again as they are.

use mcpbolt::client::{CallToolResult, Client, block_on};
use mcpbolt::mcp::{Era, Revision, Revisions, TaskSupport, meta};
use mcpbolt::model::RawJson;
use mcpbolt::server::{
    Arguments, Builder, Content, HandlerError, Prompt, PromptResult, Resource, ResourceContents,
    ResourceTemplate, Role, Server, Tool, ToolResult,
};
use serde_json::{Value, json};

const ICON: &str = r#"[{"src":"https://example.com/i.png","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}]"#;

/// A server whose definitions have every field.
fn origin() -> Server {
    let input = r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"b":{"type":"string","x-mcp-header":"B"},"a":{"type":"array","items":{"$ref":"#/$defs/n"}}},"required":["b"],"additionalProperties":false,"$defs":{"n":{"type":"number","description":"é\u0001 \"n\""}}}"##;
    let output = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let meta = r#"{"com.example/a":{"deep":[1,2.50,null]}}"#;
    let mut full = Tool::new("full")
        .title("Full")
        .description("Has every field.\nTwo lines.")
        .input_schema(input)
        .output_schema(output)
        .annotations(r#"{"title":"F","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}"#)
        .icons(ICON)
        .meta(meta)
        .task_support(TaskSupport::Optional);
    full.other
        .insert("x-own".to_owned(), json!({"kept": [true]}));
    let list = Tool::new("list").output_schema(r#"{"type":"array","items":{"type":"integer"}}"#);
    let mut prompt = Prompt::new("prompt")
        .title("Prompt")
        .description("Has every field.")
        .argument("needed", "Needed", true)
        .argument("other", "", false)
        .icons(ICON)
        .meta(meta);
    prompt.arguments[0].title = Some("Needed!".to_owned());
    prompt.arguments[0]
        .other
        .insert("x-own".to_owned(), json!(1));
    prompt.other.insert("x-own".to_owned(), json!("p"));
    let resource = |uri: &str| {
        let mut resource = Resource::new(uri, "name")
            .title("Title")
            .description("Has every field.")
            .mime_type("text/plain")
            .size(5)
            .annotations(r#"{"audience":["user","assistant"],"priority":0.5,"lastModified":"2026-01-12T15:00:58Z"}"#)
            .icons(ICON)
            .meta(meta);
        resource.other.insert("x-own".to_owned(), json!(null));
        resource
    };
    Server::builder("origin", "1")
        .tool(full, |_: Arguments, _| async {
            ToolResult::structured(&json!({"n": 7}))
                .map(|result| result.with_meta(r#"{"com.example/b":1}"#))
        })
        .tool(list, |_: Arguments, _| async {
            mcpbolt::server::Json(json!([1, 2]))
        })
        .tool(
            Tool::new("bare"),
            |Arguments(json): Arguments, _| async move {
                match &*json {
                    "{}" => ToolResult::error("no arguments"),
                    _ => ToolResult::text(json),
                }
            },
        )
        .prompt(prompt, |given, _| async move {
            let said = vec![
                (Role::User, Content::text(given["needed"].clone())),
                (Role::Assistant, Content::text("yes")),
            ];
            Ok(PromptResult {
                description: Some("said".to_owned()),
                messages: said,
            })
        })
        .prompt(Prompt::new("bare"), |_, _| async { Ok("bare") })
        .resource(resource("mem:one"), |uri, _| async move {
            Ok(vec![
                ResourceContents::text(&*uri, "first"),
                ResourceContents::blob(uri, [1, 2], "a/b"),
            ])
        })
        .resource(Resource::new("mem:bare", "bare"), |_, _| async {
            Ok("bare")
        })
        .resource_template(resource("mem:all/{n}"), |_, named, _| async move {
            Ok(named["n"].clone())
        })
        .resource_template(Resource::new("mem:bare/{n}", "bare"), |_, _, _| async {
            Ok("bare")
        })
        .build()
        .unwrap()
}

/// A server that offers what the client's server offers, and forwards every call to it.
async fn forward(client: &Client) -> Server {
    let mut server = Server::builder("gateway", "1");
    for tool in client.list_tools().await.unwrap() {
        server = forward_tool(server, client.clone(), tool);
    }
    for prompt in client.list_prompts().await.unwrap() {
        let (client, name) = (client.clone(), prompt.name.clone());
        server = server.prompt(prompt, move |given, _| {
            let (client, name) = (client.clone(), name.clone());
            async move {
                let given: Vec<_> = given
                    .iter()
                    .map(|(name, value)| (&**name, &**value))
                    .collect();
                Ok(PromptResult::from(client.get_prompt(&name, &given).await?))
            }
        });
    }
    for resource in client.list_resources().await.unwrap() {
        let client = client.clone();
        server = server.resource(resource, move |uri, _| {
            let client = client.clone();
            async move { Ok(client.read_resource(&uri).await?) }
        });
    }
    for template in client.list_resource_templates().await.unwrap() {
        server = forward_template(server, client.clone(), template);
    }
    server.build().unwrap()
}

fn forward_tool(server: Builder, client: Client, tool: Tool) -> Builder {
    let name = tool.name.clone();
    server.tool(tool, move |Arguments(json): Arguments, _| {
        let call = client.call_tool(&name, &RawJson::from(String::from(json)));
        async move { Ok::<_, HandlerError>(ToolResult::from(call.await?)) }
    })
}

fn forward_template(server: Builder, client: Client, template: ResourceTemplate) -> Builder {
    server.resource_template(template, move |uri, _, _| {
        let client = client.clone();
        async move { Ok(client.read_resource(&uri).await?) }
    })
}

async fn connect(server: &Server, revision: Revision) -> Client {
    let builder = Client::builder("c", "1").revisions(Revisions::only(revision));
    builder.connect(server).await.unwrap()
}

/// The lists of a server as they stand on the wire.
async fn lists(client: &Client) -> [Vec<Value>; 4] {
    [
        client.tool_pages().read_as().all().await.unwrap(),
        client.prompt_pages().read_as().all().await.unwrap(),
        client.resource_pages().read_as().all().await.unwrap(),
        client
            .resource_template_pages()
            .read_as()
            .all()
            .await
            .unwrap(),
    ]
}

#[test]
fn a_definition_that_was_listed_is_served_again_value_for_value_in_each_revision() {
    let origin = origin();
    for revision in Revision::ALL {
        block_on(async {
            let direct = connect(&origin, revision).await;
            let gateway = forward(&direct).await;
            let forwarded = connect(&gateway, revision).await;
            let expected = lists(&direct).await;
            assert!(expected.iter().all(|list| list.len() >= 2));
            for key in [
                "title",
                "outputSchema",
                "annotations",
                "icons",
                "_meta",
                "x-own",
            ] {
                let rules = revision.rules();
                let is_there = match key {
                    "icons" => rules.icons,
                    "annotations" => rules.annotations,
                    "x-own" => true,
                    _ => rules.structured_content,
                };
                assert_eq!(
                    expected[0][0].get(key).is_some(),
                    is_there,
                    "{revision:?} {key}"
                );
            }
            assert_eq!(lists(&forwarded).await, expected, "{revision:?}");
        });
    }
}

/// Takes the name of the server out of a result.
fn said_by(result: &mut CallToolResult) -> Option<Value> {
    let mut info = result
        .other
        .get_mut("_meta")?
        .as_object_mut()?
        .remove(meta::SERVER_INFO)?;
    Some(info["name"].take())
}

#[test]
fn what_is_forwarded_is_what_the_origin_answers() {
    let origin = origin();
    for revision in Revision::ALL {
        block_on(async {
            let direct = connect(&origin, revision).await;
            let gateway = forward(&direct).await;
            let forwarded = connect(&gateway, revision).await;
            for (tool, given) in [
                ("full", json!({"b": "x", "a": [1]})),
                ("list", json!({})),
                ("bare", json!({})),
                ("bare", json!({"c": [1]})),
            ] {
                let mut expected = direct.call_tool(tool, &given).await.unwrap();
                let mut result = forwarded.call_tool(tool, &given).await.unwrap();
                let [is_of, comes_from] = [&mut result, &mut expected].map(said_by);
                let is_named = revision.era() == Era::Stateless;
                let names = is_named.then_some(("gateway".into(), "origin".into()));
                assert_eq!(is_of.zip(comes_from), names, "{revision:?} {tool}");
                assert_eq!(result, expected, "{revision:?} {tool}");
            }
            let given = [("needed", "this")];
            let expected = direct.get_prompt("prompt", &given).await.unwrap();
            let prompt = forwarded.get_prompt("prompt", &given).await.unwrap();
            assert_eq!(
                (prompt.description, prompt.messages),
                (expected.description, expected.messages)
            );
            for uri in ["mem:one", "mem:bare", "mem:all/x", "mem:bare/y"] {
                let expected = direct.read_resource(uri).await.unwrap();
                assert_eq!(
                    forwarded.read_resource(uri).await.unwrap(),
                    expected,
                    "{uri}"
                );
            }
            let unknown = forwarded.call_tool("full", &json!({})).await;
            let expected = direct.call_tool("full", &json!({})).await;
            assert_eq!(unknown.is_err(), expected.is_err());
        });
    }
}
