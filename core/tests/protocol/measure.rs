//! The arguments that reach a handler, and the rates of calls.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpbolt::client::block_on;
use mcpbolt::limits::{Limits, Rate};
use mcpbolt::mcp::{Era, ErrorKind, LogLevel, Revision};
use mcpbolt::model::CompletionTarget;
use mcpbolt::server::{
    Arguments, Context, HandlerError, Prompt, PromptResult, Resource, ResourceContents, Tool,
};
use serde_json::{Value, json};

use crate::wire::Wire;
use crate::{in_each_revision, server};

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

async fn note(uri: String) -> Result<ResourceContents, HandlerError> {
    Ok(ResourceContents::text(uri, "text"))
}

/// R-TOL-03, R-CMP-04, R-SMP-09: who asks too fast is told when to ask again; who is pinged lives.
#[test]
fn requests_have_a_rate() {
    let rate = Rate {
        burst: 5,
        per_second: 1,
    };
    let limits = Limits {
        request_rate: Some(rate),
        ..Limits::STDIO
    };
    let server = server(1).limits(limits).build().unwrap();
    for revision in Revision::ALL {
        // The clock of this wire stands still.
        let mut wire = Wire::open(&server, revision, json!({}));
        let mut codes = Vec::new();
        for _ in 0..8 {
            let call = json!({"name": "tool-0", "arguments": {}});
            let answer = wire.ask(revision, "tools/call", call);
            if code(&answer) != 0 {
                assert_eq!(answer["error"]["data"], json!({"retryAfter": 1}));
            }
            codes.push(code(&answer));
        }
        let overload = ErrorKind::Overloaded.code(revision);
        assert_eq!(codes[..5], [0; 5], "{revision}");
        assert_eq!(codes[5..], [overload; 3], "{revision}");
        if revision.era() == Era::Handshake {
            assert_eq!(wire.ask(revision, "ping", json!({}))["result"], json!({}));
        }
        wire.pass(Duration::from_secs(2));
        assert_eq!(code(&wire.ask(revision, "tools/list", json!({}))), 0);
    }
}

/// R-PRG-04, R-LOG-05: a handler that reports all the time floods nobody, and what counts arrives.
#[test]
fn reports_have_a_rate() {
    let rate = Rate {
        burst: 3,
        per_second: 2,
    };
    let limits = Limits {
        report_rate: Some(rate),
        ..Limits::STDIO
    };
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let reported = Arc::new(AtomicUsize::new(0));
    let reports = reported.clone();
    let run = move |_: Arguments, context: Context| {
        let (gate, reports) = (gate.clone(), reports.clone());
        async move {
            for step in 1..=1000 {
                context.progress(f64::from(step), None, None);
                context.log(LogLevel::Error, None, &json!(step));
            }
            reports.store(1000, Ordering::Release);
            gate.lock().unwrap().recv().unwrap();
            "done"
        }
    };
    let server = server(0).tool(Tool::new("run"), run).limits(limits);
    let mut wire = Wire::open(&server.build().unwrap(), Revision::V2025_06_18, json!({}));
    let call = r#"{"jsonrpc":"2.0","id":"run","method":"tools/call","params":{"name":"run","_meta":{"progressToken":7}}}"#;
    let mut heard = wire.say(call);
    heard.extend(wire.hear_until(|_| reported.load(Ordering::Acquire) == 1000));
    let progress = |heard: &[Value]| -> Vec<_> {
        let steps = heard.iter().map(|said| said["params"]["progress"].as_u64());
        steps.flatten().collect()
    };
    let logs = |heard: &[Value]| {
        heard
            .iter()
            .filter(|said| said["method"] == "notifications/message")
            .count()
    };
    assert_eq!(progress(&heard).len() + logs(&heard), 3, "{heard:?}");
    // The newest is kept, and comes when its time has come.
    assert!(wire.pass(Duration::from_millis(490)).is_empty());
    assert_eq!(progress(&wire.pass(Duration::from_millis(20))), [1000]);
    assert!(wire.pass(Duration::from_secs(10)).is_empty());
    go.send(()).unwrap();
    let end = wire.hear_until(|wire| wire.connection.in_flight() == 0);
    assert_eq!(end.last().unwrap()["result"]["content"][0]["text"], "done");
}

/// R-PRM-09, R-CMP-04: what reaches a handler was asked for by name.
#[test]
fn only_known_arguments_reach_a_prompt_or_a_completion() {
    let seen = Arc::new(AtomicUsize::new(0));
    let (gets, completes) = (seen.clone(), seen.clone());
    let greet = Prompt::new("greet")
        .argument("to", "Whom", true)
        .argument("how", "How", false);
    let server = server(0)
        .prompt(greet, move |arguments, _| {
            gets.fetch_add(1, Ordering::Relaxed);
            async move { Ok(PromptResult::user(format!("Hello {}", arguments["to"]))) }
        })
        .resource(Resource::new("a:1", "one"), |uri, _| note(uri))
        .resource_template(Resource::new("b:{x}", "some"), |uri, _, _| note(uri))
        .completion(move |_, _| {
            completes.fetch_add(1, Ordering::Relaxed);
            async { Ok(vec!["x".to_owned()]) }
        });
    let server = server.build().unwrap();
    in_each_revision(&server, |_, client| {
        let get = |arguments: &[(&str, &str)]| {
            let result = block_on(client.get_prompt("greet", arguments));
            result.map(drop).map_err(|error| error.code())
        };
        let complete = |target: CompletionTarget, name: &str| {
            let result = block_on(client.complete(&target, (name, ""), &[]));
            result.map(drop).map_err(|error| error.code())
        };
        let refused = Err(Some(-32602));
        let (prompt, template) = (
            CompletionTarget::prompt("greet"),
            CompletionTarget::resource("b:{x}"),
        );
        seen.store(0, Ordering::Relaxed);
        for wrong in [
            &[][..],
            &[("how", "x")],
            &[("to", "x"), ("system", "Obey.")],
        ] {
            assert_eq!(get(wrong), refused, "{wrong:?}");
        }
        for (target, name) in [
            (prompt.clone(), "system"),
            (template.clone(), "y"),
            (CompletionTarget::resource("a:1"), "x"),
        ] {
            assert_eq!(complete(target, name), refused, "{name}");
        }
        assert_eq!(seen.load(Ordering::Relaxed), 0);
        assert_eq!(get(&[("to", "x"), ("how", "y")]), Ok(()));
        assert_eq!(
            (complete(prompt, "how"), complete(template, "x")),
            (Ok(()), Ok(()))
        );
        assert_eq!(seen.load(Ordering::Relaxed), 3);
    });
}
