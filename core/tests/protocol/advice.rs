//! The advice of the specification, which servers and clients follow by default.

use std::time::Duration;

use mcpbolt::client::block_on;
use mcpbolt::error::RequestError;
use mcpbolt::limits::Limits;
use mcpbolt::mcp::{Era, Revision};
use mcpbolt::model::Sampling;
use mcpbolt::server::{
    Arguments, Content, Context, HandlerError, Resource, ResourceContents, Tool,
};
use serde_json::{Value, json};

use crate::asks::with_clients;
use crate::wire::Wire;
use crate::{in_each_revision, server};

const NEWEST: Revision = Revision::V2026_07_28;

async fn note(uri: String) -> Result<ResourceContents, HandlerError> {
    Ok(ResourceContents::text(uri, "text"))
}

/// R-NAM-01, R-NAM-02, R-RES-11, R-TOL-13: all of these are accepted.
#[test]
fn a_server_says_what_it_does_against_good_advice() {
    let embed = |_: Arguments, _| async {
        vec![Content::resource(ResourceContents::text("a:1", "inside"))]
    };
    let link = |_: Arguments, _| async { vec![Content::link("a:2", "not listed")] };
    let plain = server(1).tool(Tool::new("embed"), embed).build().unwrap();
    assert_eq!(plain.warnings(), [""; 0]);
    in_each_revision(&plain, |_, client| {
        assert!(client.capabilities().get("resources").is_none());
        client.call_tool("embed", &json!({})).wait().unwrap();
    });
    let warnings = plain.warnings();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].contains("\"embed\" embeds resources"),
        "{warnings:?}"
    );
    let odd = server(0)
        .offer_resources()
        .tool(Tool::new("embed"), embed)
        .tool(Tool::new("link"), link)
        .tool(Tool::new("say hello, world"), |_: Arguments, _| async {
            "hello"
        });
    let odd = odd.build().unwrap();
    in_each_revision(&odd, |_, client| {
        assert!(client.capabilities().get("resources").is_some());
        assert_eq!(block_on(client.list_resources()).unwrap(), []);
        for tool in ["embed", "link"] {
            assert!(!client.call_tool(tool, &json!({})).wait().unwrap().is_error);
        }
        let names = block_on(client.list_tools()).unwrap();
        let odd = &names.last().unwrap().name;
        assert_eq!(
            client.call_tool(odd, &json!({})).wait().unwrap().text(),
            "hello"
        );
    });
    assert_eq!(odd.warnings().len(), 1, "{:?}", odd.warnings());
    assert!(odd.warnings()[0].contains("\"say hello, world\""));
    let fetched = server(0)
        .resource(Resource::new("https://example.com/a", "a"), |uri, _| {
            note(uri)
        })
        .resource(Resource::new("a:1", "b"), |uri, _| note(uri))
        .resource_template(Resource::new("HTTPS://{x}", "c"), |uri, _, _| note(uri));
    let warnings = fetched.build().unwrap().warnings();
    assert_eq!(warnings.len(), 2);
    assert!(
        warnings
            .iter()
            .all(|it| it.contains("clients can fetch themselves"))
    );
}

/// R-RPC-14.
#[test]
fn errors_are_one_sentence() {
    let essay = format!("first\r\n  second\n\n{}", "\u{e4}".repeat(5000));
    let says = |text: String| {
        move |_: String, _: Context| {
            let failed: Result<ResourceContents, _> = Err(HandlerError::new(text.clone()));
            std::future::ready(failed)
        }
    };
    let server = server(0)
        .resource(Resource::new("a:1", "essay"), says(essay))
        .resource(Resource::new("a:2", "nothing"), says("\n".into()))
        .build()
        .unwrap();
    in_each_revision(&server, |_, client| {
        let message = |uri: &str| match block_on(client.read_resource(uri)).unwrap_err() {
            RequestError::Peer(error) => error.message,
            other => panic!("{other}"),
        };
        let long = message("a:1");
        assert!(long.starts_with("first second \u{e4}") && long.ends_with("\u{e4}\u{2026}"));
        assert_eq!(long.chars().count(), 1000);
        assert_eq!(&*message("a:2"), "unknown error");
    });
}

/// R-ERR-08.
#[test]
fn a_missing_resource_is_known_in_the_words_of_every_revision() {
    let server = server(0).resource(Resource::new("a:1", "one"), |uri, _| note(uri));
    let server = server.build().unwrap();
    in_each_revision(&server, |revision, client| {
        let error = block_on(client.read_resource("a:2")).unwrap_err();
        assert!(error.is_resource_not_found());
        let expected = if revision == NEWEST { -32602 } else { -32002 };
        assert_eq!(error.code(), Some(expected));
        let other = block_on(client.list_prompts()).unwrap_err();
        assert!(!other.is_resource_not_found());
    });
}

/// R-MET-09.
#[test]
fn a_trace_is_handed_on_if_it_is_one() {
    let tell = |_: Arguments, context: Context| async move { format!("{:?}", context.trace()) };
    let server = server(0).tool(Tool::new("tell"), tell).build().unwrap();
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    in_each_revision(&server, |_, client| {
        let tell = |meta: Value| {
            let told = client.call_tool("tell", &json!({})).meta(&meta).wait();
            told.map(|told| told.text())
        };
        let told = tell(json!({"traceparent": parent, "tracestate": "a=b", "baggage": "k=v"}));
        let told = told.unwrap();
        assert!(told.contains(parent) && told.contains("a=b") && told.contains("k=v"));
        assert_eq!(tell(json!({})).unwrap(), "None");
        for (key, value) in [
            ("traceparent", "00-1-2-3"),
            ("tracestate", "A=b"),
            ("baggage", "a b"),
        ] {
            let refused = tell(json!({ key: value }));
            assert!(matches!(refused, Err(RequestError::Misuse(_))), "{key}");
        }
    });
    // A client of another make, which is not so careful.
    let mut wire = Wire::open(&server, NEWEST, json!({}));
    for (meta, told) in [
        (json!({"traceparent": "junk", "tracestate": "a=b"}), "None"),
        (
            json!({"traceparent": parent, "baggage": "a b"}),
            "baggage: None",
        ),
    ] {
        let params = json!({"name": "tell", "_meta": meta});
        let answer = wire.ask(NEWEST, "tools/call", params);
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(told), "{text}");
    }
}

/// R-TOL-09: a call has an end, and what it gives is looked at before it is used.
#[test]
fn a_call_ends_in_time() {
    let sleep = |_: Arguments, context: Context| async move {
        context.sleep(Duration::from_secs(60)).await;
    };
    let fail = |_: Arguments, _| async { Err::<(), _>(HandlerError::new("no paper")) };
    let server = server(0)
        .tool(Tool::new("sleep"), sleep)
        .tool(Tool::new("fail"), fail)
        .limits(Limits {
            request_timeout: Duration::from_secs(3600),
            ..Limits::STDIO
        });
    let server = server.build().unwrap();
    let limits = Limits {
        request_timeout: Duration::from_millis(50),
        ..Limits::STDIO
    };
    let hurried = |builder: mcpbolt::client::ClientBuilder| builder.limits(limits.clone());
    with_clients(&server, Revision::ALL, hurried, |_, client| {
        let timed_out = client.call_tool("sleep", &json!({})).wait();
        assert_eq!(
            timed_out,
            Err(RequestError::TimedOut),
            "without a word of the caller's"
        );
        let patient = client
            .call_tool("fail", &json!({}))
            .timeout(Duration::from_secs(30));
        let failed = patient.wait().unwrap();
        assert_eq!(
            (failed.is_error, &*failed.text()),
            (true, "no paper"),
            "for the model to read"
        );
    });
}

/// R-ERR-22, R-SMP-05, R-SMP-06, R-SMP-11, R-SMP-12: each handler gets what was asked this time,
/// as it was asked, and may say no.
#[test]
fn a_model_is_asked_what_the_server_asks_and_nothing_more() {
    let ask = |arguments: Arguments, context: Context| async move {
        let arguments: Value = serde_json::from_str(&arguments.0)?;
        let text = arguments["text"].as_str().unwrap_or_default();
        let mut sampling = Sampling::user(text, arguments["most"].as_u64().unwrap());
        sampling.model_preferences = Some(json!({"hints": [{"name": "big"}, {"name": "small"}]}));
        let said = context.sample(sampling).await;
        Ok::<_, HandlerError>(match said {
            Ok(said) => said.to_text(),
            Err(error) => format!("{:?}", error.code()),
        })
    };
    let server = server(0).tool(Tool::new("ask"), ask).build().unwrap();
    let model = |builder: mcpbolt::client::ClientBuilder| {
        builder.on_sampling(|sampling, _| async move {
            let model = sampling.choose_model(&["small-1", "tiny-1"]).unwrap();
            let texts = sampling
                .messages
                .iter()
                .flat_map(|message| &message.content);
            let said = format!(
                "{} {:?} {texts:?}",
                sampling.max_tokens,
                sampling.tool_choice,
                texts = texts.collect::<Vec<_>>()
            );
            match sampling.max_tokens {
                13 => Err(HandlerError::rejected("the user does not want it")),
                _ => Ok(mcpbolt::model::Sampled::text(model, said)),
            }
        })
    };
    with_clients(&server, Revision::ALL, model, |revision, client| {
        let ask = |text: &str, most: u64| {
            let arguments = json!({"text": text, "most": most});
            client
                .call_tool("ask", &arguments)
                .wait()
                .map(|result| result.text())
        };
        let first = ask("first", 7).unwrap();
        assert!(
            first.starts_with("7 None") && first.contains("first"),
            "{first}"
        );
        let second = ask("second", 8).unwrap();
        assert!(
            second.starts_with("8 None") && second.contains("second"),
            "{second}"
        );
        assert!(!second.contains("first"), "nothing is kept for the next");
        match revision.era() {
            Era::Handshake => assert_eq!(ask("x", 13).unwrap(), "Some(-1)"),
            // There the client gives its call up.
            Era::Stateless => {
                let given_up = ask("x", 13).unwrap_err();
                assert!(
                    matches!(given_up, RequestError::Cancelled(Some(_))),
                    "{given_up}"
                );
            }
        }
    });
}
