//! The questions of servers to clients while they serve a call.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::error::RequestError;
use mcpbolt::mcp::{Era, Revision, Revisions};
use mcpbolt::model::{Content, Elicitation, Elicited, Root, Sampled, Sampling};
use mcpbolt::server::{Arguments, Context, HandlerError, Server, Tool, schemars, serde};
use serde_json::{Value, json};

use crate::{schema, server};

/// A client made by `build` in each revision in turn, as `in_each_revision`.
pub fn with_clients(
    server: &Server,
    revisions: impl IntoIterator<Item = Revision>,
    build: impl Fn(ClientBuilder) -> ClientBuilder,
    check: impl Fn(Revision, &Client),
) {
    for revision in revisions {
        let mut builder = build(Client::builder("test", "1.0.0"));
        builder = builder.revisions(Revisions::only(revision));
        let (trace, watched) = schema::watch(revision);
        builder = builder.trace(trace);
        let client = block_on(builder.connect(server)).unwrap();
        assert_eq!(client.revision(), Some(revision));
        check(revision, &client);
        watched.assert_clean();
    }
}

pub fn handshakes() -> impl Iterator<Item = Revision> {
    let all = Revision::ALL.into_iter();
    all.filter(|revision| revision.era() == Era::Handshake)
}

pub fn call(client: &Client, tool: &str, arguments: &Value) -> Result<String, String> {
    let result = client.call_tool(tool, arguments).wait();
    let result = result.map_err(|error| error.to_string())?;
    match result.is_error {
        true => Err(result.text()),
        false => Ok(result.text()),
    }
}

fn form() -> Elicitation {
    let fields = json!({"name": {"type": "string", "minLength": 2}, "age": {"type": "integer"}});
    let schema = json!({"type": "object", "properties": fields, "required": ["name"]});
    Elicitation::form("Who are you?", schema)
}

/// A server whose tools ask, one kind each, and give back what they got.
fn asking() -> Server {
    let tool = Tool::new;
    server(0)
        .tool(
            tool("sample"),
            |_: Arguments, context: Context| async move {
                let mut sampling = Sampling::user("Why?", 10).system_prompt("Be \"brief\".");
                sampling.temperature = Some(0.5);
                sampling.stop_sequences = vec!["\n".into()];
                let said = context.sample(sampling).await?;
                Ok::<_, HandlerError>(format!("{} {:?}", said.to_text(), said.stop_reason))
            },
        )
        .tool(tool("form"), |_: Arguments, context: Context| async move {
            Ok::<_, HandlerError>(format!("{:?}", context.elicit(form()).await?))
        })
        .tool(tool("page"), |_: Arguments, context: Context| async move {
            let page = Elicitation::url("Sign in", "https://example.com/in", "errand-1");
            Ok::<_, HandlerError>(format!("{:?}", context.elicit(page).await?))
        })
        .tool(tool("roots"), |_: Arguments, context: Context| async move {
            let roots = context.roots().await?;
            let uris: Vec<_> = roots.into_iter().map(|root| root.uri).collect();
            Ok::<_, HandlerError>(uris.join(" "))
        })
        .build()
        .unwrap()
}

/// R-SMP-01, R-ELI-01, R-ELI-03, R-ELI-07, R-ROO-01, R-CAP-02, R-CAP-04.
#[test]
fn a_handler_asks_the_model_the_user_and_for_the_roots() {
    let build = |builder: ClientBuilder| {
        builder
            .on_sampling(|sampling, _| async move {
                assert_eq!(sampling.system_prompt.as_deref(), Some("Be \"brief\"."));
                assert_eq!(sampling.messages[0].content, [Content::text("Why?")]);
                Ok(Sampled::text("model-1", "Because."))
            })
            .on_form(|elicitation, _| async move {
                assert!(matches!(elicitation, Elicitation::Form { .. }));
                let content = json!({"name": "Ada", "age": 36});
                Ok(Elicited::Accepted(content.as_object().unwrap().clone()))
            })
            .on_page(|elicitation, _| async move {
                let Elicitation::Url { url, .. } = elicitation else {
                    return Err(HandlerError::invalid("no page"));
                };
                assert_eq!(url, "https://example.com/in");
                Ok(Elicited::Declined)
            })
            .roots([Root::new("file:///a"), Root::new("file:///b").name("B")])
    };
    with_clients(&asking(), Revision::ALL, build, |revision, client| {
        let ask = |tool| call(client, tool, &json!({}));
        assert_eq!(ask("sample"), Ok("Because. Some(\"endTurn\")".into()));
        assert_eq!(ask("roots"), Ok("file:///a file:///b".into()));
        client.set_roots([Root::new("file:///c")]).unwrap();
        assert_eq!(ask("roots"), Ok("file:///c".into()));
        assert!(client.set_roots([Root::new("file:///c/../d")]).is_err());
        let rules = revision.rules();
        match rules.elicitation {
            true => {
                let filled = ask("form").unwrap();
                assert!(filled.starts_with("Accepted") && filled.contains("Ada"));
            }
            false => assert!(ask("form").unwrap_err().contains("elicitation")),
        }
        match rules.elicitation_modes {
            true => assert_eq!(ask("page"), Ok("Declined".into())),
            false => assert!(ask("page").unwrap_err().contains("elicitation")),
        }
    });
}

/// R-CAP-03, R-ELI-02, R-SMP-02: what the client did not declare is never sent. The trace would
/// see it, and the client's answer too.
///
/// R-MRT-03, R-ROO-03.
#[test]
fn what_a_client_did_not_declare_fails_in_the_handler() {
    with_clients(
        &asking(),
        Revision::ALL,
        |builder| builder,
        |_, client| {
            for (tool, name) in [
                ("sample", "sampling"),
                ("form", "elicitation"),
                ("page", "elicitation"),
                ("roots", "roots"),
            ] {
                let error = call(client, tool, &json!({})).unwrap_err();
                assert!(
                    error.contains("nothing was sent") && error.contains(name),
                    "{error}"
                );
            }
        },
    );
}

/// R-ELI-06, on both sides.
#[test]
fn what_does_not_fit_the_form_reaches_no_handler() {
    let build = |builder: ClientBuilder| {
        builder.on_form(|_, _| async {
            Ok(Elicited::Accepted(
                json!({"name": "A"}).as_object().unwrap().clone(),
            ))
        })
    };
    let revisions = handshakes().filter(|revision| revision.rules().elicitation);
    with_clients(&asking(), revisions, build, |_, client| {
        let error = call(client, "form", &json!({})).unwrap_err();
        assert!(error.contains("/name"), "{error}");
    });
}

/// R-ELI-11.
#[test]
fn a_form_is_made_from_a_type_and_gives_one_back() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(crate = "mcpbolt::server::serde")]
    #[schemars(crate = "mcpbolt::server::schemars")]
    struct Person {
        /// As in the passport.
        name: String,
        age: Option<u8>,
    }
    let server = server(0).tool(
        Tool::new("who"),
        |_: Arguments, context: Context| async move {
            let filled = context.fill_in::<Person>("Who are you?").await?;
            Ok::<_, HandlerError>(match filled {
                Some(person) => format!("{} {:?}", person.name, person.age),
                None => "nobody".to_owned(),
            })
        },
    );
    let server = server.build().unwrap();
    let turn = Arc::new(AtomicUsize::new(0));
    let build = |builder: ClientBuilder| {
        let turn = turn.clone();
        builder.on_form(move |_, _| {
            let turn = turn.fetch_add(1, Ordering::Relaxed);
            async move {
                Ok(match turn % 2 {
                    0 => Elicited::Cancelled,
                    _ => Elicited::Accepted(json!({"name": "Ada"}).as_object().unwrap().clone()),
                })
            }
        })
    };
    let revisions = Revision::ALL.into_iter();
    let revisions = revisions.filter(|revision| revision.rules().elicitation);
    with_clients(&server, revisions, build, |_, client| {
        assert_eq!(call(client, "who", &json!({})), Ok("nobody".into()));
        assert_eq!(call(client, "who", &json!({})), Ok("Ada None".into()));
    });
}

/// R-ELI-04: choices, with and without titles, one and several, and one that may be missing.
#[test]
fn choices_of_a_form_are_those_of_a_type() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(crate = "mcpbolt::server::serde")]
    #[schemars(crate = "mcpbolt::server::schemars")]
    enum Size {
        #[schemars(title = "For one")]
        Small,
        /// For all
        Large,
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(crate = "mcpbolt::server::serde", rename_all = "lowercase")]
    #[schemars(crate = "mcpbolt::server::schemars")]
    enum Topping {
        Basil,
        Olives,
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(crate = "mcpbolt::server::serde")]
    #[schemars(crate = "mcpbolt::server::schemars")]
    #[allow(dead_code, reason = "only the sizes are looked at")]
    struct Pizza {
        size: Size,
        sizes: Vec<Size>,
        topping: Topping,
        toppings: Vec<Topping>,
        other: Option<Topping>,
        second: Option<Size>,
        /// In euros.
        most: Option<u8>,
    }
    let server = server(0).tool(
        Tool::new("order"),
        |_: Arguments, context: Context| async move {
            let pizza = context.fill_in::<Pizza>("Which?").await?;
            let Some(pizza) = pizza else {
                return Err(HandlerError::new("nothing"));
            };
            let sizes = pizza.sizes.iter().chain([&pizza.size]);
            let large = sizes.filter(|size| matches!(size, Size::Large));
            Ok(large.count().to_string())
        },
    );
    let server = server.build().unwrap();
    let build = |builder: ClientBuilder| {
        builder.on_form(|form, _| async move {
            let Elicitation::Form { schema, .. } = form else {
                return Ok(Elicited::Declined);
            };
            let sizes = json!([
                {"const": "Small", "title": "For one"},
                {"const": "Large", "title": "For all"},
            ]);
            let topping = json!({"type": "string", "enum": ["basil", "olives"]});
            let fields = json!({
                "size": {"type": "string", "oneOf": sizes},
                "sizes": {"type": "array", "items": {"anyOf": sizes}},
                "topping": topping,
                "toppings": {"type": "array", "items": topping},
                "other": topping,
                "second": {"type": "string", "oneOf": sizes},
                "most": {"type": "integer", "minimum": 0, "maximum": 255, "description": "In euros."},
            });
            assert_eq!(schema["properties"], fields);
            let required = json!(["size", "sizes", "topping", "toppings"]);
            assert_eq!(schema["required"], required);
            let filled = json!({
                "size": "Large", "sizes": ["Small", "Large"], "topping": "basil", "toppings": [],
            });
            Ok(Elicited::Accepted(filled.as_object().unwrap().clone()))
        })
    };
    let revisions = [Revision::V2025_11_25, Revision::V2026_07_28];
    with_clients(&server, revisions, build, |_, client| {
        assert_eq!(call(client, "order", &json!({})), Ok("2".into()));
    });
}

/// A server whose tool samples, and whose client's model calls the tool: `depth` times over.
fn nesting() -> (Server, impl Fn(ClientBuilder) -> ClientBuilder) {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(crate = "mcpbolt::server::serde")]
    #[schemars(crate = "mcpbolt::server::schemars")]
    struct Nest {
        depth: u32,
    }
    let server = server(0).tool(
        Tool::new("nest"),
        |nest: Nest, context: Context| async move {
            if nest.depth == 0 {
                return Ok::<_, HandlerError>("bottom".to_owned());
            }
            let deeper = Sampling::user((nest.depth - 1).to_string(), 10);
            let said = context.sample(deeper).await?;
            Ok(format!("({})", said.to_text()))
        },
    );
    let build = |builder: ClientBuilder| {
        builder.on_sampling(|sampling, context| async move {
            let Some(Content::Text { text, .. }) = sampling.messages[0].content.first() else {
                return Err(HandlerError::invalid("no text"));
            };
            let depth: u32 = text.parse()?;
            let arguments = json!({ "depth": depth });
            let result = context.client().call_tool("nest", &arguments).await?;
            Ok(Sampled::text("model", result.text()))
        })
    };
    (server.build().unwrap(), build)
}

#[test]
fn requests_of_both_sides_nest() {
    let (server, build) = nesting();
    with_clients(&server, Revision::ALL, build, |_, client| {
        for depth in [1, 3, 20] {
            let expected = format!("{}bottom{}", "(".repeat(depth), ")".repeat(depth));
            assert_eq!(
                call(client, "nest", &json!({ "depth": depth })),
                Ok(expected)
            );
        }
    });
}

#[test]
fn a_thousand_rounds_of_sampling_at_once_complete() {
    let (server, build) = nesting();
    with_clients(&server, [Revision::V2025_11_25], build, |_, client| {
        let arguments = json!({ "depth": 3 });
        let send = |_| client.call_tool("nest", &arguments).send().unwrap();
        let calls: Vec<_> = (0..1000).map(send).collect();
        for call in calls {
            assert_eq!(block_on(call).unwrap().text(), "(((bottom)))");
        }
    });
}

/// R-CAN-02: who gives the call up gives up what it asks as well.
#[test]
fn cancelling_a_call_cancels_what_its_handler_asks() {
    let seen = Arc::new(Mutex::new(None));
    let build = |builder: ClientBuilder| {
        let seen = seen.clone();
        builder.on_sampling(move |_, context| {
            *seen.lock().unwrap() = Some(context.clone());
            async move { std::future::pending().await }
        })
    };
    with_clients(&asking(), handshakes(), build, |revision, client| {
        let eventually = |what: &str, is: &dyn Fn() -> bool| {
            let begun = std::time::Instant::now();
            while !is() {
                assert!(
                    begun.elapsed() < Duration::from_secs(30),
                    "{revision}: {what}"
                );
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let calling = client.call_tool("sample", &json!({})).send().unwrap();
        eventually("it is asked", &|| seen.lock().unwrap().is_some());
        let context = seen.lock().unwrap().take().unwrap();
        assert!(!context.is_cancelled());
        calling.cancel(Some("enough"));
        eventually("it is told", &|| context.is_cancelled());
    });
}

#[test]
fn a_clients_handler_that_fails_or_panics_is_an_error_of_the_call() {
    let build = |builder: ClientBuilder| {
        builder
            .on_sampling(|_, _| async { Err(HandlerError::new("the user said no")) })
            .on_form(|_, _| async { panic!("a handler") })
    };
    let revisions = [Revision::V2025_06_18, Revision::V2025_11_25];
    with_clients(&asking(), revisions, build, |_, client| {
        let error = call(client, "sample", &json!({})).unwrap_err();
        assert!(error.contains("the user said no"), "{error}");
        let error = call(client, "form", &json!({})).unwrap_err();
        assert!(error.contains("failed unexpectedly"), "{error}");
    });
}

#[test]
fn an_error_of_a_clients_handler_keeps_its_data() {
    let tool = |_: Arguments, context: Context| async move {
        let why = json!({"role": "user", "content": {"type": "text", "text": "Why?"}});
        let params = json!({"maxTokens": 1, "messages": [why]}).to_string();
        let options = mcpbolt::connection::RequestOptions::default();
        let connection = context.connection();
        let asked = connection.request("sampling/createMessage", Some(&params), options)?;
        Ok::<_, HandlerError>(match asked.await {
            Err(RequestError::Peer(error)) => String::from(error.data.unwrap_or_default()),
            other => format!("{other:?}"),
        })
    };
    let server = server(0).tool(Tool::new("ask"), tool).build().unwrap();
    let build = |builder: ClientBuilder| {
        builder.on_sampling(|_, _| async {
            Err(HandlerError::rejected("not now").with_data(&json!({"again": 60})))
        })
    };
    with_clients(&server, handshakes(), build, |_, client| {
        assert_eq!(
            call(client, "ask", &json!({})),
            Ok(r#"{"again":60}"#.into())
        );
    });
}

/// R-ROO-01.
#[test]
fn a_root_that_leads_out_of_itself_is_refused() {
    for uri in ["https://example.com", "file:///a/../b", "/a"] {
        let builder = Client::builder("test", "1").roots([Root::new(uri)]);
        assert!(
            matches!(builder.prepare(), Err(RequestError::Misuse(_))),
            "{uri}"
        );
    }
}

/// R-ERR-23, R-ERR-24: a client refuses what a server should not have asked.
#[test]
fn what_a_client_is_asked_wrongly_it_refuses() {
    let asks = |method: &'static str, params: Value| {
        move |_: Arguments, context: Context| {
            let params = params.to_string();
            async move {
                let options = mcpbolt::connection::RequestOptions::default();
                let asked = context
                    .connection()
                    .request(method, Some(&params), options)?;
                let answer = asked.await;
                Ok::<_, HandlerError>(format!("{:?}", answer.map(drop).unwrap_err().code()))
            }
        }
    };
    let form = json!({"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    let result = json!({"type": "tool_result", "toolUseId": "1", "content": []});
    let sample = json!({"maxTokens": 1, "messages": [{"role": "user", "content": [result]}]});
    let server = server(0)
        .tool(Tool::new("form"), asks("elicitation/create", form))
        .tool(Tool::new("sample"), asks("sampling/createMessage", sample))
        .tool(Tool::new("roots"), asks("roots/list", json!({})))
        .build()
        .unwrap();
    let build = |builder: ClientBuilder| {
        builder
            .on_page(|_, _| async { Ok(Elicited::Declined) })
            .on_sampling_with_tools(|_, _| async { Ok(Sampled::text("m", "never")) })
    };
    with_clients(&server, [Revision::V2025_11_25], build, |_, client| {
        assert_eq!(call(client, "form", &json!({})), Ok("Some(-32602)".into()));
        assert_eq!(
            call(client, "sample", &json!({})),
            Ok("Some(-32602)".into())
        );
        assert_eq!(call(client, "roots", &json!({})), Ok("Some(-32601)".into()));
    });
}
