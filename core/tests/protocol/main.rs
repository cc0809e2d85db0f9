//! The protocol: whole conversations of two connections, and its features as a server and a client of
//! the engine see them in each revision.
#![cfg(all(feature = "server", feature = "client", feature = "stdio"))]
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

mod acting;
mod action_rules;
mod actions;
#[path = "../shared/actions.rs"]
mod actions_server;
mod advice;
mod asks;
mod atomic;
mod bad_frames;
mod bounds;
mod calls;
mod changes;
mod clients;
mod credentials;
mod duties;
mod examples;
mod experimental;
mod extend;
mod flow;
mod layers;
mod measure;
mod observed;
mod own_handshake;
mod owners;
mod panics;
mod pass_through;
mod policed_actions;
mod policy;
mod profiles;
mod refused;
mod rounds;
mod scenarios;
#[path = "../shared/schema.rs"]
mod schema;
mod served_again;
mod sessions;
#[path = "../shared/shapes.rs"]
mod shapes;
#[cfg(feature = "skills")]
mod skills;
mod tasks;
mod trust;
mod typed;
mod validation;
mod wire;
#[path = "../shared/world.rs"]
mod world;

use std::num::NonZeroUsize;
use std::time::Duration;

use mcpbolt::client::{Client, block_on};
use mcpbolt::error::RequestError;
use mcpbolt::io::connect_pair;
use mcpbolt::mcp::{ErrorKind, Revision, Revisions};
use mcpbolt::model::CompletionTarget;
use mcpbolt::server::{
    Arguments, Builder, CacheScope, Completions, Content, HandlerError, Prompt, PromptResult,
    RegistryError, Resource, ResourceContents, Server, Tool,
};
use serde_json::json;

/// A client of the server in each revision in turn. The messages of both are checked against
/// the shapes of the revision.
fn in_each_revision(server: &Server, check: impl Fn(Revision, Client)) {
    for revision in Revision::ALL {
        let mut config = Client::config("test", "1.0.0");
        config.revisions = Revisions::only(revision);
        let (trace, watched) = schema::watch(revision);
        config.trace = Some(trace);
        let client = block_on(Client::open(connect_pair(server, config).unwrap())).unwrap();
        assert_eq!(client.revision(), Some(revision));
        check(revision, client);
        watched.assert_clean();
    }
}

fn server(tools: usize) -> Builder {
    (0..tools).fold(Server::builder("test", "1.0.0"), |server, n| {
        let tool = Tool::new(format!("tool-{n}"));
        server.tool(tool, |_: Arguments, _| async { "done" })
    })
}

/// R-PAG-01, R-PAG-04, R-PAG-06, R-PAG-05; R-CUS-04: in one process, whatever the revision.
#[test]
fn lists_come_whole_whatever_the_size_of_a_page() {
    for (tools, size) in [(0, 3), (1, 3), (3, 3), (7, 3), (7, 1), (7, 100)] {
        let size = NonZeroUsize::new(size).unwrap();
        let server = server(tools).page_size(size).build().unwrap();
        in_each_revision(&server, |_, client| {
            let names = match tools {
                0 => Vec::new(),
                _ => block_on(client.list_tools()).unwrap(),
            };
            let expected: Vec<_> = (0..tools).map(|n| format!("tool-{n}")).collect();
            assert!(names.iter().map(|tool| &tool.name).eq(&expected));
        });
    }
}

/// R-PAG-06, R-PAG-07, R-ERR-13.
#[test]
fn a_cursor_that_was_never_given_out_is_refused() {
    let size = NonZeroUsize::new(2).unwrap();
    let server = server(3).page_size(size).build().unwrap();
    let handle = connect_pair(&server, Client::config("test", "1.0.0")).unwrap();
    let client = block_on(Client::open(handle)).unwrap();
    let ask = |cursor: &str| {
        let params = format!("{{\"cursor\":{cursor}}}");
        let options = mcpbolt::connection::RequestOptions::default();
        let response = client
            .handle()
            .request("tools/list", Some(&params), options);
        let answer = block_on(response.unwrap())?;
        Ok(answer.as_ref().result().unwrap().to_owned())
    };
    assert!(ask("\"page-1\"").unwrap().contains("tool-2"));
    for bad in [
        "\"page-2\"",
        "\"page-0\"",
        "\"page-01\"",
        "\"page-+1\"",
        "\"\"",
        "1",
        "[]",
    ] {
        let error = ask(bad).unwrap_err();
        assert!(
            matches!(&error, RequestError::Peer(error) if error.code == -32602),
            "{bad}: {error}"
        );
    }
}

/// R-CMP-01 to R-CMP-03.
#[test]
fn arguments_of_prompts_and_templates_are_completed() {
    let server = server(1)
        .prompt(
            Prompt::new("greet").argument("to", "Whom", true),
            |_, _| async { Ok(PromptResult::user("Hello")) },
        )
        .resource_template(
            Resource::new("file:///{name}", "files"),
            |uri, _, _| async { Ok(ResourceContents::text(uri, "contents")) },
        )
        .completion(|request, _| async move {
            let last = request
                .context
                .get("last")
                .map_or(150, |last| last.parse().unwrap());
            let all = (0..last).map(|n| format!("{}{n}", request.value));
            Ok(Completions::from(all.collect::<Vec<_>>()))
        })
        .build()
        .unwrap();
    in_each_revision(&server, |revision, client| {
        let declared = client.capabilities().get("completions").is_some();
        assert_eq!(declared, revision != Revision::V2024_11_05);
        let prompt = CompletionTarget::prompt("greet");
        let found = block_on(client.complete(&prompt, ("to", "a\""), &[])).unwrap();
        assert_eq!(
            (found.values.len(), found.total, found.has_more),
            (100, Some(150), true)
        );
        assert_eq!(found.values[99], "a\"99");
        let template = CompletionTarget::resource("file:///{name}");
        let found = block_on(client.complete(&template, ("name", ""), &[("last", "2")])).unwrap();
        // Older revisions do not know the context, and get none (R-LIF-12).
        let count = match revision.rules().completion_context {
            true => 2,
            false => 150,
        };
        assert_eq!(
            (found.values.len(), found.total, found.has_more),
            (count.min(100), Some(count as u64), count > 100)
        );
        let unknown = CompletionTarget::prompt("nobody");
        let error = block_on(client.complete(&unknown, ("to", ""), &[])).unwrap_err();
        assert!(
            matches!(&error, RequestError::Peer(error) if error.code == -32602),
            "{error}"
        );
    });
}

/// R-CAP-03.
#[test]
fn what_a_server_does_not_complete_fails_before_it_is_sent() {
    let server = server(1).build().unwrap();
    in_each_revision(&server, |revision, client| {
        let prompt = CompletionTarget::prompt("greet");
        let error = block_on(client.complete(&prompt, ("to", ""), &[])).unwrap_err();
        match revision {
            // There the capability has no name.
            Revision::V2024_11_05 => {
                assert!(matches!(&error, RequestError::Peer(error) if error.code == -32601));
            }
            _ => assert_eq!(error, RequestError::Unsupported("completions")),
        }
    });
}

/// R-ERR-09, R-ERR-10.
#[test]
fn a_handler_says_what_kind_of_error_it_is() {
    let server = server(0)
        .resource_template(
            Resource::new("users:{id}", "users"),
            |uri, variables, _| async move {
                let id: u32 = variables["id"].parse().map_err(HandlerError::invalid)?;
                match id {
                    1 => Ok(ResourceContents::text(uri, "Ada")),
                    2 => Err(std::io::Error::other("the disk is gone"))?,
                    _ => Err(HandlerError::not_found("no such user")),
                }
            },
        )
        .build()
        .unwrap();
    in_each_revision(&server, |revision, client| {
        let read = |uri: &str| block_on(client.read_resource(uri));
        assert_eq!(read("users:1").unwrap()[0].as_text(), Some("Ada"));
        let error = |uri: &str| match read(uri).unwrap_err() {
            RequestError::Peer(error) => error,
            other => panic!("{other}"),
        };
        let missing = error("users:3");
        assert_eq!(missing.code, ErrorKind::ResourceNotFound.code(revision));
        assert_eq!(missing.data.as_deref(), Some("{\"uri\":\"users:3\"}"));
        assert_eq!(error("users:x").code, -32602);
        let broken = error("users:2");
        assert_eq!(
            (broken.code, &*broken.message),
            (-32603, "the disk is gone")
        );
    });
}

/// R-LIF-12: nothing is sent that the revision does not know.
#[test]
fn content_takes_the_form_that_the_revision_knows() {
    let server = server(0)
        .tool(Tool::new("all"), |_: Arguments, _| async {
            vec![
                Content::audio([1, 2, 3], "audio/wav"),
                Content::link("a:b", "b"),
            ]
        })
        .build()
        .unwrap();
    in_each_revision(&server, |revision, client| {
        let result = client
            .call_tool("all", &serde_json::json!({}))
            .wait()
            .unwrap();
        let value = serde_json::to_value(result).unwrap();
        let types = [&value["content"][0]["type"], &value["content"][1]["type"]];
        match revision {
            Revision::V2024_11_05 => {
                assert_eq!(types, ["resource", "text"]);
                assert_eq!(value["content"][0]["resource"]["blob"], "AQID");
                assert_eq!(value["content"][1]["text"], "b: a:b");
            }
            Revision::V2025_03_26 => assert_eq!(types, ["audio", "text"]),
            _ => assert_eq!(types, ["audio", "resource_link"]),
        }
    });
}

#[test]
fn what_a_tool_says_of_itself_must_be_json() {
    let wrong = [
        Tool::new("x").annotations("{readOnlyHint:true}"),
        Tool::new("x").annotations("[]"),
        Tool::new("x").output_schema("{"),
    ];
    for tool in wrong {
        let built = server(0).tool(tool, |_: Arguments, _| async { "" }).build();
        assert!(matches!(built, Err(RegistryError::Json(..))), "{built:?}");
    }
}

#[test]
fn a_hook_that_panics_takes_nothing_along() {
    let server = server(1)
        .on_initialized(|_| panic!("a hook"))
        .build()
        .unwrap();
    in_each_revision(&server, |_, client| {
        assert_eq!(block_on(client.list_tools()).unwrap().len(), 1);
    });
}

#[test]
fn a_time_without_end_is_a_time_like_any_other() {
    let server = server(1)
        .tool(Tool::new("sleep"), |_: Arguments, context| async move {
            context.sleep(Duration::MAX).await;
            "never"
        })
        .build()
        .unwrap();
    in_each_revision(&server, |_, client| {
        let none = serde_json::json!({});
        let sleeping = client.call_tool("sleep", &none).send().unwrap();
        let call = client.call_tool("tool-0", &none).timeout(Duration::MAX);
        assert_eq!(call.wait().unwrap().text(), "done");
        sleeping.cancel(None);
    });
}

/// R-CCH-01, R-CCH-06, R-CCH-09.
#[test]
fn lists_say_how_long_they_may_be_kept_where_the_revision_asks_for_it() {
    let size = NonZeroUsize::new(2).unwrap();
    let public = server(3)
        .page_size(size)
        .cache_lists(Duration::from_secs(90), CacheScope::Public);
    for (server, hint) in [
        (server(3).page_size(size), json!([0, "private"])),
        (public, json!([90_000, "public"])),
    ] {
        let server = server.build().unwrap();
        in_each_revision(&server, |revision, client| {
            for params in [None, Some(r#"{"cursor":"page-1"}"#)] {
                let options = mcpbolt::connection::RequestOptions::default();
                let asked = client.handle().request("tools/list", params, options);
                let answer = block_on(asked.unwrap()).unwrap();
                let result = answer.as_ref().result().unwrap().to_owned();
                let result: serde_json::Value = serde_json::from_str(&result).unwrap();
                let said = json!([result.get("ttlMs"), result.get("cacheScope")]);
                match revision.rules().cache_hints {
                    true => assert_eq!(said, hint),
                    false => assert_eq!(said, json!([null, null])),
                }
            }
        });
    }
}
