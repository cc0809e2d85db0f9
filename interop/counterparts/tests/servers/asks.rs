//! Servers that ask the user or the model.

use rmcp::model::{CallToolRequestParams, CallToolResponse};
use serde_json::{Value, json};

use crate::peer::{OnHttp, Peer, REVISIONS, call, connect, output, spawned, text};

#[path = "../../examples/servers/mrtr.rs"]
#[allow(dead_code, reason = "the program's own main")]
mod mrtr;

fn user(answer: Value) -> Peer {
    Peer {
        user: answer,
        ..Peer::default()
    }
}

#[tokio::test]
async fn a_name_is_asked_for_once() {
    for revision in REVISIONS {
        let ada = user(json!({"action": "accept", "content": {"name": "Ada"}}));
        let asked = ada.asked.clone();
        let client = spawned("elicitation_stdio", revision, ada).await;
        let hello = json!({"greeting": "Hello"});
        for _ in 0..2 {
            let greeting = text(&client, "greet_user", hello.clone()).await;
            assert_eq!(greeting, "Hello Ada!");
        }
        let form = asked.lock().unwrap().drain(..).collect::<Vec<_>>();
        assert_eq!(form.len(), 1);
        assert_eq!(form[0]["message"], "Please provide your name");
        let field = &form[0]["requestedSchema"]["properties"]["name"];
        assert_eq!(
            *field,
            json!({"type": "string", "description": "User's name"})
        );
        let reset = text(&client, "reset_name", json!({})).await;
        assert_eq!(
            reset,
            "User name reset. Next greeting will ask for name again."
        );
        text(&client, "greet_user", hello.clone()).await;
        assert_eq!(asked.lock().unwrap().len(), 1);
        let page = text(&client, "secure_tool_call", json!({})).await;
        assert_eq!(page, "Elicitation via URL successful");
        let url = asked.lock().unwrap()[1]["url"].clone();
        assert_eq!(url, "https://example.com/complete_tool");
    }
}

#[tokio::test]
async fn a_user_may_decline_or_cancel() {
    for revision in REVISIONS {
        for (action, page, is_error) in [
            ("decline", "Elicitation via URL declined by user", true),
            ("cancel", "Elicitation via URL cancelled by user", false),
        ] {
            let peer = user(json!({"action": action}));
            let client = spawned("elicitation_stdio", revision, peer).await;
            let hello = json!({"greeting": "Hello"});
            let greeting = text(&client, "greet_user", hello).await;
            assert_eq!(greeting, "Hello Guest!");
            let result = call(&client, "secure_tool_call", json!({})).await;
            assert_eq!(result["content"][0]["text"], page);
            assert_eq!(result["isError"] == true, is_error);
        }
    }
}

#[tokio::test]
async fn choices_have_titles() {
    let server = OnHttp::start("elicitation_enum_inference", "http://127.0.0.1:0/mcp");
    for revision in REVISIONS {
        let peer = user(json!({"action": "accept", "content": {
            "single_select_untitled": "Third", "single_select_titled": "SecondValue",
            "multi_select_untitled": ["First"], "multi_select_titled": [],
        }}));
        let asked = peer.asked.clone();
        let client = server.client(revision, peer).await;
        let selected = text(&client, "get_enum_form", json!({})).await;
        assert_eq!(
            selected,
            "Current Selections:\nSingle Select Untitled: First\nSingle Select Titled: FirstValue\n\
             Multi Select Untitled: [Second]\nMulti Select Titled: [SecondValue]\n"
        );
        let updated = text(&client, "set_enum_form", json!({})).await;
        let selection = "Current Selections:\nSingle Select Untitled: Third\nSingle Select Titled: SecondValue\n\
             Multi Select Untitled: [First]\nMulti Select Titled: []\n";
        assert_eq!(updated, format!("Updated Selection:\n{selection}"));
        // The session keeps it; a request without a session has nothing to keep it in.
        let selected = text(&client, "get_enum_form", json!({})).await;
        assert_eq!(selected == selection, revision == REVISIONS[0]);
        let form = asked.lock().unwrap()[0]["requestedSchema"].clone();
        let titled = json!([
            {"const": "FirstValue", "title": "Title for the first value"},
            {"const": "SecondValue", "title": "Title for the second value"},
        ]);
        let untitled = json!({"type": "string", "enum": ["First", "Second", "Third"]});
        let fields = json!({
            "single_select_untitled": untitled,
            "single_select_titled": {
                "type": "string", "title": "Single Select Titled", "oneOf": titled,
                "description": "Description for single select enum", "default": "FirstValue",
            },
            "multi_select_untitled": {
                "type": "array", "items": untitled, "default": ["Second", "Third"],
            },
            "multi_select_titled": {
                "type": "array", "title": "Multi Select Titled", "description": "Multi Select Description",
                "items": {"anyOf": titled},
            },
        });
        assert_eq!(form["properties"], fields, "{form:#}");
        let client = server
            .client(revision, user(json!({"action": "decline"})))
            .await;
        let declined = text(&client, "set_enum_form", json!({})).await;
        assert_eq!(declined, "Elicitation cancelled by user.");
    }
}

#[tokio::test]
async fn the_model_is_asked() {
    for revision in REVISIONS {
        let said = json!({"type": "text", "text": "42"});
        let peer = Peer {
            model: json!({"role": "assistant", "model": "m", "content": said}),
            ..Peer::default()
        };
        let asked = peer.asked.clone();
        let client = spawned("sampling_stdio", revision, peer).await;
        let question = json!({"question": "What is it?"});
        let answer = text(&client, "ask_llm", question.clone()).await;
        assert_eq!(answer, "Question: What is it?\nAnswer: 42");
        let asked = asked.lock().unwrap()[0].clone();
        assert_eq!(asked["systemPrompt"], "You are a helpful assistant.");
        assert_eq!(asked["maxTokens"], 150);
        assert_eq!(asked["modelPreferences"]["hints"][0]["name"], "claude");
        // A model that fails.
        let client = spawned("sampling_stdio", revision, Peer::default()).await;
        let failed = call(&client, "ask_llm", question).await;
        assert!(failed["error"].is_object(), "{failed}");
    }
}

#[tokio::test]
async fn the_weather_takes_two_rounds() {
    for (answer, weather) in [
        (
            json!({"action": "accept", "content": {"city": "Paris"}}),
            "It is sunny in Paris.",
        ),
        (
            json!({"action": "decline"}),
            "I cannot look up the weather without a city.",
        ),
        (json!({"action": "cancel"}), "Weather lookup cancelled."),
    ] {
        let (ours, theirs) = tokio::io::duplex(8192);
        let server = mrtr::server().unwrap();
        tokio::spawn(async move { server.serve_on(ours).await.map(drop) });
        let client = connect(user(answer), theirs, REVISIONS[1]).await;
        assert_eq!(text(&client, "weather", json!({})).await, weather);
        let params = CallToolRequestParams::new("weather");
        let CallToolResponse::InputRequired(once) = client.call_tool_once(params).await.unwrap()
        else {
            panic!("the server asks nothing");
        };
        let question = &json!(once)["inputRequests"]["city"]["params"];
        assert_eq!(
            question["message"],
            "Which city do you want the weather for?"
        );
        // A state that is not the server's is refused.
        let params = json!({
            "name": "weather", "requestState": "forged",
            "inputResponses": {"city": {"action": "accept", "content": {"city": "Rome"}}},
        });
        let forged = crate::peer::ask(&client, "tools/call", params).await;
        assert_eq!(forged["error"]["code"], -32602, "{forged}");
    }
}

#[test]
fn the_weather_is_asked_within_one_process() {
    assert_eq!(
        output("mrtr"),
        "== auto mode (call_tool) ==\n  [client] server asked: Which city do you want the weather for?\n  \
         [client] final result: It is sunny in Paris.\n\n== manual mode (one request) ==\n  \
         [client] server requested 1 input(s); handling them yourself is up to you.\n"
    );
}
