//! A client of the stateless era before a server of the handshake era that asks it (R-CHN-12): each request may come over a
//! connection of its own.

use std::time::Duration;

use mcpbolt::connection::Framing;
use mcpbolt::mcp::Revision;
use serde_json::{Value, json};

use crate::rig::{Rig, request, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;

fn capabilities() -> Value {
    json!({"elicitation": {}})
}

fn call(id: &str, more: &Value) -> String {
    let mut params = json!({"name": "x", "arguments": {"by": id}});
    let more = more.as_object().unwrap().clone();
    params.as_object_mut().unwrap().extend(more);
    stateless("same", "tools/call", params, &capabilities())
}

/// The index of the connection on which the server heard a call with these arguments, and the call.
fn find(rig: &mut Rig, by: &str) -> (usize, Value) {
    rig.step();
    let count = rig.fars.lock().unwrap().len();
    for far in 0..count {
        let line = rig.fars.lock().unwrap()[far].lines.front().cloned();
        let is_it = line.is_some_and(|line| line.contains(&format!("{{\"by\":\"{by}\"}}")));
        if is_it {
            return (far, rig.far_hears(far));
        }
    }
    panic!("the server heard no call by {by}");
}

fn question(rig: &mut Rig, far: usize, about: &str) {
    let params = json!({"message": about, "requestedSchema": {"type": "object"}});
    rig.far_says(far, &request("question", "elicitation/create", &params));
}

/// The state and the only key of an answer that asks.
fn asked(answer: &Value, about: &str) -> (Value, String) {
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let requests = result["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(
        (requests.len(), &request["params"]["message"]),
        (1, &json!(about))
    );
    (result["requestState"].clone(), key.clone())
}

/// R-CHN-12: clients with equal ids, which nobody can tell apart, are asked what their own calls caused, in any order.
#[test]
fn questions_reach_the_client_of_the_call_and_no_other() {
    let mut rig = Rig::new(OLD, 1);
    let names = ["a", "b", "c"];
    let mut open = Vec::new();
    for name in names {
        let near = rig.post(&call(name, &json!({})));
        let (far, arrived) = find(&mut rig, name);
        assert!(
            arrived["params"]["_meta"]
                .get("io.modelcontextprotocol/protocolVersion")
                .is_none()
        );
        open.push((name, near, far, arrived));
    }
    // Each call that may be asked has a connection of its own, which told the server what the client declares.
    for (_, _, far, _) in &open {
        assert_eq!(rig.fars.lock().unwrap()[*far].capabilities, capabilities());
    }
    for (name, _, far, _) in open.iter().rev() {
        question(&mut rig, *far, name);
    }
    let mut states = Vec::new();
    for (name, near, far, arrived) in &open {
        let answer = rig.hear(*near);
        states.push((name, far, arrived, asked(&answer, name)));
    }
    for (name, far, arrived, (state, key)) in states.iter().rev() {
        let answers = json!({"requestState": state, "inputResponses": {key: {"action": "accept", "content": {"name": name}}}});
        let near = rig.post(&call(name, &answers));
        let said = rig.far_hears(**far);
        assert_eq!(said["id"], "question");
        assert_eq!(
            said["result"],
            json!({"action": "accept", "content": {"name": name}})
        );
        rig.answer(**far, arrived, &json!({"content": [], "for": name}));
        let done = rig.hear(near);
        assert_eq!(
            (&done["id"], &done["result"]["for"]),
            (&json!("same"), &json!(name))
        );
        assert_eq!(done["result"]["resultType"], "complete");
        // R-MRT-13: the state was good for this once.
        let near = rig.post(&call(name, &answers));
        assert_eq!(rig.hear(near)["error"]["code"], -32602);
    }
    rig.assert_quiet();
    // The connections are used again, the last one first.
    let before = rig.fars.lock().unwrap().len();
    rig.post(&call("d", &json!({})));
    find(&mut rig, "d");
    assert_eq!(rig.fars.lock().unwrap().len(), before);
}

/// A second question, an answer that misses, one of the wrong shape, and a state for another tool.
#[test]
fn a_call_may_be_asked_more_than_once() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.post(&call("a", &json!({})));
    let (far, arrived) = find(&mut rig, "a");
    question(&mut rig, far, "first");
    let (state, key) = asked(&rig.hear(near), "first");
    for (bad, params) in [
        (
            json!({"inputResponses": {&key: 1}, "requestState": state}),
            "x",
        ),
        (
            json!({"inputResponses": {}, "requestState": state}),
            "other",
        ),
        (json!({"requestState": "no"}), "x"),
        (json!({"requestState": 1}), "x"),
    ] {
        let mut more = bad.clone();
        more["name"] = params.into();
        let near = rig.post(&call("a", &more));
        assert_eq!(rig.hear(near)["error"]["code"], -32602, "{bad}");
    }
    // R-MRT-10: without the answer the question comes again, with another state.
    let near = rig.post(&call(
        "a",
        &json!({"requestState": state, "inputResponses": {"else": {}}}),
    ));
    let (state, key) = asked(&rig.hear(near), "first");
    let near = rig.post(&call(
        "a",
        &json!({"requestState": state, "inputResponses": {key: {"action": "decline"}}}),
    ));
    assert_eq!(rig.far_hears(far)["result"], json!({"action": "decline"}));
    question(&mut rig, far, "second");
    let (state, key) = asked(&rig.hear(near), "second");
    // The server withdraws it, and answers.
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "question"}});
    rig.far_says(far, &cancel.to_string());
    rig.answer(far, &arrived, &json!({"content": []}));
    let near = rig.post(&call(
        "a",
        &json!({"requestState": state, "inputResponses": {key: {"action": "cancel"}}}),
    ));
    assert_eq!(rig.hear(near)["result"]["resultType"], "complete");
    rig.assert_quiet();
}

/// R-CHN-14: a server that says nothing is given up, though its client could be asked; one whose question waits is not, nor
/// one that reports progress.
#[test]
fn a_server_that_asks_nothing_has_no_longer_than_others() {
    let mut rig = Rig::new(OLD, 1);
    let minute = Duration::from_secs(61);
    let near = rig.post(&call("a", &json!({"_meta": {"progressToken": 1}})));
    let (far, arrived) = find(&mut rig, "a");
    question(&mut rig, far, "q");
    let (state, key) = asked(&rig.hear(near), "q");
    for _ in 0..3 {
        rig.pass(minute);
    }
    let answers =
        json!({"requestState": state, "inputResponses": {key: {}}, "_meta": {"progressToken": 1}});
    let near = rig.post(&call("a", &answers));
    assert_eq!(rig.far_hears(far)["id"], "question");
    rig.pass(minute);
    let token = &arrived["params"]["_meta"]["progressToken"];
    let params = json!({"progressToken": token, "progress": 1});
    let report = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
    rig.far_says(far, &report.to_string());
    assert_eq!(rig.hear(near)["method"], "notifications/progress");
    rig.pass(minute);
    rig.assert_is_waiting(near);
    rig.pass(minute);
    let told = rig.hear(near);
    assert_eq!(told["error"]["data"]["reason"], "upstream_timeout");
    assert_eq!(rig.far_hears(far)["params"]["requestId"], arrived["id"]);
    rig.assert_quiet();
}

/// A client that never comes back, one that cancels after it came back, and one that is gone.
#[test]
fn a_call_whose_client_does_not_come_back_is_cancelled() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.post(&call("a", &json!({})));
    let (far, arrived) = find(&mut rig, "a");
    question(&mut rig, far, "q");
    let (state, key) = asked(&rig.hear(near), "q");
    rig.pass(Duration::from_secs(3599));
    rig.assert_quiet();
    rig.pass(Duration::from_secs(2));
    assert_eq!(rig.far_hears(far)["params"]["requestId"], arrived["id"]);
    // The server hears that nobody answers.
    let refused = rig.far_hears(far);
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!("question"), &json!(-32603))
    );
    let near = rig.post(&call(
        "a",
        &json!({"requestState": state, "inputResponses": {key: {}}}),
    ));
    assert_eq!(rig.hear(near)["error"]["code"], -32602);

    let near = rig.post(&call("b", &json!({})));
    let (far, arrived) = find(&mut rig, "b");
    question(&mut rig, far, "q");
    let (state, key) = asked(&rig.hear(near), "q");
    let near = rig.post(&call(
        "b",
        &json!({"requestState": state, "inputResponses": {key: {}}}),
    ));
    assert_eq!(rig.far_hears(far)["id"], "question");
    rig.leave(near);
    assert_eq!(rig.far_hears(far)["params"]["requestId"], arrived["id"]);
    rig.assert_quiet();
}

/// The answers to all questions of a round, each by what it is about.
fn answers(result: &Value) -> Value {
    let requests = result["inputRequests"].as_object().unwrap();
    let answer = |about: &Value| json!({"action": "accept", "content": {"about": about}});
    let answers: serde_json::Map<_, _> = requests
        .iter()
        .map(|(key, request)| (key.clone(), answer(&request["params"]["message"])))
        .collect();
    json!({"requestState": result["requestState"], "inputResponses": answers})
}

/// R-CHN-12: on a pipe nothing tells which call caused a question. All calls get some, so that no client needs more rounds
/// than it takes part in.
#[test]
fn a_hundred_questions_at_once_are_shared_out_among_the_calls() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.connect(Framing::Line);
    let call = |by: u64, more: Value| {
        let mut params = json!({"name": "x"});
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        stateless(by, "tools/call", params, &capabilities())
    };
    let mut open = Vec::new();
    for by in 0..100 {
        rig.say(near, &call(by, json!({})));
        open.push(rig.far_hears(0));
    }
    for by in 0..100 {
        let params = json!({"message": by.to_string(), "requestedSchema": {"type": "object"}});
        rig.far_says(0, &request(by, "elicitation/create", &params));
    }
    let (mut rounds, mut done) = (vec![0; 100], 0);
    while done < 100 {
        rig.step();
        let said = rig.fars.lock().unwrap()[0].lines.pop_front();
        if let Some(line) = said {
            // The server goes on with the call that had the question.
            let said: Value = serde_json::from_str(&line).unwrap();
            let by = said["id"].as_u64().unwrap();
            let about = json!({"about": by.to_string()});
            assert_eq!(said["result"]["content"], about, "{said}");
            let call = open[usize::try_from(by).unwrap()].clone();
            rig.answer(0, &call, &json!({"content": [], "by": by}));
            continue;
        }
        let answer = rig.hear(near);
        let (by, result) = (answer["id"].as_u64().unwrap(), &answer["result"]);
        if result["resultType"] == "complete" {
            assert_eq!(result["by"], by, "{answer}");
            done += 1;
            continue;
        }
        let count = &mut rounds[usize::try_from(by).unwrap()];
        *count += 1;
        assert!(*count <= 10, "official clients give up: {answer}");
        rig.say(near, &call(by, answers(result)));
    }
    rig.assert_quiet();
}

/// A question stands in the round of one call, which ends without it.
#[test]
fn a_question_whose_call_has_ended_is_asked_in_another_one() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.connect(Framing::Line);
    let call = |by: &str, more: Value| {
        let mut params = json!({"name": by});
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        stateless(by, "tools/call", params, &capabilities())
    };
    rig.say(near, &call("a", json!({})));
    let first = rig.far_hears(0);
    rig.say(near, &call("b", json!({})));
    let second = rig.far_hears(0);
    for about in ["1", "2", "3"] {
        let params = json!({"message": about, "requestedSchema": {"type": "object"}});
        rig.far_says(0, &request(about, "elicitation/create", &params));
    }
    let (b, a) = (rig.hear(near), rig.hear(near));
    asked(&b, "1");
    asked(&a, "2");
    // Nobody waits, so the third is to be asked in the next round of the newest call, which has no other round.
    rig.answer(0, &second, &json!({"content": []}));
    rig.say(near, &call("b", answers(&b["result"])));
    assert_eq!(rig.hear(near)["result"]["resultType"], "complete");
    assert_eq!(rig.far_hears(0)["id"], "1");
    rig.say(near, &call("a", answers(&a["result"])));
    assert_eq!(rig.far_hears(0)["id"], "2");
    let a = rig.hear(near);
    asked(&a, "3");
    // The client gives up the only call that is left after it has come back.
    rig.say(near, &call("a", answers(&a["result"])));
    assert_eq!(rig.far_hears(0)["id"], "3");
    rig.answer(0, &first, &json!({"content": []}));
    assert_eq!(rig.hear(near)["id"], "a");
    rig.far_says(0, &request("4", "elicitation/create", &json!({})));
    assert_eq!(rig.far_hears(0)["error"]["code"], -32601);
    rig.assert_quiet();
}

/// R-CHN-12, R-CHN-13: a page has an id in 2025-11-25, where the server says that the user has finished there, and none in
/// 2026-07-28.
#[test]
fn a_page_has_an_id_where_the_revision_of_the_client_has_ids() {
    let page = json!({"mode": "url", "message": "?", "url": "https://example.com"});
    let mut with_id = page.clone();
    with_id["elicitationId"] = "far".into();
    let mut rig = Rig::new(OLD, 1);
    let near = rig.post(&call("a", &json!({})));
    let (far, _) = find(&mut rig, "a");
    rig.far_says(far, &request("question", "elicitation/create", &with_id));
    let requests = &rig.hear(near)["result"]["inputRequests"];
    assert_eq!(requests["q1"]["params"], page);

    let mut rig = Rig::new(Revision::NEWEST, 1);
    let near = rig.open(OLD, &json!({"elicitation": {"form": {}, "url": {}}}));
    rig.say(near, &request(1, "tools/call", &json!({"name": "x"})));
    let arrived = rig.far_hears(0);
    let wanted = json!({"q": {"method": "elicitation/create", "params": page}});
    let result = json!({"resultType": "input_required", "inputRequests": wanted});
    rig.answer(0, &arrived, &result);
    let mut question = rig.hear(near)["params"].take();
    let id = question.as_object_mut().unwrap().remove("elicitationId");
    assert!(id.unwrap().as_str().unwrap().len() > 20);
    assert_eq!(question, page);
}

/// R-CHN-12: a list has no room for questions, even on the stream of which one comes.
#[test]
fn a_question_on_the_stream_of_a_list_is_put_to_a_call() {
    let mut rig = Rig::new(OLD, 1);
    let near = rig.connect(Framing::Line);
    let params = json!({"message": "?", "requestedSchema": {"type": "object"}});
    let question = request("question", "elicitation/create", &params);
    rig.say(
        near,
        &stateless("list", "tools/list", json!({}), &capabilities()),
    );
    let list = rig.far_hears(0);
    rig.far_says_within(0, &list, &question);
    assert_eq!(rig.far_hears(0)["error"]["code"], -32601);
    rig.say(near, &call("a", &json!({})));
    let called = rig.far_hears(0);
    assert_eq!(called["method"], "tools/call");
    rig.far_says_within(0, &list, &question);
    let answer = rig.hear(near);
    assert_eq!(answer["id"], "same");
    asked(&answer, "?");
    rig.answer(0, &list, &json!({"tools": []}));
    assert_eq!(rig.hear(near)["result"]["tools"], json!([]));
}

/// R-CHN-09: the server may have asked the client of a call before it hears that the call is cancelled. No other client gets the question.
#[test]
fn a_late_question_of_a_cancelled_call_reaches_no_other_client() {
    let mut rig = Rig::new(OLD, 1);
    let asks = json!({"elicitation": {}});
    let call = |id: usize| stateless(id, "tools/call", json!({"name": "x"}), &asks);
    let one = rig.post(&call(1));
    // The first connection has told the era of the server.
    rig.far_hears(1);
    rig.leave(one);
    assert_eq!(rig.far_hears(1)["method"], "notifications/cancelled");
    let two = rig.post(&call(2));
    let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    rig.far_says(1, &request("q", "elicitation/create", &form));
    rig.assert_is_waiting(two);
    let heard = rig.far_hears(2);
    rig.answer(2, &heard, &json!({"content": []}));
    assert_eq!(rig.hear(two)["result"]["resultType"], "complete");
    // A call that was answered leaves nothing behind, so its connection serves the next one.
    let three = rig.post(&call(3));
    let heard = rig.far_hears(2);
    rig.answer(2, &heard, &json!({"content": []}));
    assert_eq!(rig.hear(three)["id"], 3);
}

/// A client calls, and is asked. Returns the connection to the server, the call as it arrived there, and what goes on with it.
fn waits(rig: &mut Rig, by: &str) -> (usize, Value, Value) {
    let near = rig.post(&call(by, &json!({})));
    let (far, arrived) = find(rig, by);
    question(rig, far, by);
    let (state, key) = asked(&rig.hear(near), by);
    let answers = json!({"requestState": state, "inputResponses": {key: {"action": "accept", "content": {}}}});
    (far, arrived, answers)
}

/// The client comes with its answer, which the server hears, and gets the result.
fn goes_on(rig: &mut Rig, by: &str, (far, arrived, answers): (usize, Value, Value)) {
    let near = rig.post(&call(by, &answers));
    assert_eq!(rig.far_hears(far)["result"]["action"], "accept");
    rig.answer(far, &arrived, &json!({"content": [], "for": by}));
    assert_eq!(rig.hear(near)["result"]["for"], by);
}

/// The call has been given up: the server is told, and the client's answer is not taken any more.
fn is_given_up(rig: &mut Rig, by: &str, (far, arrived, answers): (usize, Value, Value)) {
    let said = [rig.far_hears(far), rig.far_hears(far)];
    assert!(
        said.iter().any(|it| it["error"]["code"] == -32603),
        "{said:?}"
    );
    let cancelled = said
        .iter()
        .find(|it| it["method"] == "notifications/cancelled");
    assert_eq!(cancelled.unwrap()["params"]["requestId"], arrived["id"]);
    let near = rig.post(&call(by, &answers));
    assert_eq!(rig.hear(near)["error"]["code"], -32602);
}

/// R-CHN-12, R-CHN-14: a front with other settings takes the place of one whose calls wait for their clients. They go on, for a while.
#[test]
fn calls_that_wait_for_their_clients_go_on_when_a_front_is_succeeded() {
    let patience = Duration::from_secs(300);
    let mut rig = Rig::new(OLD, 1);
    let waiting = waits(&mut rig, "a");
    let near = rig.post(&call("b", &json!({})));
    let (far, arrived) = find(&mut rig, "b");
    drop(rig.succeed(patience));
    goes_on(&mut rig, "a", waiting);
    // A question that comes later is asked, too.
    question(&mut rig, far, "b");
    let (state, key) = asked(&rig.hear(near), "b");
    let answers = json!({"requestState": state, "inputResponses": {key: {"action": "accept", "content": {}}}});
    goes_on(&mut rig, "b", (far, arrived, answers));

    // A client that does not come back in time is not waited for, whether it was asked before or after.
    let before = waits(&mut rig, "c");
    rig.post(&call("d", &json!({})));
    let (far, arrived) = find(&mut rig, "d");
    drop(rig.succeed(patience));
    question(&mut rig, far, "d");
    rig.pass(patience - Duration::from_millis(1));
    rig.assert_far_heard_nothing();
    rig.pass(Duration::from_millis(1));
    is_given_up(&mut rig, "c", before);
    is_given_up(
        &mut rig,
        "d",
        (far, arrived, json!({"requestState": "dev.mcpbolt/chain:x"})),
    );

    // Nor are those of too many fronts.
    let mut all = Vec::new();
    for number in 0..9 {
        let by = format!("e{number}");
        all.push((waits(&mut rig, &by), by));
        rig.assert_far_heard_nothing();
        drop(rig.succeed(patience));
    }
    let mut all = all.into_iter();
    let (first, by) = all.next().unwrap();
    is_given_up(&mut rig, &by, first);
    let (second, by) = all.next().unwrap();
    goes_on(&mut rig, &by, second);

    // When nothing is hosted any more, none waits.
    let (last, by) = (waits(&mut rig, "f"), "f");
    rig.hosting.ended();
    is_given_up(&mut rig, by, last);
    for (waiting, by) in all {
        is_given_up(&mut rig, &by, waiting);
    }
}

/// The server asks the client of a call in its answer, and gives it a state.
fn gives(rig: &mut Rig, by: &str, more: &Value, state: &str) -> usize {
    let near = rig.post(&call(by, more));
    let (far, arrived) = find(rig, by);
    answer_with(rig, far, &arrived, state);
    assert_eq!(rig.hear(near)["result"]["requestState"], state);
    far
}

fn answer_with(rig: &mut Rig, far: usize, arrived: &Value, state: &str) {
    let asks = json!({"q": {"method": "elicitation/create", "params": {"message": "?"}}});
    let result =
        json!({"resultType": "input_required", "inputRequests": asks, "requestState": state});
    rig.answer(far, arrived, &result);
}

/// R-MRT-06: a process of a server signs its states with a key of its own, so it is kept for a while when a front is succeeded.
#[test]
fn states_of_a_server_come_back_to_it_when_a_front_is_succeeded() {
    let patience = Duration::from_secs(300);
    // A connection with a state in a client's hands is needed.
    let idle_time = Duration::from_secs(10);
    let mut rig = Rig::changing(NEW, |external| external.idle_time(idle_time));
    let with = |state: &str| json!({"requestState": state, "inputResponses": {"q": {"action": "accept", "content": {}}}});
    let first = gives(&mut rig, "a", &json!({}), "first");
    // This one is asked when its front has a successor.
    let late = rig.post(&call("b", &json!({})));
    let (_, arrived) = find(&mut rig, "b");
    drop(rig.succeed(patience));
    answer_with(&mut rig, first, &arrived, "late");
    assert_eq!(rig.hear(late)["result"]["requestState"], "late");
    // Round after round.
    assert_eq!(gives(&mut rig, "a", &with("first"), "second"), first);
    assert_eq!(gives(&mut rig, "a", &with("second"), "third"), first);
    assert_eq!(gives(&mut rig, "b", &with("late"), "later"), first);
    // Other calls and other states are for the newest.
    let newest = gives(&mut rig, "c", &json!({}), "newest");
    assert_ne!(newest, first);
    assert_eq!(gives(&mut rig, "c", &with("unknown"), "other"), newest);
    assert_eq!(gives(&mut rig, "c", &with("newest"), "other"), newest);
    // So are known states in calls of other tools: the rules of the newest are for those.
    let mut other = with("third");
    other["name"] = json!("y");
    assert_eq!(gives(&mut rig, "c", &other, "other"), newest);
    let almost = patience - Duration::from_millis(1);
    for _ in 0..3 {
        rig.pass(almost / 3);
    }
    assert_eq!(gives(&mut rig, "a", &with("third"), "fourth"), first);
    rig.pass(patience);
    assert_eq!(gives(&mut rig, "a", &with("fourth"), "fifth"), newest);

    // Those of too many fronts are not kept, nor any when nothing is hosted any more.
    let mut all = Vec::new();
    for number in 0..9 {
        let state = format!("state {number}");
        all.push((gives(&mut rig, "d", &json!({}), &state), state));
        drop(rig.succeed(patience));
    }
    let newest = gives(&mut rig, "d", &json!({}), "x");
    let lost = gives(&mut rig, "d", &with(&all[0].1), "x");
    assert_eq!(lost, newest);
    assert_eq!(gives(&mut rig, "d", &with(&all[1].1), "x"), all[1].0);
    rig.hosting.ended();
    let again = gives(&mut rig, "d", &with(&all[2].1), "x");
    assert!(!all.iter().any(|(far, _)| *far == again));
}

/// The oldest states of a connection are forgotten first.
#[test]
fn states_of_a_connection_are_remembered_up_to_a_number() {
    let mut rig = Rig::new(NEW, 1);
    let of = |number: usize| format!("state {number}");
    let far = gives(&mut rig, "a", &json!({}), &of(0));
    for number in 1..=1000 {
        assert_eq!(gives(&mut rig, "a", &json!({}), &of(number)), far);
    }
    drop(rig.succeed(Duration::from_secs(300)));
    let mut goes_to = |number: usize| {
        let near = rig.post(&call("a", &json!({"requestState": of(number)})));
        let (far, arrived) = find(&mut rig, "a");
        rig.answer(
            far,
            &arrived,
            &json!({"content": [], "resultType": "complete"}),
        );
        assert!(rig.hear(near)["error"].is_null());
        far
    };
    assert_ne!(goes_to(0), far);
    assert_eq!(goes_to(1), far);
    assert_eq!(goes_to(1000), far);
}
