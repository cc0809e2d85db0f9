//! The middleware that the crate has, for one server of a front.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use mcpbolt::chain::{
    Approval, CallReports, ChainAnswer, ChainRequest, Front, MaskedTexts, Masking, Middleware,
    NextHop, Pins, Prefix, tool_pin,
};
use mcpbolt::connection::{Framing, ObservedRequest, Observer, RequestObserver, Wake};
use mcpbolt::mcp::Revision;
use serde_json::{Value, json};

use crate::rig::{Fars, Rig, request, stateless};

const OLD: Revision = Revision::NEWEST_HANDSHAKE;
const NEW: Revision = Revision::NEWEST;
const COMBINATIONS: [(Revision, Revision); 4] = [(OLD, OLD), (OLD, NEW), (NEW, OLD), (NEW, NEW)];

type Said = Arc<Mutex<Vec<String>>>;

fn said() -> (Said, Said) {
    let said = Said::default();
    (said.clone(), said)
}

fn take(said: &Said) -> Vec<String> {
    std::mem::take(&mut *said.lock().unwrap())
}

/// A client of that revision.
pub fn client(rig: &mut Rig, revision: Revision, capabilities: &Value) -> usize {
    match revision {
        OLD => rig.open(OLD, capabilities),
        _ => rig.connect(Framing::Line),
    }
}

/// A request of such a client.
pub fn line(
    revision: Revision,
    id: u64,
    method: &str,
    params: Value,
    capabilities: &Value,
) -> String {
    match revision {
        OLD => request(id, method, &params),
        _ => stateless(id, method, params, capabilities),
    }
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

#[test]
fn only_tools_that_are_as_they_were_pinned_are_listed_and_called() {
    for (near_revision, far_revision) in COMBINATIONS {
        let (told, said) = said();
        let pins = ["same", "drifted", "gone"].map(|name| {
            (
                name.to_owned(),
                tool_pin(&tool(name, "as it was").to_string()),
            )
        });
        let pins = BTreeMap::from(pins);
        let mut rig = Rig::changing(far_revision, |external| {
            let told = told.clone();
            let pins = Pins::new("far", pins.clone(), move |drift| {
                let said = format!("{} {:?} {}", drift.tool, drift.pinned, drift.found);
                told.lock().unwrap().push(said);
            });
            external.prefix(Prefix::new("p").unwrap()).with(pins)
        });
        let near = client(&mut rig, near_revision, &json!({}));
        let line = |id, method, params| line(near_revision, id, method, params, &json!({}));
        let call = |id, tool: &str| line(id, "tools/call", json!({"name": tool}));
        // A call finds out first what the tool is, page by page.
        rig.say(near, &call(1, "p_same"));
        let list = rig.far_hears(0);
        assert_eq!(list["method"], "tools/list");
        let page = json!({"tools": [tool("new", "x")], "nextCursor": "c"});
        rig.answer(0, &list, &page);
        let list = rig.far_hears(0);
        assert_eq!(list["params"]["cursor"], "c");
        let now = [tool("drifted", "now other"), tool("same", "as it was")];
        rig.answer(0, &list, &json!({"tools": now}));
        let called = rig.far_hears(0);
        assert_eq!(called["params"]["name"], "same");
        rig.answer(0, &called, &json!({"content": []}));
        assert_eq!(rig.hear(near)["id"], 1);
        let drifted = pins.get("drifted").unwrap();
        let reports = take(&said);
        assert_eq!(reports.len(), 2);
        assert!(reports[0].starts_with("new None sha256:"), "{reports:?}");
        let was = format!("drifted {:?} sha256:", Some(drifted));
        assert!(reports[1].starts_with(&was), "{reports:?}");
        // Now everything is known, but what is not listed.
        for (id, name, why) in [
            (2, "p_drifted", "is not what was pinned"),
            (3, "p_new", "has no pin"),
        ] {
            rig.say(near, &call(id, name));
            let error = rig.hear(near)["error"].clone();
            let message = error["message"].as_str().unwrap();
            assert!(
                message.ends_with(why) && message.contains("\"far\""),
                "{message}"
            );
            assert_eq!(error["code"], -32602);
        }
        // Lists leave the others out; a drift is reported once.
        rig.say(near, &line(4, "tools/list", json!({})));
        let list = rig.far_hears(0);
        rig.answer(
            0,
            &list,
            &json!({"tools": [now[0], tool("new", "x"), now[1]]}),
        );
        let listed = rig.hear(near)["result"]["tools"].clone();
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
        assert_eq!(listed[0]["name"], "p_same");
        assert_eq!(take(&said), Vec::<String>::new());
        rig.say(near, &call(5, "p_gone"));
        let list = rig.far_hears(0);
        rig.answer(0, &list, &json!({"tools": [now[1]]}));
        let message = rig.hear(near)["error"]["message"].clone();
        assert!(message.as_str().unwrap().contains("not listed any more"));
        rig.assert_quiet();
    }
}

#[test]
fn a_changed_list_is_looked_at_before_the_next_call() {
    let pins = BTreeMap::from([("a".to_owned(), tool_pin(&tool("a", "x").to_string()))]);
    let mut rig = Rig::changing(OLD, |external| {
        external.with(Pins::new("far", pins.clone(), |_| {}))
    });
    let near = rig.open(OLD, &json!({}));
    let call = request(1, "tools/call", &json!({"name": "a"}));
    for (description, passes) in [("x", true), ("y", false)] {
        rig.say(near, &call);
        let list = rig.far_hears(0);
        rig.answer(0, &list, &json!({"tools": [tool("a", description)]}));
        if passes {
            let called = rig.far_hears(0);
            rig.answer(0, &called, &json!({}));
        }
        assert_eq!(rig.hear(near)["error"].is_null(), passes);
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        rig.far_says(0, &changed.to_string());
        rig.hear(near);
    }
    rig.assert_quiet();
}

/// Stops what it passes on while the flag is set: as on a thread that has no turn.
struct Stopping(Arc<AtomicBool>);

impl Middleware for Stopping {
    fn request<'a>(&'a self, request: ChainRequest, next: NextHop<'a>) -> ChainAnswer<'a> {
        let mut passed = Box::pin(next.run(request));
        Box::pin(poll_fn(move |cx| match self.0.load(Ordering::Relaxed) {
            true => Poll::Pending,
            false => passed.as_mut().poll(cx),
        }))
    }
}

/// The transport sends in the next session what waits, even if the thread of the call has not heard yet that its session has ended.
#[test]
fn a_call_of_a_pinned_tool_does_not_wait_for_the_next_session() {
    let pins = BTreeMap::from([("a".to_owned(), tool_pin(&tool("a", "x").to_string()))]);
    let stops = Arc::<AtomicBool>::default();
    let mut rig = Rig::changing(OLD, |external| {
        let external = external.with(Stopping(stops.clone()));
        external.with(Pins::new("far", pins.clone(), |_| {}))
    });
    let near = rig.open(OLD, &json!({}));
    rig.say(near, &request(1, "tools/call", &json!({"name": "a"})));
    let list = rig.far_hears(0);
    rig.answer(0, &list, &json!({"tools": [tool("a", "x")]}));
    let called = rig.far_hears(0);
    assert!(rig.is_awaited(0, &called));
    stops.store(true, Ordering::Relaxed);
    rig.session_ends(0);
    assert!(!rig.is_awaited(0, &called));
}

/// A transport that has begun the next session by the time at which it takes the call.
#[derive(Default)]
struct Renewing {
    rig: OnceLock<(Fars, Instant)>,
    is_armed: AtomicBool,
    sent: Mutex<Vec<(Value, bool)>>,
}

impl fmt::Debug for Renewing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Renewing")
    }
}

/// Told when the call has been found to be for the current session, before it is noted or sent.
impl Observer for Renewing {
    fn request(&self, request: &ObservedRequest<'_>) -> Option<Arc<dyn RequestObserver>> {
        if request.is_sent()
            && request.method() == "tools/call"
            && let Some((fars, now)) = self.rig.get()
        {
            self.is_armed.store(true, Ordering::Relaxed);
            fars.lock().unwrap()[0].session_ends(*now);
        }
        None
    }
}

/// Told when the call is there to be sent, before its own thread does anything else.
impl Wake for Renewing {
    fn wake(&self) {
        if let Some((fars, now)) = self.rig.get()
            && self.is_armed.load(Ordering::Relaxed)
        {
            let sent = fars.lock().unwrap()[0].sends(*now);
            self.sent.lock().unwrap().extend(sent);
        }
    }
}

/// Nor does one go there whose thread had found the old session, and was held up until the next one had begun.
#[test]
fn a_call_of_a_pinned_tool_does_not_overtake_the_end_of_its_session() {
    let pins = BTreeMap::from([("a".to_owned(), tool_pin(&tool("a", "x").to_string()))]);
    let renewing = Arc::<Renewing>::default();
    let mut rig = Rig::over(OLD, 1, |external| {
        let external = external.with(Pins::new("far", pins.clone(), |_| {}));
        Front::new(external).observer(renewing.clone())
    });
    let near = rig.open(OLD, &json!({}));
    rig.say(near, &request(1, "tools/call", &json!({"name": "a"})));
    let list = rig.far_hears(0);
    rig.answer(0, &list, &json!({"tools": [tool("a", "x")]}));
    let called = rig.far_hears(0);
    rig.answer(0, &called, &json!({}));
    rig.hear(near);
    rig.fars.lock().unwrap()[0].set_wake(renewing.clone());
    assert!(renewing.rig.set((rig.fars.clone(), rig.now)).is_ok());
    rig.say(near, &request(2, "tools/call", &json!({"name": "a"})));
    let sent = std::mem::take(&mut *renewing.sent.lock().unwrap());
    let calls: Vec<_> = sent
        .iter()
        .filter(|(message, _)| message["method"] == "tools/call")
        .map(|(_, is_sent)| is_sent)
        .collect();
    assert_eq!(calls, [&false], "{sent:?}");
    let told = loop {
        let heard = rig.hear(near);
        if heard["id"] == 2 {
            break heard;
        }
    };
    assert_eq!(
        told["error"]["data"]["reason"], "upstream_unavailable",
        "{told}"
    );
}

/// Another connection may lead to another version of the server.
#[test]
fn each_connection_is_looked_at_before_a_call_goes_over_it() {
    let pins = BTreeMap::from([("a".to_owned(), tool_pin(&tool("a", "x").to_string()))]);
    let pinned = |revision| {
        Rig::changing(revision, |external| {
            external.with(Pins::new("far", pins.clone(), |_| {}))
        })
    };
    // It is opened after the server was lost, or for another client.
    for (revision, is_lost) in [(NEW, true), (OLD, false)] {
        let mut rig = pinned(revision);
        let near = client(&mut rig, revision, &json!({}));
        let call = line(revision, 1, "tools/call", json!({"name": "a"}), &json!({}));
        rig.say(near, &call);
        let list = rig.far_hears(0);
        rig.answer(0, &list, &json!({"tools": [tool("a", "x")]}));
        let called = rig.far_hears(0);
        rig.answer(0, &called, &json!({}));
        rig.hear(near);
        let near = match is_lost {
            true => {
                rig.break_off(0);
                near
            }
            false => client(&mut rig, revision, &json!({})),
        };
        rig.say(near, &call);
        let list = rig.far_hears(1);
        assert_eq!(list["method"], "tools/list");
        rig.answer(1, &list, &json!({"tools": [tool("a", "y")]}));
        let why = rig.hear(near)["error"]["message"].clone();
        assert!(why.as_str().unwrap().ends_with("is not what was pinned"));
        rig.assert_quiet();
    }
}

/// While a server is replaced, one client may have the version before and another the one after: neither vouches for the other.
#[test]
fn what_one_connection_lists_vouches_for_no_other() {
    let pins = BTreeMap::from([("a".to_owned(), tool_pin(&tool("a", "x").to_string()))]);
    let mut rig = Rig::changing(OLD, |external| {
        external.with(Pins::new("far", pins.clone(), |_| {}))
    });
    let nears = [0, 1].map(|_| rig.open(OLD, &json!({})));
    let versions = ["y", "x"];
    for far in [0, 1] {
        rig.say(nears[far], &request(1, "tools/list", &json!({})));
        let list = rig.far_hears(far);
        rig.answer(far, &list, &json!({"tools": [tool("a", versions[far])]}));
        let listed = rig.hear(nears[far])["result"]["tools"].take();
        assert_eq!(listed.as_array().unwrap().len(), far);
    }
    for _ in 0..2 {
        let call = request(2, "tools/call", &json!({"name": "a"}));
        rig.say(nears[0], &call);
        let why = rig.hear(nears[0])["error"]["message"].take();
        assert!(why.as_str().unwrap().ends_with("is not what was pinned"));
        rig.say(nears[1], &call);
        let called = rig.far_hears(1);
        assert_eq!(called["method"], "tools/call");
        rig.answer(1, &called, &json!({"content": []}));
        assert!(rig.hear(nears[1])["error"].is_null());
    }
    rig.assert_quiet();
}

/// A call goes over the connection that was looked at, or not at all.
#[test]
fn a_call_whose_connection_is_lost_after_the_look_at_it_fails() {
    let pins = BTreeMap::from([("a".to_owned(), tool_pin(&tool("a", "x").to_string()))]);
    let gate = Arc::<Mutex<(bool, Option<Waker>)>>::default();
    let mut rig = Rig::changing(OLD, |external| {
        let gate = gate.clone();
        let approve = move |_| {
            let gate = gate.clone();
            poll_fn(move |cx| {
                let mut gate = gate.lock().unwrap();
                gate.1 = Some(cx.waker().clone());
                gate.0.then_some(Ok(())).map_or(Poll::Pending, Poll::Ready)
            })
        };
        external
            .with(Pins::new("far", pins.clone(), |_| {}))
            .with(Approval::new(|_| true, approve))
    });
    let near = rig.open(OLD, &json!({}));
    rig.say(near, &request(1, "tools/call", &json!({"name": "a"})));
    let list = rig.far_hears(0);
    rig.answer(0, &list, &json!({"tools": [tool("a", "x")]}));
    // The call waits in front of the server.
    rig.assert_is_waiting(near);
    rig.break_off(0);
    rig.pass(Duration::from_secs(1));
    rig.step();
    assert_eq!(
        rig.fars.lock().unwrap().len(),
        2,
        "the connection is open again"
    );
    let waker = {
        let mut gate = gate.lock().unwrap();
        gate.0 = true;
        gate.1.take().unwrap()
    };
    waker.wake();
    let mut error = rig.hear(near);
    while error["id"].is_null() {
        // That lists may be others.
        error = rig.hear(near);
    }
    assert_eq!(
        error["error"]["data"]["reason"], "upstream_unavailable",
        "{error}"
    );
    let fars = rig.fars.lock().unwrap();
    assert!(
        fars[1]
            .lines
            .iter()
            .all(|line| !line.contains("tools/call"))
    );
}

#[test]
fn calls_wait_for_the_approval_of_the_user_in_every_combination_of_eras() {
    let elicitation = json!({"elicitation": {}});
    for (near_revision, far_revision) in COMBINATIONS {
        for (action, is_approved) in [("accept", true), ("decline", false), ("cancel", false)] {
            let mut rig = Rig::changing(far_revision, |external| {
                external.with(Approval::by_client(|tool| tool == "erase"))
            });
            let near = client(&mut rig, near_revision, &elicitation);
            let line = |id, params| line(near_revision, id, "tools/call", params, &elicitation);
            let params = json!({"name": "erase", "arguments": {"all": true}});
            rig.say(near, &line(1, params.clone()));
            let asked = rig.hear(near);
            let (answered, question) = match near_revision {
                OLD => (1, &asked),
                _ => (2, &asked["result"]["inputRequests"]["q1"]),
            };
            assert_eq!(question["method"], "elicitation/create", "{asked}");
            let message = question["params"]["message"].as_str().unwrap();
            assert_eq!(message, r#"Allow the call of "erase" with {"all":true}?"#);
            rig.assert_quiet();
            let answer = json!({"action": action});
            match near_revision {
                OLD => {
                    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer});
                    rig.say(near, &answer.to_string());
                }
                _ => {
                    let mut params = params.clone();
                    params["requestState"] = asked["result"]["requestState"].clone();
                    params["inputResponses"] = json!({"q1": answer});
                    rig.say(near, &line(2, params));
                }
            }
            if is_approved {
                let called = rig.far_hears(0);
                assert_eq!(called["params"]["arguments"], json!({"all": true}));
                assert!(called["params"]["requestState"].is_null());
                rig.answer(0, &called, &json!({"content": []}));
            }
            let heard = rig.hear(near);
            assert_eq!(heard["id"], answered);
            let error = &heard["error"];
            assert_eq!(error.is_null(), is_approved, "{heard}");
            if !is_approved {
                let why = r#"the user did not approve the call of "erase""#;
                assert_eq!(error["message"], why);
            }
            // Other tools need nothing.
            rig.say(near, &line(3, json!({"name": "show"})));
            let called = rig.far_hears(0);
            rig.answer(0, &called, &json!({"content": []}));
            rig.hear(near);
            rig.assert_quiet();
        }
        // Nobody can be asked.
        let mut rig = Rig::changing(far_revision, |external| {
            external.with(Approval::by_client(|_| true))
        });
        let near = client(&mut rig, near_revision, &json!({}));
        let params = json!({"name": "erase"});
        rig.say(
            near,
            &line(near_revision, 1, "tools/call", params, &json!({})),
        );
        let why = rig.hear(near)["error"]["message"].clone();
        assert!(
            why.as_str().unwrap().contains("has no elicitation"),
            "{why}"
        );
        rig.assert_quiet();
    }
}

#[test]
fn an_approval_covers_one_call_whatever_state_comes_with_it() {
    let elicitation = json!({"elicitation": {}});
    let approving = |revision| {
        Rig::changing(revision, |external| {
            external.with(Approval::by_client(|tool| tool == "erase"))
        })
    };
    // The client of the handshake era has no states.
    for state in [json!(null), json!("x")] {
        let mut rig = approving(NEW);
        let near = rig.open(OLD, &elicitation);
        let params = json!({"name": "erase", "requestState": state});
        rig.say(near, &request(1, "tools/call", &params));
        assert_eq!(rig.hear(near)["method"], "elicitation/create");
        rig.assert_quiet();
    }
    let mut rig = approving(NEW);
    let near = rig.connect(Framing::Line);
    // Asks with a state of the server, and has the user approve the call if the front wants that.
    let call = |rig: &mut Rig, all: bool, state: Option<&str>, is_asked: bool| {
        let mut params = json!({"name": "erase", "arguments": {"all": all}});
        if let Some(state) = state {
            params["requestState"] = state.into();
        }
        rig.say(
            near,
            &stateless(1, "tools/call", params.clone(), &elicitation),
        );
        if is_asked {
            let asked = rig.hear(near)["result"].clone();
            assert_eq!(asked["resultType"], "input_required");
            rig.assert_quiet();
            params["requestState"] = asked["requestState"].clone();
            params["inputResponses"] = json!({"q1": {"action": "accept"}});
            rig.say(near, &stateless(2, "tools/call", params, &elicitation));
        }
        let called = rig.far_hears(0);
        assert_eq!(called["params"]["requestState"], json!(state));
        called
    };
    let asks = |rig: &mut Rig, called: &Value, state: &str| {
        let asks =
            json!({"resultType": "input_required", "requestState": state, "inputRequests": {}});
        rig.answer(0, called, &asks);
        assert_eq!(rig.hear(near)["result"]["requestState"], state);
    };
    let called = call(&mut rig, false, Some("x"), true);
    asks(&mut rig, &called, "s1");
    // What the user has not seen, and a state that the server has not given out, are asked about.
    let other = call(&mut rig, true, Some("s1"), true);
    rig.answer(0, &other, &json!({"content": []}));
    rig.hear(near);
    let other = call(&mut rig, false, Some("s2"), true);
    rig.answer(0, &other, &json!({"content": []}));
    rig.hear(near);
    // The call goes on, round by round, and once.
    let called = call(&mut rig, false, Some("s1"), false);
    asks(&mut rig, &called, "s2");
    let called = call(&mut rig, false, Some("s2"), false);
    rig.answer(0, &called, &json!({"content": []}));
    rig.hear(near);
    call(&mut rig, false, Some("s2"), true);
    rig.assert_quiet();
}

#[test]
fn a_program_approves_and_refuses_calls() {
    let mut rig = Rig::with(OLD, 1, |front| {
        front.with(Approval::new(
            |tool| tool == "pay",
            |request| async move {
                let is_small = request.params().contains("\"amount\":1}");
                is_small.then_some(()).ok_or_else(|| "too much".to_owned())
            },
        ))
    });
    let near = rig.open(OLD, &json!({}));
    let call = |amount: u64| {
        let params = json!({"name": "pay", "arguments": {"amount": amount}});
        request(amount, "tools/call", &params)
    };
    rig.say(near, &call(2));
    let why = r#"the call of "pay" was not approved: too much"#;
    assert_eq!(rig.hear(near)["error"]["message"], why);
    rig.say(near, &call(1));
    let called = rig.far_hears(0);
    rig.answer(0, &called, &json!({"content": []}));
    assert_eq!(rig.hear(near)["id"], 1);
    rig.assert_quiet();
}

#[test]
fn texts_are_masked_both_ways() {
    for (near_revision, far_revision) in COMBINATIONS {
        let mut rig = Rig::changing(far_revision, |external| {
            external.with(Masking::new(MaskedTexts::Both, |text| {
                match text.contains("4111") {
                    true => Cow::Owned(text.replace("4111", "****")),
                    false => Cow::Borrowed(text),
                }
            }))
        });
        let near = client(&mut rig, near_revision, &json!({}));
        let params = json!({"name": "pay", "arguments": {"card": ["no. 4111"]}});
        let line = |id| line(near_revision, id, "tools/call", params.clone(), &json!({}));
        rig.say(near, &line(1));
        let called = rig.far_hears(0);
        assert_eq!(called["params"]["arguments"]["card"][0], "no. ****");
        let text = json!({"type": "text", "text": "paid by \"4111\""});
        rig.answer(0, &called, &json!({"content": [text]}));
        let heard = rig.hear(near);
        assert_eq!(heard["result"]["content"][0]["text"], "paid by \"****\"");
        rig.say(near, &line(2));
        let called = rig.far_hears(0);
        let error = json!({"code": -32603, "message": "4111 fails", "data": {"card": "4111"}});
        let error = json!({"jsonrpc": "2.0", "id": called["id"], "error": error});
        rig.far_says(0, &error.to_string());
        let error = &rig.hear(near)["error"];
        assert_eq!(error["message"], "**** fails");
        assert_eq!(error["data"]["card"], "****");
        rig.assert_quiet();
    }
}

#[test]
fn each_request_to_a_server_is_reported_once() {
    let (told, said) = said();
    let mut rig = Rig::changing(OLD, |external| {
        let told = told.clone();
        let reports = CallReports::new("far", move |call| {
            let (name, outcome) = (call.name.unwrap_or("-"), call.outcome.name());
            let line = format!("{} {} {name} {outcome}", call.server, call.method);
            told.lock().unwrap().push(line);
        });
        let refuse = Approval::new(|tool| tool == "refused", |_| async { Err("no".to_owned()) });
        external
            .prefix(Prefix::new("p").unwrap())
            .with(reports)
            .with(refuse)
    });
    let near = rig.open(OLD, &json!({}));
    let call = |id: u64, name: &str| request(id, "tools/call", &json!({"name": name}));
    rig.say(near, &call(1, "p_refused"));
    rig.hear(near);
    for (id, result) in [
        (2, json!({"content": []})),
        (3, json!({"content": [], "isError": true})),
    ] {
        rig.say(near, &call(id, "p_x"));
        let asked = rig.far_hears(0);
        rig.answer(0, &asked, &result);
        rig.hear(near);
    }
    rig.say(near, &call(4, "p_x"));
    rig.far_hears(0);
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}});
    rig.say(near, &cancelled.to_string());
    rig.far_hears(0);
    rig.say(near, &request(5, "prompts/list", &json!({})));
    rig.far_hears(0);
    rig.break_off(0);
    rig.hear(near);
    assert_eq!(
        take(&said),
        [
            "far tools/call refused failed",
            "far tools/call x done",
            "far tools/call x tool_failed",
            "far tools/call x cancelled",
            "far prompts/list - failed",
        ]
    );
}
