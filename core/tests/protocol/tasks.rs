//! Tasks: the core form of 2025-11-25 and the extension of 2026-07-28, on the wire and between both
//! sides' programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcpbolt::client::{Client, ClientBuilder, Started, block_on};
use mcpbolt::error::RequestError;
use mcpbolt::handler::HandlerError;
use mcpbolt::mcp::{ErrorKind, Revision, TaskStatus, TaskSupport, extension};
use mcpbolt::model::{Elicitation, Elicited};
use mcpbolt::server::{Arguments, Builder, Context, Server, TaskLimits, Tool, ToolResult};
use serde_json::{Value, json};

use crate::asks::{call, with_clients};
use crate::server;
use crate::wire::Wire;

const CORE: Revision = Revision::V2025_11_25;
const NEWEST: Revision = Revision::V2026_07_28;

fn question(message: &str) -> Elicitation {
    let schema = json!({"type": "object", "properties": {"yes": {"type": "boolean"}}});
    Elicitation::form(message, schema)
}

async fn yes(context: &Context, message: &str) -> Result<bool, HandlerError> {
    Ok(match context.elicit(question(message)).await? {
        Elicited::Accepted(content) => content["yes"] == true,
        _ => false,
    })
}

/// Tools of every kind; `wait` goes on until it is cancelled.
fn tools() -> Builder {
    let tool = |name: &str| Tool::new(name).task_support(TaskSupport::Optional);
    server(1)
        .tool(tool("quick"), |_: Arguments, context: Context| async move {
            context.begin_task();
            "quick"
        })
        .tool(tool("direct"), |_: Arguments, _| async { "direct" })
        .tool(tool("wait"), |_: Arguments, context: Context| async move {
            context.begin_task();
            context.progress(1.0, None, None);
            context.task_message("not yet");
            context.sleep(Duration::MAX).await;
            "never"
        })
        .tool(tool("fail"), |_: Arguments, context: Context| async move {
            context.begin_task();
            ToolResult::error("out of paper")
        })
        .tool(tool("break"), |_: Arguments, context: Context| async move {
            context.begin_task();
            let gone = HandlerError::protocol(ErrorKind::Internal, "the disk is gone");
            Err::<&str, _>(gone.with_data(&json!({"disk": "sda"})))
        })
        .tool(
            tool("confirm"),
            |_: Arguments, context: Context| async move {
                context.begin_task();
                let (first, second) = futures::join!(yes(&context, "One?"), yes(&context, "Two?"));
                let third = yes(&context, "Three?").await?;
                Ok::<_, HandlerError>(format!("{} {} {third}", first?, second?))
            },
        )
        .tool(tool("both"), |_: Arguments, context: Context| async move {
            let before = yes(&context, "Before?").await?;
            context.begin_task();
            let after = yes(&context, "After?").await?;
            Ok::<_, HandlerError>(format!("{before} {after}"))
        })
        .tool(
            Tool::new("only").task_support(TaskSupport::Required),
            |_: Arguments, context: Context| async move {
                context.begin_task();
                "only"
            },
        )
}

fn declared() -> Value {
    json!({"elicitation": {}, "extensions": {extension::TASKS: {}}})
}

/// Asks until the task is no longer in that status.
fn after(wire: &mut Wire, revision: Revision, id: &Value, status: &str) -> Value {
    let begun = Instant::now();
    loop {
        let task = wire.ask(revision, "tasks/get", json!({"taskId": id}));
        let task = task["result"].clone();
        assert!(task.is_object());
        if task["status"] != status {
            return task;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{task}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

/// R-TSX-01, R-TSX-02, R-TSX-05 to R-TSX-09, R-TSX-12 to R-TSX-14, R-TSX-20, R-TSX-22, R-TSK-21, R-TOL-11.
#[test]
fn the_extension_makes_tasks_of_calls_and_keeps_what_comes_of_them() {
    let mut wire = Wire::open(&tools().build().unwrap(), NEWEST, declared());
    let found = wire.ask(NEWEST, "server/discover", json!({}));
    let capabilities = &found["result"]["capabilities"];
    assert_eq!(capabilities["extensions"], json!({extension::TASKS: {}}));
    assert!(capabilities.get("tasks").is_none());
    let start = |wire: &mut Wire, name: &str| {
        let task = wire.ask(NEWEST, "tools/call", json!({"name": name}))["result"].clone();
        assert_eq!(task["resultType"], "task", "{task}");
        for absent in [
            "result",
            "error",
            "inputRequests",
            "requestState",
            "task",
            "ttl",
            "pollInterval",
        ] {
            assert!(task.get(absent).is_none(), "{task}");
        }
        assert_eq!(task["status"], "working");
        assert!(task["ttlMs"].as_u64() > Some(0) && task["pollIntervalMs"].as_u64() > Some(0));
        assert_eq!(
            task["createdAt"].as_str().unwrap().len(),
            "2026-07-28T12:00:00.000Z".len()
        );
        // R-TSX-18: 128 bits that nobody guesses.
        let (_, random) = task["taskId"].as_str().unwrap().split_once('-').unwrap();
        assert!(random.len() == 32 && random.bytes().all(|b| b.is_ascii_hexdigit()));
        // At once.
        let seen = wire.ask(NEWEST, "tasks/get", json!({"taskId": task["taskId"]}));
        assert_eq!(seen["result"]["resultType"], "complete");
        task["taskId"].clone()
    };
    let quick = start(&mut wire, "quick");
    let task = after(&mut wire, NEWEST, &quick, "working");
    assert_eq!(task["status"], "completed");
    assert_eq!(
        task["result"]["content"],
        json!([{"type": "text", "text": "quick"}])
    );
    assert_eq!(task["result"]["resultType"], "complete");
    assert!(task["result"].get("_meta").is_none(), "{task}");
    let fail = start(&mut wire, "fail");
    let task = after(&mut wire, NEWEST, &fail, "working");
    assert_eq!(
        (&task["status"], &task["result"]["isError"]),
        (&json!("completed"), &json!(true))
    );
    let broken = start(&mut wire, "break");
    let task = after(&mut wire, NEWEST, &broken, "working");
    assert_eq!(task["status"], "failed");
    assert_eq!(
        task["error"],
        json!({"code": -32603, "message": "the disk is gone", "data": {"disk": "sda"}})
    );
    assert!(task.get("result").is_none());
    // A call that is done at once is answered at once, even if the older form asks for a task.
    let params = json!({"name": "direct", "task": {"ttl": 1}});
    let direct = wire.ask(NEWEST, "tools/call", params)["result"].clone();
    assert_eq!(
        (&direct["resultType"], &direct["content"][0]["text"]),
        (&json!("complete"), &json!("direct"))
    );

    let wait = start(&mut wire, "wait");
    for _ in 0..2 {
        let cancelled = wire.ask(NEWEST, "tasks/cancel", json!({"taskId": wait}));
        assert_eq!(cancelled["result"]["resultType"], "complete");
        assert!(cancelled["result"].get("taskId").is_none());
        assert_eq!(
            after(&mut wire, NEWEST, &wait, "working")["status"],
            "cancelled"
        );
    }
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": "1-00", "inputResponses": {}});
        assert_eq!(code(&wire.ask(NEWEST, method, params)), -32602, "{method}");
    }
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(
            code(&wire.ask(NEWEST, method, json!({"taskId": quick}))),
            -32601,
            "{method}"
        );
    }
    // A client that does not declare it, or only the older form, gets no tasks.
    wire.capabilities = json!({"tasks": {"cancel": {}}});
    let plain = wire.ask(NEWEST, "tools/call", json!({"name": "quick"}));
    assert_eq!(plain["result"]["content"][0]["text"], "quick");
    let filter = json!({"notifications": {"taskIds": [quick]}});
    for (method, params) in [
        ("tasks/get", json!({"taskId": quick})),
        (
            "tasks/update",
            json!({"taskId": quick, "inputResponses": {}}),
        ),
        ("tasks/cancel", json!({"taskId": quick})),
        ("subscriptions/listen", filter),
        ("tools/call", json!({"name": "only"})),
    ] {
        let refused = wire.ask(NEWEST, method, params);
        assert_eq!(code(&refused), -32021, "R-TSX-04, R-ERR-16: {refused}");
        let required = &refused["error"]["data"]["requiredCapabilities"];
        assert_eq!(*required, json!({"extensions": {extension::TASKS: {}}}));
    }
}

/// R-TSX-09 to R-TSX-11, R-TSX-21, R-STL-02.
#[test]
fn a_task_of_the_extension_asks_through_itself() {
    let server = tools().build().unwrap();
    let mut wire = Wire::open(&server, NEWEST, declared());
    let begun = wire.ask(NEWEST, "tools/call", json!({"name": "confirm"}));
    let id = begun["result"]["taskId"].clone();
    let begun = Instant::now();
    // The second question may come after a look.
    let task = loop {
        let task = after(&mut wire, NEWEST, &id, "working");
        assert_eq!(task["status"], "input_required");
        if task["inputRequests"].as_object().unwrap().len() == 2 {
            break task;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{task}");
    };
    let asked = task["inputRequests"].as_object().unwrap();
    let keys: Vec<_> = asked.keys().cloned().collect();
    assert_eq!(asked[&keys[0]]["method"], "elicitation/create");
    assert_eq!(asked[&keys[1]]["params"]["message"], "Two?");
    let answer = |yes: bool| json!({"action": "accept", "content": {"yes": yes}});
    let update = |wire: &mut Wire, responses: Value| {
        let params = json!({"taskId": id, "inputResponses": responses});
        wire.ask(NEWEST, "tasks/update", params)
    };
    for wrong in [json!([]), json!({&keys[0]: 7}), Value::Null] {
        assert_eq!(code(&update(&mut wire, wrong)), -32602);
    }
    let taken = update(
        &mut wire,
        json!({&keys[1]: answer(true), "nobody": answer(false)}),
    );
    assert_eq!(taken["result"]["resultType"], "complete");
    let task = after(&mut wire, NEWEST, &id, "working");
    let left: Vec<_> = task["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(
        (&task["status"], left),
        (&json!("input_required"), vec![&keys[0]])
    );
    // From another connection, and with an answer that was given before.
    let mut other = Wire::open(&server, NEWEST, declared());
    update(
        &mut other,
        json!({&keys[0]: answer(false), &keys[1]: answer(false)}),
    );
    let begun = Instant::now();
    let third = loop {
        let task = after(&mut wire, NEWEST, &id, "working");
        let key = task["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap()
            .clone();
        if task["inputRequests"][&key]["params"]["message"] == "Three?" {
            break key;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{task}");
    };
    assert!(!keys.contains(&third), "no key is given twice");
    update(&mut wire, json!({third: {"action": "decline"}}));
    let task = after(&mut wire, NEWEST, &id, "working");
    assert_eq!(task["result"]["content"][0]["text"], "false true false");
}

/// R-TSK-01, R-TSK-04, R-TSK-06 to R-TSK-12, R-TSK-14, R-TSK-15, R-TSK-17, R-TSK-20, R-TSK-21, R-MET-12, R-TSX-23.
#[test]
fn the_core_form_makes_tasks_of_calls_that_ask_for_it() {
    let server = tools().build().unwrap();
    let mut wire = Wire::open(&server, CORE, declared());
    let declared = server.config().capabilities(CORE);
    let declared: Value = serde_json::from_str(declared).unwrap();
    let requests = json!({"tools": {"call": {}}});
    assert_eq!(
        declared["tasks"],
        json!({"list": {}, "cancel": {}, "requests": requests})
    );
    assert!(declared.get("extensions").is_none());
    let tools = wire.ask(CORE, "tools/list", json!({}))["result"]["tools"].clone();
    assert!(tools[0].get("execution").is_none());
    assert_eq!(tools[1]["execution"], json!({"taskSupport": "optional"}));
    let start = |wire: &mut Wire, name: &str| {
        let params = json!({"name": name, "task": {"ttl": 60_000}});
        let begun = wire.ask(CORE, "tools/call", params)["result"].clone();
        assert_eq!(begun.as_object().unwrap().len(), 1, "{begun}");
        assert_eq!(
            (&begun["task"]["status"], &begun["task"]["ttl"]),
            (&json!("working"), &json!(60_000))
        );
        begun["task"]["taskId"].clone()
    };
    let payload = |wire: &mut Wire, id: &Value| {
        // Another id in `_meta` makes no difference.
        let meta = json!({"io.modelcontextprotocol/related-task": {"taskId": "9-9"}});
        wire.ask(CORE, "tasks/result", json!({"taskId": id, "_meta": meta}))
    };
    for (name, status) in [
        ("quick", "completed"),
        ("direct", "completed"),
        ("fail", "failed"),
        ("break", "failed"),
    ] {
        let id = start(&mut wire, name);
        let result = payload(&mut wire, &id);
        let task = wire.ask(CORE, "tasks/get", json!({"taskId": id}))["result"].clone();
        assert_eq!(task["status"], status);
        assert!(task.get("_meta").is_none() && task.get("result").is_none());
        assert!(task["lastUpdatedAt"].as_str() >= task["createdAt"].as_str());
        assert_eq!(task.get("statusMessage").is_some(), status == "failed");
        if name == "break" {
            assert_eq!(code(&result), -32603);
            assert_eq!(result["error"]["data"], json!({"disk": "sda"}));
            continue;
        }
        let related = json!({"io.modelcontextprotocol/related-task": {"taskId": id}});
        assert_eq!(result["result"]["_meta"], related);
        assert!(result["result"]["content"].is_array());
        // The same again, and it is final.
        assert_eq!(payload(&mut wire, &id)["result"], result["result"]);
        assert_eq!(
            code(&wire.ask(CORE, "tasks/cancel", json!({"taskId": id}))),
            -32602
        );
    }
    let wait = start(&mut wire, "wait");
    let begun = Instant::now();
    while wire.ask(CORE, "tasks/get", json!({"taskId": wait}))["result"]["statusMessage"]
        != "not yet"
    {
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    let asked = format!(
        r#"{{"jsonrpc":"2.0","id":"end","method":"tasks/result","params":{{"taskId":{wait}}}}}"#
    );
    assert!(
        wire.say(&asked).iter().all(|said| said["id"] != "end"),
        "it waits for the end"
    );
    let cancelled = wire.ask(CORE, "tasks/cancel", json!({"taskId": wait}));
    assert_eq!(cancelled["result"]["status"], "cancelled");
    assert_eq!(
        after(&mut wire, CORE, &wait, "working")["status"],
        "cancelled"
    );

    let list = wire.ask(CORE, "tasks/list", json!({}))["result"]["tasks"].clone();
    assert_eq!(list.as_array().unwrap().len(), 5);
    assert_eq!(list[4]["taskId"], wait);
    assert_eq!(
        code(&wire.ask(CORE, "tasks/list", json!({"cursor": "x"}))),
        -32602
    );
    let mut other = Wire::open(&server, CORE, json!({}));
    assert_eq!(
        code(&other.ask(CORE, "tasks/get", json!({"taskId": wait}))),
        -32602,
        "another's"
    );
    assert_eq!(
        other.ask(CORE, "tasks/list", json!({}))["result"]["tasks"],
        json!([])
    );
    assert_eq!(
        code(&wire.ask(CORE, "tasks/update", json!({"taskId": wait}))),
        -32601
    );

    // Without asking it is a call, if it may be one.
    let plain = wire.ask(CORE, "tools/call", json!({"name": "quick"}));
    assert_eq!(plain["result"]["content"][0]["text"], "quick");
    assert_eq!(
        code(&wire.ask(CORE, "tools/call", json!({"name": "only"}))),
        -32601
    );
    let never = json!({"name": "tool-0", "task": {}});
    assert_eq!(code(&wire.ask(CORE, "tools/call", never)), -32601);
}

/// R-TSK-02: where nothing is declared nothing is asked, and where it does not exist nobody looks.
#[test]
fn a_server_without_tasks_takes_no_notice_of_them() {
    for (server, revisions) in [
        (server(1), vec![CORE, NEWEST]),
        (tools(), vec![Revision::V2024_11_05, Revision::V2025_06_18]),
    ] {
        let server = server.build().unwrap();
        for revision in revisions {
            let mut wire = Wire::open(&server, revision, declared());
            let call = json!({"name": "tool-0", "task": {}});
            let done = wire.ask(revision, "tools/call", call);
            assert_eq!(done["result"]["content"][0]["text"], "done");
            for method in [
                "tasks/get",
                "tasks/cancel",
                "tasks/list",
                "tasks/result",
                "tasks/update",
            ] {
                let answer = wire.ask(revision, method, json!({"taskId": "1-00"}));
                assert_eq!(code(&answer), -32601, "{revision} {method}");
            }
        }
    }
}

/// R-TSX-19, R-TSK-19: who gives up the call does not give up the task.
#[test]
fn a_cancelled_notification_cancels_no_task() {
    for revision in [CORE, NEWEST] {
        let mut wire = Wire::open(&tools().build().unwrap(), revision, declared());
        let begun = wire.ask(revision, "tools/call", json!({"name": "wait", "task": {}}));
        let result = &begun["result"];
        let id = result
            .get("taskId")
            .unwrap_or(&result["task"]["taskId"])
            .clone();
        let call = &begun["id"];
        wire.say(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{call}}}}}"#
        ));
        let task = wire.ask(revision, "tasks/get", json!({"taskId": id}));
        assert_eq!(task["result"]["status"], "working");
    }
}

/// R-TSK-17: what is kept is bounded by number, bytes and age.
#[test]
fn what_is_kept_of_tasks_has_bounds() {
    let limited = |tasks, bytes, ttl| {
        tools()
            .task_limits(TaskLimits {
                tasks,
                bytes,
                ttl,
                ..TaskLimits::default()
            })
            .build()
            .unwrap()
    };
    let hour = Duration::from_secs(3600);
    let start = |wire: &mut Wire| {
        wire.ask(NEWEST, "tools/call", json!({"name": "quick"}))["result"].clone()
    };

    let mut wire = Wire::open(&limited(2, 1 << 20, hour), NEWEST, declared());
    assert_eq!(start(&mut wire)["resultType"], "task");
    assert_eq!(start(&mut wire)["resultType"], "task");
    assert_eq!(
        start(&mut wire)["content"][0]["text"],
        "quick",
        "a call like any other"
    );
    let mut core = Wire::open(&limited(0, 1 << 20, hour), CORE, json!({}));
    let refused = core.ask(CORE, "tools/call", json!({"name": "quick", "task": {}}));
    assert_eq!(code(&refused), mcpbolt::mcp::code::OVERLOADED);

    let mut wire = Wire::open(&limited(9, 100, hour), NEWEST, declared());
    let first = start(&mut wire)["taskId"].clone();
    assert_eq!(
        after(&mut wire, NEWEST, &first, "working")["status"],
        "completed"
    );
    let second = start(&mut wire)["taskId"].clone();
    let task = after(&mut wire, NEWEST, &second, "working");
    assert_eq!(task["status"], "failed");

    let mut wire = Wire::open(
        &limited(1, 100, Duration::from_millis(50)),
        NEWEST,
        declared(),
    );
    let begun = start(&mut wire);
    assert_eq!(begun["ttlMs"], 50);
    std::thread::sleep(Duration::from_millis(60));
    let gone = wire.ask(NEWEST, "tasks/get", json!({"taskId": begun["taskId"]}));
    assert_eq!(code(&gone), -32602);
    assert_eq!(
        start(&mut wire)["resultType"],
        "task",
        "there is room again"
    );
}

/// R-TSX-17, R-TSK-16, R-TSK-18: who wants to hears how far a task is.
#[test]
fn the_status_of_tasks_is_told() {
    let mut wire = Wire::open(&tools().build().unwrap(), CORE, json!({}));
    let token = json!({"name": "wait", "task": {}, "_meta": {"progressToken": "p"}});
    let line = json!({"jsonrpc": "2.0", "id": "w", "method": "tools/call", "params": token});
    let mut said = wire.say(&line.to_string());
    let begun = Instant::now();
    while said.len() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(30), "{said:?}");
        said.extend(wire.hear());
    }
    let id = said[0]["result"]["task"]["taskId"].clone();
    let related = json!({"io.modelcontextprotocol/related-task": {"taskId": id}});
    assert_eq!(said[1]["method"], "notifications/progress");
    assert_eq!(
        said[1]["params"],
        json!({"progressToken": "p", "progress": 1.0, "_meta": related})
    );
    let cancel =
        json!({"jsonrpc": "2.0", "id": "c", "method": "tasks/cancel", "params": {"taskId": id}});
    let mut said = wire.say(&cancel.to_string());
    // Notifications of its earlier states may come in between.
    let told = |said: &Value| {
        said["method"] == "notifications/tasks/status" && said["params"]["status"] == "cancelled"
    };
    while !said.iter().any(told) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{said:?}");
        said.extend(wire.hear());
    }
    let told = said.iter().find(|said| told(said)).unwrap();
    assert_eq!(told["params"]["taskId"], id);

    let mut wire = Wire::open(&tools().build().unwrap(), NEWEST, declared());
    let begun = wire.ask(NEWEST, "tools/call", json!({"name": "wait"}));
    let id = begun["result"]["taskId"].clone();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": NEWEST.name(),
        "io.modelcontextprotocol/clientCapabilities": declared(),
    });
    let filter = json!({"taskIds": [id, "2-00"]});
    let params = json!({"notifications": filter, "_meta": meta});
    let listen =
        json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params});
    let acknowledged = wire.say(&listen.to_string());
    assert_eq!(
        acknowledged[0]["params"]["notifications"],
        json!({"taskIds": [id]})
    );
    let cancelled = format!(
        r#"{{"jsonrpc":"2.0","id":"c","method":"tasks/cancel","params":{{"taskId":{id},"_meta":{meta}}}}}"#
    );
    let said = wire.say(&cancelled);
    let told = said
        .iter()
        .find(|said| said["method"] == "notifications/tasks")
        .unwrap();
    assert_eq!(
        (&told["params"]["taskId"], &told["params"]["status"]),
        (&id, &json!("cancelled"))
    );
    let subscription = &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(subscription, "l");
}

/// R-TSX-03, R-TSX-16, R-TSK-03, R-TSK-13, R-TSK-16: between programs, a call is a call, and a task whoever wants one.
#[test]
fn clients_follow_tasks_by_themselves() {
    let limits = TaskLimits {
        poll_interval: Duration::from_millis(2),
        ..TaskLimits::default()
    };
    let server = tools().task_limits(limits).build().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let build = |builder: ClientBuilder| {
        let asked = asked.clone();
        builder.tasks().on_form(move |form, _| {
            asked.fetch_add(1, Ordering::Relaxed);
            let Elicitation::Form { message, .. } = form else {
                panic!("no form")
            };
            let content = json!({"yes": message != "Two?"});
            async move { Ok(Elicited::Accepted(content.as_object().unwrap().clone())) }
        })
    };
    let none = json!({});
    with_clients(&server, [CORE, NEWEST], build, |revision, client| {
        asked.store(0, Ordering::Relaxed);
        assert_eq!(block_on(client.list_tools()).unwrap().len(), 9);
        assert_eq!(call(client, "quick", &none), Ok("quick".into()));
        assert_eq!(call(client, "direct", &none), Ok("direct".into()));
        assert_eq!(call(client, "only", &none), Ok("only".into()));
        assert_eq!(call(client, "fail", &none), Err("out of paper".into()));
        assert!(
            call(client, "break", &none)
                .unwrap_err()
                .contains("the disk is gone")
        );
        assert_eq!(call(client, "both", &none), Ok("true true".into()));
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        assert_eq!(call(client, "confirm", &none), Ok("true false true".into()));
        assert_eq!(asked.load(Ordering::Relaxed), 5, "nobody is asked twice");

        let start = |name: &str| match block_on(
            client
                .call_tool(name, &none)
                .ttl(Duration::from_secs(60))
                .start(),
        ) {
            Ok(Started::Task(task)) => task,
            other => panic!("{other:?}"),
        };
        let task = start("confirm");
        let result = block_on(client.task(task.id()).result()).unwrap();
        assert_eq!(result.text(), "true false true");
        let info = block_on(task.info()).unwrap();
        assert_eq!((info.status, &*info.id), (TaskStatus::Completed, task.id()));
        if revision == CORE {
            assert_eq!(info.ttl, Some(Duration::from_secs(60)));
            assert_eq!(block_on(client.list_tasks()).unwrap().last(), Some(&info));
        } else {
            let error = block_on(client.list_tasks()).unwrap_err();
            assert_eq!(error, RequestError::Unsupported("tasks/list"));
        }
        let task = start("wait");
        block_on(task.cancel()).unwrap();
        let error = block_on(task.result()).unwrap_err();
        assert!(matches!(error, RequestError::Cancelled(_)), "{error}");
        let broken = block_on(start("break").result()).unwrap_err();
        assert_eq!(broken.code(), Some(-32603));
        let direct = block_on(client.call_tool("tool-0", &none).start());
        match revision {
            CORE => assert_eq!(
                direct.unwrap_err(),
                RequestError::Unsupported("tasks of this tool")
            ),
            _ => assert!(matches!(direct, Ok(Started::Done(_)))),
        }
    });
}

/// R-TSX-12: who gives up a call gives up the task that it has become.
#[test]
fn a_task_ends_with_the_call_that_nobody_waits_for() {
    struct Here(Arc<AtomicUsize>);
    impl Drop for Here {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let running = Arc::new(AtomicUsize::new(0));
    let limits = TaskLimits {
        poll_interval: Duration::from_millis(2),
        ..TaskLimits::default()
    };
    let begun = running.clone();
    let wait = Tool::new("wait").task_support(TaskSupport::Optional);
    let server = server(0)
        .task_limits(limits)
        .tool(wait, move |_: Arguments, context: Context| {
            begun.fetch_add(1, Ordering::SeqCst);
            let here = Here(begun.clone());
            async move {
                context.begin_task();
                context.sleep(Duration::MAX).await;
                drop(here);
                "never"
            }
        })
        .build()
        .unwrap();
    let client = block_on(Client::builder("me", "1").tasks().connect(&server)).unwrap();
    let mut call = client.call_tool("wait", &json!({})).into_future();
    let mut looks = 0;
    block_on(std::future::poll_fn(|cx| {
        assert!(call.as_mut().poll(cx).is_pending());
        looks += 1;
        // By then it asks how far the task is.
        match looks {
            6 => std::task::Poll::Ready(()),
            _ => std::task::Poll::Pending,
        }
    }));
    assert_eq!(running.load(Ordering::SeqCst), 1);
    drop(call);
    let given_up = Instant::now();
    while running.load(Ordering::SeqCst) > 0 {
        assert!(given_up.elapsed() < Duration::from_secs(20), "it goes on");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// R-TSX-03, R-TSX-14: a client that did not declare the extension gets no task and asks for none.
#[test]
fn where_there_are_no_tasks_the_client_says_so() {
    let server: Server = server(1).build().unwrap();
    with_clients(
        &server,
        Revision::ALL,
        |builder| builder,
        |revision, client| {
            let started = block_on(client.call_tool("tool-0", &json!({})).start());
            match revision {
                CORE => assert!(matches!(started, Err(RequestError::Unsupported(_)))),
                _ => assert!(matches!(started, Ok(Started::Done(_)))),
            }
            if !matches!(revision, CORE | NEWEST) {
                let error = block_on(client.task("1-00").info()).unwrap_err();
                assert!(matches!(error, RequestError::Unsupported(_)), "{error}");
            }
        },
    );
    let client = block_on(Client::builder("x", "1").connect(&tools().build().unwrap())).unwrap();
    assert_eq!(call(&client, "quick", &json!({})), Ok("quick".into()));
    let refused = block_on(client.call_tool("only", &json!({})).start()).unwrap_err();
    assert_eq!(refused.code(), Some(-32021));
}
