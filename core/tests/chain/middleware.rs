//! Middleware: what it sees, changes, answers and drops.

use mcpbolt::chain::{
    ChainAnswer, ChainNotification, ChainRequest, ChainResponse, Middleware, NextHop,
    RelayDirection, refusal,
};
use mcpbolt::connection::Framing;
use mcpbolt::mcp::Revision;
use serde_json::{Value, json};

use crate::rig::{Rig, request, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;

/// Refuses one tool, answers another, changes a third, and drops one kind of notification.
struct Meddler;

impl Middleware for Meddler {
    fn request<'a>(&'a self, mut request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        Box::pin(async move {
            match request.target().as_deref() {
                Some("refused") => Err(refusal(-32602, "not here")),
                Some("answered") => Ok(ChainResponse::new(r#"{"by":"middleware"}"#)),
                Some("changed") => {
                    request.set_params(r#"{"name":"other"}"#)?;
                    let answer = next.run(request).await?;
                    Ok(ChainResponse::new(format!(
                        r#"{{"was":{}}}"#,
                        answer.result()
                    )))
                }
                Some("panics") => panic!("middleware"),
                _ => next.run(request).await,
            }
        })
    }

    fn notification(&self, notification: ChainNotification) -> Option<ChainNotification> {
        (notification.method != "notifications/tools/list_changed").then_some(notification)
    }
}

/// R-CHN-08.
#[test]
fn middleware_answers_changes_refuses_and_drops() {
    let mut rig = Rig::with(OLD, 1, |front| front.with(Meddler));
    let near = rig.open(OLD, &json!({}));
    let call = |tool: &str| request(tool, "tools/call", &json!({"name": tool}));
    rig.say(near, &call("refused"));
    assert_eq!(
        rig.hear(near)["error"],
        json!({"code": -32602, "message": "not here"})
    );
    rig.say(near, &call("answered"));
    assert_eq!(rig.hear(near)["result"], json!({"by": "middleware"}));
    rig.say(near, &call("panics"));
    assert_eq!(rig.hear(near)["error"]["code"], -32603);
    rig.say(near, &call("changed"));
    let arrived = rig.far_hears(0);
    assert_eq!(arrived["params"]["name"], "other");
    rig.answer(0, &arrived, &json!({"n": 1}));
    assert_eq!(rig.hear(near)["result"], json!({"was": {"n": 1}}));
    for method in [
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
    ] {
        rig.far_says(0, &json!({"jsonrpc": "2.0", "method": method}).to_string());
    }
    assert_eq!(
        rig.hear(near)["method"],
        "notifications/prompts/list_changed"
    );
    rig.assert_quiet();
}

/// Says in front of each question that it has seen it.
struct Inquisitive;

impl Middleware for Inquisitive {
    fn request<'a>(&'a self, mut request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        Box::pin(async move {
            if request.direction() == RelayDirection::ToServer {
                return next.run(request).await;
            }
            let mut params: Value = serde_json::from_str(request.params()).unwrap();
            if params["message"] == "refused" {
                return Err(refusal(-1, "no"));
            }
            params["message"] = format!("seen: {}", params["message"]).into();
            request.set_params(&params.to_string())?;
            let answer = next.run(request).await?;
            Ok(ChainResponse::new(format!(
                r#"{{"action":"accept","content":{{"was":{}}}}}"#,
                answer.result()
            )))
        })
    }
}

/// R-CHN-08: middleware sees what a server asks, and what the client answers, in every combination of eras.
#[test]
fn middleware_sees_questions_within_and_between_the_eras() {
    let elicitation = json!({"elicitation": {}});
    let accepted = json!({"action": "accept"});
    let changed = json!({"action": "accept", "content": {"was": accepted}});
    let ask = |message: &str| json!({"message": message, "requestedSchema": {"type": "object"}});
    let asks = |message: &str| request("q", "elicitation/create", &ask(message));
    let call = json!({"name": "x"});
    for near_is_new in [false, true] {
        let mut rig = Rig::with(OLD, 1, |front| front.with(Inquisitive));
        let near = match near_is_new {
            false => rig.open(OLD, &elicitation),
            true => rig.connect(Framing::Line),
        };
        let line = match near_is_new {
            false => request(1, "tools/call", &call),
            true => stateless(1, "tools/call", call.clone(), &elicitation),
        };
        rig.say(near, &line);
        rig.far_hears(0);
        rig.far_says(0, &asks("refused"));
        assert_eq!(rig.far_hears(0)["error"]["code"], -1);
        rig.far_says(0, &asks("who"));
        let question = rig.hear(near);
        match near_is_new {
            false => {
                assert_eq!(question["params"]["message"], r#"seen: "who""#);
                let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": accepted});
                rig.say(near, &answer.to_string());
            }
            true => {
                let result = &question["result"];
                let asked = &result["inputRequests"]["q1"];
                assert_eq!(asked["params"]["message"], r#"seen: "who""#);
                let mut params = call.clone();
                params["requestState"] = result["requestState"].clone();
                params["inputResponses"] = json!({"q1": accepted});
                rig.say(near, &stateless(2, "tools/call", params, &elicitation));
            }
        }
        assert_eq!(rig.far_hears(0)["result"], changed, "{near_is_new}");
    }
    let mut rig = Rig::with(NEW, 1, |front| front.with(Inquisitive));
    let near = rig.open(OLD, &elicitation);
    rig.say(near, &request(1, "tools/call", &call));
    let arrived = rig.far_hears(0);
    let wanted = json!({"q": {"method": "elicitation/create", "params": ask("who")}});
    let result = json!({"resultType": "input_required", "inputRequests": wanted});
    rig.answer(0, &arrived, &result);
    let question = rig.hear(near);
    assert_eq!(question["params"]["message"], r#"seen: "who""#);
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": accepted});
    rig.say(near, &answer.to_string());
    assert_eq!(rig.far_hears(0)["params"]["inputResponses"]["q"], changed);
    rig.assert_quiet();
}
