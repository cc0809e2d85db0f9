//! Multi round-trip requests of 2026-07-28: as seen on the wire, and by both sides' programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcpbolt::client::{Client, ClientBuilder, block_on};
use mcpbolt::connection::RequestOptions;
use mcpbolt::error::{PeerError, RequestError};
use mcpbolt::mcp::Revision;
use mcpbolt::model::{Elicitation, Elicited, Root, Sampled, Sampling};
use mcpbolt::server::{
    Arguments, Context, HandlerError, Prompt, PromptResult, Resource, ResourceContents, Server,
    Tool,
};
use serde_json::{Value, json};

use crate::asks::{call, with_clients};
use crate::server;

const NEWEST: [Revision; 1] = [Revision::V2026_07_28];

fn name() -> Elicitation {
    let fields = json!({"name": {"type": "string", "minLength": 2}});
    let schema = json!({"type": "object", "properties": fields, "required": ["name"]});
    Elicitation::form("Who?", schema)
}

/// Asks twice, one after the other, and counts how often it began.
fn twice(begun: &Arc<AtomicUsize>) -> Server {
    let begun = begun.clone();
    let tool = move |_: Arguments, context: Context| {
        begun.fetch_add(1, Ordering::Relaxed);
        async move {
            let Elicited::Accepted(content) = context.elicit(name()).await? else {
                return Ok::<_, HandlerError>("nobody".to_owned());
            };
            let roots = context.roots().await?;
            Ok(format!("{} {}", content["name"], roots.len()))
        }
    };
    server(0).tool(Tool::new("twice"), tool).build().unwrap()
}

/// A client that declares what the server asks for, and asks by hand.
fn by_hand(builder: ClientBuilder) -> ClientBuilder {
    builder
        .on_form(|_, _| async { Err(HandlerError::new("never")) })
        .roots([])
}

fn ask(client: &Client, params: &Value) -> Result<Value, PeerError> {
    let params = params.to_string();
    let options = RequestOptions::default();
    let response = client
        .handle()
        .request("tools/call", Some(&params), options);
    match block_on(response.unwrap()) {
        Ok(answer) => Ok(serde_json::from_str(answer.as_ref().result().unwrap()).unwrap()),
        Err(RequestError::Peer(error)) => Err(error),
        Err(other) => panic!("{other}"),
    }
}

fn only_key(result: &Value) -> String {
    assert_eq!(result["resultType"], "input_required");
    assert!(result.get("ttlMs").is_none(), "a question is not cached");
    let asked = result["inputRequests"].as_object().unwrap();
    assert_eq!(asked.len(), 1);
    asked.keys().next().unwrap().clone()
}

/// R-MRT-02, R-MRT-04, R-MRT-10, R-MRT-11, R-CCH-02.
#[test]
fn a_handler_runs_anew_with_what_it_asked_before() {
    let begun = Arc::default();
    with_clients(&twice(&begun), NEWEST, by_hand, |_, client| {
        let plain = json!({"name": "twice", "arguments": {"a": 1, "b": 2}});
        let with = |more: Value| {
            let mut params = plain.clone();
            let more = more.as_object().unwrap().clone();
            params.as_object_mut().unwrap().extend(more);
            params
        };
        let first = ask(client, &plain).unwrap();
        let key = only_key(&first);
        assert_eq!(first["inputRequests"][&key]["method"], "elicitation/create");
        let state = &first["requestState"];
        // No answer: the same question, however often.
        let again = ask(client, &with(json!({"requestState": state}))).unwrap();
        assert_eq!(only_key(&again), key);
        let other =
            json!({"requestState": state, "inputResponses": {"else": {"action": "decline"}}});
        assert_eq!(
            only_key(&ask(client, &with(other)).unwrap()),
            key,
            "unknown keys are ignored"
        );
        let answer = json!({"action": "accept", "content": {"name": "Ada"}});
        let answers = json!({"requestState": state, "inputResponses": {&key: answer}});
        let second = ask(client, &with(answers)).unwrap();
        let roots = only_key(&second);
        assert_ne!(roots, key);
        assert_eq!(
            second["inputRequests"][&roots],
            json!({"method": "roots/list"})
        );
        // The state holds the first answer; the order of the arguments' members does not matter.
        let last = json!({
            "inputResponses": {&roots: {"roots": []}},
            "arguments": {"b": 2, "a": 1},
            "requestState": second["requestState"],
        });
        let done = ask(client, &with(last)).unwrap();
        assert_eq!(done["content"][0]["text"], "\"Ada\" 0");
        assert_eq!(begun.load(Ordering::Relaxed), 5);
    });
}

/// R-MRT-08, R-MRT-10, R-MRT-13.
#[test]
fn states_of_others_and_answers_of_another_shape_are_refused() {
    let begun: Arc<AtomicUsize> = Arc::default();
    let server = twice(&begun);
    // The messages of this test would not pass the schema.
    let connect = || block_on(by_hand(Client::builder("x", "1")).connect(&server)).unwrap();
    let client = &connect();
    let plain = json!({"name": "twice", "arguments": {}});
    let first = ask(client, &plain).unwrap();
    let key = only_key(&first);
    let state = first["requestState"].as_str().unwrap();
    let retry = |state: &Value, responses: Value| {
        let mut params = plain.clone();
        params["requestState"] = state.clone();
        params["inputResponses"] = responses;
        ask(client, &params)
    };
    let flipped = format!(
        "{}{}",
        if state.starts_with('A') { "B" } else { "A" },
        &state[1..]
    );
    let elsewhere = {
        let other = block_on(by_hand(Client::builder("x", "1")).connect(&twice(&begun)));
        ask(&other.unwrap(), &plain).unwrap()["requestState"].clone()
    };
    for state in [json!(flipped), json!(""), json!("x.y"), json!(7), elsewhere] {
        let error = retry(&state, json!({})).unwrap_err();
        assert_eq!(error.code, -32602, "{state}");
    }
    let mut others = plain.clone();
    others["arguments"] = json!({"else": 1});
    others["requestState"] = json!(state);
    assert_eq!(
        ask(client, &others).unwrap_err().code,
        -32602,
        "another request's"
    );
    let misfit = json!({"action": "accept", "content": {"name": "A"}});
    for wrong in [
        json!([]),
        json!({&key: 7}),
        json!({&key: {}}),
        json!({&key: {"action": "shrug"}}),
        json!({&key: misfit}),
    ] {
        let error = retry(&json!(state), wrong.clone()).unwrap_err();
        assert_eq!(error.code, -32602, "{wrong}");
    }
}

/// R-MRT-01, R-MRT-05, R-MRT-06, R-MRT-07: tools, resources and prompts may ask; several
/// questions at once are one round.
///
/// R-RPC-15, R-RPC-16, R-TOL-10, R-RES-12, R-PRM-08.
#[test]
fn clients_answer_by_themselves_and_call_again() {
    let said = |context: Context| async move {
        let said = context.sample(Sampling::user("?", 5)).await?;
        Ok::<_, HandlerError>(said.to_text())
    };
    let server = server(0)
        .tool(Tool::new("both"), |_: Arguments, context: Context| async move {
            let (said, roots) = futures::join!(
                context.sample(Sampling::user("?", 5)),
                context.roots()
            );
            Ok::<_, HandlerError>(format!("{} {}", said?.to_text(), roots?.len()))
        })
        .resource(Resource::new("a:1", "one"), move |uri, context| async move {
            Ok(ResourceContents::text(uri, said(context).await?))
        })
        .prompt(Prompt::new("greet"), move |_, context| async move {
            Ok(PromptResult::user(said(context).await?))
        });
    let server = server.build().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let build = |builder: ClientBuilder| {
        let asked = asked.clone();
        asked.store(0, Ordering::Relaxed);
        builder
            .on_sampling(move |_, _| {
                let count = asked.fetch_add(1, Ordering::Relaxed) + 1;
                async move { Ok(Sampled::text("model", format!("answer {count}"))) }
            })
            .roots([Root::new("file:///a")])
    };
    with_clients(&server, Revision::ALL, build, |_, client| {
        assert_eq!(call(client, "both", &json!({})), Ok("answer 1 1".into()));
        let read = block_on(client.read_resource("a:1")).unwrap();
        assert_eq!(read[0].as_text(), Some("answer 2"));
        let prompt = block_on(client.get_prompt("greet", &[])).unwrap();
        let prompt = serde_json::to_value(&prompt.messages).unwrap();
        assert_eq!(prompt[0]["content"]["text"], "answer 3");
        assert_eq!(asked.load(Ordering::Relaxed), 3, "nobody is asked twice");
    });
}

/// R-ELI-13: the state holds that the page was visited, so the second round does not open it again.
#[test]
fn a_page_that_was_visited_is_not_opened_again() {
    let tool = |_: Arguments, context: Context| async move {
        let page = Elicitation::url("Sign in", "https://example.com/in", "errand-1");
        let visited = context.elicit(page).await?;
        Ok::<_, HandlerError>(format!("{visited:?} {}", context.roots().await?.len()))
    };
    let server = server(0).tool(Tool::new("both"), tool).build().unwrap();
    let opened = Arc::new(AtomicUsize::new(0));
    let build = |builder: ClientBuilder| {
        let opened = opened.clone();
        let open = move |_, _| {
            opened.fetch_add(1, Ordering::Relaxed);
            async { Ok(Elicited::Declined) }
        };
        builder.on_page(open).roots([])
    };
    with_clients(&server, NEWEST, build, |_, client| {
        assert_eq!(call(client, "both", &json!({})), Ok("Declined 0".into()));
    });
    assert_eq!(opened.load(Ordering::Relaxed), 1);
}

/// R-MRT-12, R-MRT-15.
#[test]
fn a_call_is_given_up_when_nobody_answers_or_questions_do_not_end() {
    let server = server(0)
        .tool(
            Tool::new("once"),
            |_: Arguments, context: Context| async move {
                Ok::<_, HandlerError>(context.sample(Sampling::user("?", 5)).await?.to_text())
            },
        )
        .tool(
            Tool::new("endless"),
            |_: Arguments, context: Context| async move {
                loop {
                    context.roots().await?;
                }
                #[allow(unreachable_code, reason = "the type of the result")]
                Ok::<_, HandlerError>("never")
            },
        );
    let server = server.build().unwrap();
    let build = |builder: ClientBuilder| {
        builder
            .on_sampling(|_, _| async { Err(HandlerError::new("the user said no")) })
            .roots([])
    };
    with_clients(&server, NEWEST, build, |_, client| {
        let given_up = client.call_tool("once", &json!({})).wait().unwrap_err();
        assert_eq!(
            given_up,
            RequestError::Cancelled(Some("the user said no".into()))
        );
        let endless = client.call_tool("endless", &json!({})).wait().unwrap_err();
        assert!(matches!(endless, RequestError::BadAnswer(_)), "{endless}");
    });
}

/// R-MRT-08: servers with the same key stand in for one another.
///
/// R-STL-02, R-STL-03.
#[test]
fn servers_with_one_key_take_over_from_each_other() {
    let make = || {
        server(0)
            .state_key([7; 32])
            .tool(
                Tool::new("roots"),
                |_: Arguments, context: Context| async move {
                    Ok::<_, HandlerError>(context.roots().await?.len().to_string())
                },
            )
            .build()
            .unwrap()
    };
    let connect = || block_on(by_hand(Client::builder("x", "1")).connect(&make())).unwrap();
    let mut params = json!({"name": "roots"});
    let first = ask(&connect(), &params).unwrap();
    params["requestState"] = first["requestState"].clone();
    params["inputResponses"] = json!({only_key(&first): {"roots": []}});
    let done = ask(&connect(), &params).unwrap();
    assert_eq!(done["content"][0]["text"], "0");
}

/// R-MRT-12: a server that asks again and again is not answered for ever.
#[test]
fn a_call_has_no_more_rounds_than_may_be() {
    let begun = Arc::<AtomicUsize>::default();
    let counts = begun.clone();
    let tool = move |arguments: Arguments, context: Context| {
        counts.fetch_add(1, Ordering::Relaxed);
        async move {
            let arguments: Value = serde_json::from_str(&arguments.0).unwrap();
            for _ in 0..arguments["rounds"].as_u64().unwrap() {
                context.elicit(name()).await?;
            }
            Ok::<_, HandlerError>("done")
        }
    };
    let schema = json!({"type": "object", "properties": {"rounds": {"type": "integer"}}});
    let tool_of = Tool::new("ask").input_schema(schema);
    let server = server(0).tool(tool_of, tool).build().unwrap();
    let answers = |builder: ClientBuilder| {
        builder.on_form(|_, _| async {
            let content = json!({"name": "Ada"});
            Ok(Elicited::Accepted(content.as_object().unwrap().clone()))
        })
    };
    with_clients(&server, NEWEST, answers, |_, client| {
        assert_eq!(call(client, "ask", &json!({"rounds": 10})).unwrap(), "done");
        assert_eq!(begun.swap(0, Ordering::Relaxed), 11);
        let error = call(client, "ask", &json!({"rounds": 30})).unwrap_err();
        assert!(error.contains("again and again"), "{error}");
        assert_eq!(begun.load(Ordering::Relaxed), 11);
    });
}
