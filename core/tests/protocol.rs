//! Features of the protocol, as a server and a client of the engine see them in each revision.
#![cfg(all(feature = "server", feature = "client", feature = "stdio"))]
#![allow(clippy::unwrap_used, reason = "a test: panicking is the report")]

use std::num::NonZeroUsize;

use mcpbolt::client::{Client, CompletionTarget, block_on};
use mcpbolt::error::RequestError;
use mcpbolt::io::connect_pair;
use mcpbolt::mcp::{Revision, Revisions};
use mcpbolt::server::{
    Arguments, Builder, Completions, Prompt, PromptResult, Resource, ResourceContents, Server, Tool,
};

/// A client of the server in each revision in turn.
fn in_each_revision(server: &Server, check: impl Fn(Revision, Client)) {
    for revision in Revision::ALL {
        let mut config = Client::config("test", "1.0.0");
        config.revisions = Revisions::only(revision);
        let client = block_on(Client::open(connect_pair(server, config).unwrap())).unwrap();
        assert_eq!(client.revision(), Some(revision));
        check(revision, client);
    }
}

fn server(tools: usize) -> Builder {
    (0..tools).fold(Server::builder("test", "1.0.0"), |server, n| {
        let tool = Tool::new(format!("tool-{n}"));
        server.tool(tool, |_: Arguments, _| async { "done" })
    })
}

/// R-PAG-01, R-PAG-04, R-PAG-06.
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

/// R-PAG-06, R-PAG-07.
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
    assert!(ask("null").unwrap().contains("\"nextCursor\":\"page-1\""));
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
        let prompt = CompletionTarget::Prompt { name: "greet" };
        let found = block_on(client.complete(&prompt, ("to", "a\""), &[])).unwrap();
        assert_eq!(
            (found.values.len(), found.total, found.has_more),
            (100, Some(150), true)
        );
        assert_eq!(found.values[99], "a\"99");
        let template = CompletionTarget::Resource {
            uri: "file:///{name}",
        };
        let found = block_on(client.complete(&template, ("name", ""), &[("last", "2")])).unwrap();
        assert_eq!(
            (found.values.len(), found.total, found.has_more),
            (2, Some(2), false)
        );
        let unknown = CompletionTarget::Prompt { name: "nobody" };
        let error = block_on(client.complete(&unknown, ("to", ""), &[])).unwrap_err();
        assert!(
            matches!(&error, RequestError::Peer(error) if error.code == -32602),
            "{error}"
        );
    });
}

#[test]
fn what_a_server_does_not_complete_fails_before_it_is_sent() {
    let server = server(1).build().unwrap();
    in_each_revision(&server, |revision, client| {
        let prompt = CompletionTarget::Prompt { name: "greet" };
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
