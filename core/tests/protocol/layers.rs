//! Layers around handlers, the program's own and those of `tower`; and the client for tests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpbolt::client::{Client, block_on};
use mcpbolt::mcp::{ErrorKind, LogLevel, Revision, Revisions};
use mcpbolt::model::CompletionTarget;
use mcpbolt::server::{
    Arguments, Builder, Completions, Content, Context, Extension, FromCall, HandlerCall,
    HandlerError, Next, Prompt, PromptResult, Reply, Resource, ResourceContents, Server, Tool,
    ToolResult,
};
use mcpbolt::testing::TestClient;
use serde_json::{Value, json};

/// A server whose tools return their arguments, one on the spawner and one inline.
fn echo() -> Builder {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let said = |Arguments(json): Arguments| json.to_string();
    Server::builder("echo", "1")
        .tool(
            Tool::new("later").input_schema(schema),
            move |given, _| async move { said(given) },
        )
        .inline_tool(Tool::new("now").input_schema(schema), said)
}

/// Runs `check` with a client of the server in each revision.
fn with_test_client(server: Builder, check: impl AsyncFn(&TestClient)) {
    let server = server.build().unwrap();
    for revision in Revision::ALL {
        let builder = Client::builder("test", "1").revisions(Revisions::only(revision));
        block_on(async {
            check(&TestClient::with(builder, &server).await.unwrap()).await;
        });
    }
}

#[test]
fn layers_run_in_the_order_of_registration_within_sanitising_and_around_approval() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let layer = |name: &'static str| {
        let order = order.clone();
        move |call: HandlerCall, next: Next| {
            let order = order.clone();
            async move {
                order
                    .lock()
                    .unwrap()
                    .push(format!("{name} {}", call.name()));
                let result = next.run(call).await;
                order.lock().unwrap().push(format!("{name} ends"));
                result
            }
        }
    };
    let (approves, cleans) = (order.clone(), order.clone());
    let server = echo()
        .approval(["*"], move |_, _| {
            approves.lock().unwrap().push("approval".to_owned());
            async { true }
        })
        .layer(layer("outer"))
        .layer_for(["now"], layer("only now"))
        .layer(layer("inner"))
        .sanitise(["*"], move |call, _| {
            cleans.lock().unwrap().push("sanitiser".to_owned());
            async { Ok(call.arguments) }
        });
    with_test_client(server, async |test| {
        test.call("later", json!({"n": 1}))
            .await
            .expect_text(r#"{"n":1}"#);
        let later = [
            "sanitiser",
            "outer later",
            "inner later",
            "approval",
            "inner ends",
            "outer ends",
        ];
        assert_eq!(std::mem::take(&mut *order.lock().unwrap()), later);
        test.call("now", json!({"n": 1}))
            .await
            .expect_text(r#"{"n":1}"#);
        let now = [
            "sanitiser",
            "outer now",
            "only now now",
            "inner now",
            "approval",
            "inner ends",
            "only now ends",
            "outer ends",
        ];
        assert_eq!(std::mem::take(&mut *order.lock().unwrap()), now);
    });
}

#[test]
fn a_layer_changes_arguments_and_results() {
    let server = echo().layer(|mut call: HandlerCall, next: Next| async move {
        assert_eq!(
            (&*call.method(), call.context().principal()),
            ("tools/call", None)
        );
        let mut arguments: Value = call.parse_arguments()?;
        arguments["n"] = match arguments["n"].as_i64() {
            Some(0) => "no number".into(),
            n => json!(n.unwrap_or_default() + 1),
        };
        if arguments["n"] == 2 {
            arguments = json!([]);
        }
        call.set_arguments(&arguments)?;
        assert_eq!(call.arguments(), arguments.to_string());
        let mut reply = next.run(call).await?;
        if let Reply::Tool(result) = &mut reply {
            result.content.push(Content::text("changed"));
        }
        Ok(reply)
    });
    with_test_client(server, async |test| {
        for tool in ["later", "now"] {
            test.call(tool, json!({"n": 5}))
                .await
                .expect_text("{\"n\":6}\nchanged");
            test.call(tool, json!({"n": 0})).await.expect_error("n");
            test.call(tool, json!({"n": 1}))
                .await
                .expect_error("not a JSON object");
        }
    });
}

#[test]
fn a_layer_answers_in_place_of_the_handler_or_runs_it_twice() {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = runs.clone();
    let server = Server::builder("s", "1")
        .tool(Tool::new("count"), move |_: Arguments, _| {
            let run = count.fetch_add(1, Ordering::Relaxed);
            async move {
                match run % 2 {
                    0 => Err("the first try fails"),
                    _ => Ok("counted"),
                }
            }
        })
        .layer(|call: HandlerCall, next: Next| async move {
            if call.arguments() == "{}" {
                return Ok(ToolResult::text("from a cache").into());
            }
            match next.run(call.clone()).await? {
                reply if reply.is_tool_error() => next.run(call).await,
                reply => Ok(reply),
            }
        });
    with_test_client(server, async |test| {
        test.call("count", json!({}))
            .await
            .expect_text("from a cache");
        assert_eq!(runs.load(Ordering::Relaxed), 0);
        test.call("count", json!({"n": 1}))
            .await
            .expect_text("counted");
        assert_eq!(runs.swap(0, Ordering::Relaxed), 2);
    });
}

#[test]
fn a_layer_fails_for_the_model_or_for_the_protocol_and_a_panic_stays_untold() {
    let server = echo().layer(|call: HandlerCall, next: Next| async move {
        match call.parse_arguments::<Value>()?["n"].as_i64() {
            Some(1) => Err(HandlerError::new("closed today")),
            Some(2) => Err(HandlerError::protocol(
                ErrorKind::Internal,
                "the store is gone",
            )),
            Some(3) => panic!("a secret"),
            _ => next.run(call).await,
        }
    });
    with_test_client(server, async |test| {
        for tool in ["later", "now"] {
            test.call(tool, json!({"n": 0}))
                .await
                .expect_text(r#"{"n":0}"#);
            test.call(tool, json!({"n": 1}))
                .await
                .expect_error("closed today");
            test.call(tool, json!({"n": 2}))
                .await
                .expect_protocol_error(-32603);
            test.call(tool, json!({"n": 3}))
                .await
                .expect_error("the tool failed unexpectedly");
        }
    });
}

/// A server with a tool, a prompt, a resource, a template and completion, whose handlers give back what they got.
fn all_kinds() -> Builder {
    let topic = Prompt::new("ask").argument("topic", "What about", true);
    echo()
        .prompt(topic, |given, _| async move {
            Ok(PromptResult::user(given["topic"].clone()))
        })
        .resource(Resource::new("mem:one", "one"), |uri, _| async move {
            Ok(ResourceContents::text(uri, "one"))
        })
        .resource_template(
            Resource::new("mem:all/{n}", "all"),
            |uri, named, _| async move { Ok(ResourceContents::text(uri, named["n"].clone())) },
        )
        .completion(|request, _| async move { Ok(vec![request.value]) })
}

#[test]
fn a_layer_sees_and_changes_the_calls_and_replies_of_every_kind() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = seen.clone();
    let server = all_kinds().layer(move |mut call: HandlerCall, next: Next| {
        let sees = sees.clone();
        async move {
            let call_seen = format!("{} {} {}", call.method(), call.name(), call.arguments());
            sees.lock().unwrap().push(call_seen);
            if call.name() == "ask" && call.method() == "prompts/get" {
                let wrong = call.set_arguments(&json!({"topic": 7})).unwrap_err();
                assert_eq!(wrong.to_string(), "prompt arguments are strings");
                let wrong = call.set_arguments(&json!({"Topic": "x"})).unwrap_err();
                assert_eq!(wrong.to_string(), "there is no argument \"Topic\"");
                call.set_arguments(&json!({"topic": "rain"}))?;
            } else if !call.is_tool() {
                assert!(call.set_arguments(&json!({})).is_err());
            }
            let mut reply = next.run(call).await?;
            match &mut reply {
                Reply::Tool(result) => result.content.push(Content::text("+")),
                Reply::Prompt(prompt) => prompt.description = Some("changed".to_owned()),
                Reply::Contents(contents) => contents[0].mime_type = Some("text/plain".to_owned()),
                Reply::Completions(completions) => completions.values.push("more".to_owned()),
                Reply::Object(_) => unreachable!(),
            }
            Ok(reply)
        }
    });
    with_test_client(server, async |test| {
        let client = test.client();
        test.call("later", json!({"n": 1}))
            .await
            .expect_text("{\"n\":1}\n+");
        let prompt = client.get_prompt("ask", &[("topic", "sun")]).await.unwrap();
        assert_eq!(prompt.description.as_deref(), Some("changed"));
        assert_eq!(prompt.messages[0].content.as_text(), Some("rain"));
        for (uri, text) in [("mem:one", "one"), ("mem:all/7", "7")] {
            let contents = client.read_resource(uri).await.unwrap();
            assert_eq!(contents[0].as_text(), Some(text));
            assert_eq!(contents[0].mime_type.as_deref(), Some("text/plain"));
        }
        let target = CompletionTarget::prompt("ask");
        let values = client.complete(&target, ("topic", "r"), &[]).await.unwrap();
        assert_eq!(values.values, ["r", "more"]);
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        let seen: Vec<_> = seen
            .iter()
            .map(|seen| seen.splitn(3, ' ').collect::<Vec<_>>())
            .collect();
        assert_eq!(seen[0], ["tools/call", "later", "{\"n\":1}"]);
        assert_eq!(seen[1], ["prompts/get", "ask", "{\"topic\":\"sun\"}"]);
        assert_eq!(seen[2][..2], ["resources/read", "mem:one"]);
        assert_eq!(seen[3][..2], ["resources/read", "mem:all/7"]);
        assert_eq!(seen[4][..2], ["completion/complete", "ask"]);
        assert!(
            seen[2][2].starts_with("{\"uri\":\"mem:one\""),
            "{}",
            seen[2][2]
        );
        assert_eq!(seen.len(), 5);
    });
}

#[test]
fn a_layer_replies_to_every_kind_itself_and_in_its_kind_only() {
    let server = all_kinds().layer(|call: HandlerCall, next: Next| async move {
        match &*call.name() {
            "mem:one" => Ok(vec![ResourceContents::text("mem:one", "from a cache")].into()),
            "mem:all/1" => Err(HandlerError::not_found("it is gone")),
            "mem:all/2" => Ok(ToolResult::text("no contents").into()),
            "ask" if call.method() == "prompts/get" => Ok(PromptResult::user("else").into()),
            "ask" => Ok(Completions::from(vec!["else".to_owned()]).into()),
            "later" => Ok(PromptResult::user("no result").into()),
            _ => next.run(call).await,
        }
    });
    with_test_client(server, async |test| {
        let client = test.client();
        let contents = client.read_resource("mem:one").await.unwrap();
        assert_eq!(contents[0].as_text(), Some("from a cache"));
        let gone = client.read_resource("mem:all/1").await.unwrap_err();
        assert!(gone.is_resource_not_found(), "{gone}");
        let wrong = client.read_resource("mem:all/2").await.unwrap_err();
        assert_eq!(wrong.code(), Some(-32603), "{wrong}");
        let prompt = client.get_prompt("ask", &[("topic", "sun")]).await.unwrap();
        assert_eq!(prompt.messages[0].content.as_text(), Some("else"));
        let target = CompletionTarget::prompt("ask");
        let values = client.complete(&target, ("topic", "r"), &[]).await.unwrap();
        assert_eq!(values.values, ["else"]);
        test.call("later", json!({"n": 1}))
            .await
            .expect_protocol_error(-32603);
        test.call("now", json!({"n": 1}))
            .await
            .expect_text("{\"n\":1}");
    });
}

/// The tenant that a call is for.
#[derive(Clone)]
struct Tenant(&'static str);

#[test]
fn a_handler_takes_what_a_layer_inserted_and_a_missing_value_is_an_error_that_names_it() {
    let tenant = |context: &Context| Extension::<Tenant>::from_call(context);
    let server = Server::builder("s", "1")
        .tool(
            Tool::new("who"),
            move |_: Arguments, context: Context| async move {
                tenant(&context).map(|Extension(Tenant(name))| name)
            },
        )
        .tool(
            Tool::new("maybe"),
            |_: Arguments, context: Context| async move {
                let tenant = Option::<Extension<Tenant>>::from_call(&context)?;
                Ok::<_, HandlerError>(tenant.map_or("nobody", |Extension(Tenant(name))| name))
            },
        )
        .layer(|mut call: HandlerCall, next: Next| async move {
            if call.arguments() != "{}" {
                call.extensions_mut().insert(Tenant("outer"));
                call.extensions_mut().insert(7u8);
            }
            next.run(call).await
        })
        .layer(|mut call: HandlerCall, next: Next| async move {
            if call.parse_arguments::<Value>()?["inner"] == true {
                assert_eq!(call.context().extensions().get(), Some(&7u8));
                call.extensions_mut().insert(Tenant("inner"));
                // Arguments that change later keep the values.
                call.set_arguments(&json!({}))?;
            }
            next.run(call).await
        });
    with_test_client(server, async |test| {
        for tool in ["who", "maybe"] {
            test.call(tool, json!({"a": 1})).await.expect_text("outer");
            test.call(tool, json!({"inner": true}))
                .await
                .expect_text("inner");
        }
        test.call("maybe", json!({})).await.expect_text("nobody");
        let missing = test.call("who", json!({})).await;
        missing.expect_protocol_error(-32603);
        let missing = missing.result.unwrap_err().to_string();
        assert!(
            missing.contains("Tenant`, but neither a layer nor HTTP middleware"),
            "{missing}"
        );
    });
}

/// Tells when it is dropped.
struct Dropped(std::sync::mpsc::Sender<&'static str>, &'static str);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

#[test]
fn a_cancelled_call_drops_its_layers_and_its_handler() {
    let (tell, told) = std::sync::mpsc::channel();
    let (handler, layer) = (tell.clone(), tell);
    let server = Server::builder("s", "1")
        .tool(Tool::new("wait"), move |_: Arguments, context: Context| {
            let dropped = Dropped(handler.clone(), "handler");
            async move {
                context.progress(1.0, None, None);
                context.sleep(Duration::MAX).await;
                drop(dropped);
            }
        })
        .layer(move |call: HandlerCall, next: Next| {
            let dropped = Dropped(layer.clone(), "layer");
            async move {
                let result = next.run(call).await;
                drop(dropped);
                result
            }
        });
    with_test_client(server, async |test| {
        let (began, begun) = std::sync::mpsc::channel();
        let call = test.client().call_tool("wait", &json!({}));
        let call = call
            .on_progress(move |_| began.send(()).unwrap())
            .send()
            .unwrap();
        begun.recv_timeout(Duration::from_secs(30)).unwrap();
        call.cancel(None);
        let mut dropped = [(); 2].map(|()| told.recv_timeout(Duration::from_secs(30)).unwrap());
        dropped.sort_unstable();
        assert_eq!(dropped, ["handler", "layer"]);
    });
}

#[test]
fn the_test_client_hears_progress_logs_and_changes() {
    let server = Server::builder("s", "1").list_changes().tool(
        Tool::new("work"),
        |_: Arguments, context: Context| async move {
            context.progress(1.0, Some(2.0), Some("half"));
            context.log(LogLevel::Debug, None, &json!("working"));
            mcpbolt::server::Json(json!({"done": true}))
        },
    );
    let server = server.build().unwrap();
    for revision in Revision::ALL {
        let builder = Client::builder("test", "1").revisions(Revisions::only(revision));
        block_on(async {
            let test = TestClient::with(builder, &server).await.unwrap();
            let called = test.call("work", json!({})).await;
            match revision.rules().structured_content {
                true => called.expect_structured(&json!({"done": true})),
                false => called.expect_text(r#"{"done":true}"#),
            };
            let progress = test.progress();
            assert_eq!(
                (progress.len(), progress[0].total),
                (1, Some(2.0)),
                "{revision:?}"
            );
            assert_eq!(test.logs(), ["working"], "{revision:?}");
            let another =
                |offer: Builder| offer.tool(Tool::new("more"), |_: Arguments, _| async {});
            server.change(another).unwrap();
            test.notification("notifications/tools/list_changed").await;
            assert_eq!(test.notifications(), []);
            server.change(|offer| offer.remove_tool("more")).unwrap();
        });
    }
}

#[test]
fn a_failed_assertion_shows_what_came_instead() {
    let server = echo().build().unwrap();
    let called = block_on(async {
        let test = TestClient::new(&server).await.unwrap();
        test.call("now", json!({"n": 1})).await
    });
    let panic = std::panic::catch_unwind(|| called.expect_error("n").to_string()).unwrap_err();
    assert_eq!(
        panic.downcast_ref::<String>().unwrap(),
        r#"the call of now with {"n":1}: expected a tool error with "n", but got the text "{\"n\":1}""#
    );
}

#[cfg(feature = "tower")]
mod of_tower {
    use super::*;
    use std::time::Instant;
    use tower::ServiceBuilder;
    use tower::limit::{ConcurrencyLimitLayer, RateLimitLayer};
    use tower::timeout::TimeoutLayer;

    /// A tool that counts how many of its calls run at once, for at least 20 ms.
    fn busy(most: &Arc<AtomicUsize>) -> Builder {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), most.clone());
        Server::builder("s", "1").tool(Tool::new("work"), move |_: Arguments, context: Context| {
            let (now, most) = (now.clone(), most.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                context.sleep(Duration::from_millis(20)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                "worked"
            }
        })
    }

    /// Makes 8 calls at once on two connections.
    async fn calls(server: &Server) {
        let (one, other) = (
            TestClient::new(server).await.unwrap(),
            TestClient::new(server).await.unwrap(),
        );
        let calls = (0..8).map(|n| match n % 2 {
            0 => one.call("work", json!({})),
            _ => other.call("work", json!({})),
        });
        for called in futures::future::join_all(calls).await {
            called.expect_text("worked");
        }
    }

    #[tokio::test]
    async fn a_timeout_ends_a_call_with_a_tool_error() {
        let server = Server::builder("s", "1")
            .tool(
                Tool::new("wait"),
                |_: Arguments, context: Context| async move {
                    context.sleep(Duration::MAX).await;
                },
            )
            .inline_tool(Tool::new("now"), |_: Arguments| "now")
            .tower_layer(TimeoutLayer::new(Duration::from_millis(50)))
            .build()
            .unwrap();
        let test = TestClient::new(&server).await.unwrap();
        test.call("wait", json!({}))
            .await
            .expect_error("request timed out");
        test.call("now", json!({})).await.expect_text("now");
    }

    #[tokio::test]
    async fn a_limit_of_concurrency_is_one_of_all_connections() {
        let most = Arc::new(AtomicUsize::new(0));
        let limit = ConcurrencyLimitLayer::new(2);
        calls(&busy(&most).tower_layer(limit).build().unwrap()).await;
        assert_eq!(most.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_limit_of_rate_holds_calls_back() {
        let limit = RateLimitLayer::new(4, Duration::from_millis(200));
        let server = busy(&Arc::default()).tower_layer(limit).build().unwrap();
        let began = Instant::now();
        calls(&server).await;
        assert!(
            began.elapsed() >= Duration::from_millis(200),
            "{:?}",
            began.elapsed()
        );
    }

    /// A call that gives up while it waits for its turn leaves the others theirs.
    #[tokio::test]
    async fn a_call_that_is_cancelled_while_it_waits_holds_nobody_back() {
        let limit = ConcurrencyLimitLayer::new(1);
        let server = busy(&Arc::default()).tower_layer(limit).build().unwrap();
        let test = TestClient::new(&server).await.unwrap();
        let none = json!({});
        let call = || test.client().call_tool("work", &none).send().unwrap();
        let (first, second, third) = (call(), call(), call());
        second.cancel(None);
        assert_eq!(first.await.unwrap().text(), "worked");
        assert_eq!(third.await.unwrap().text(), "worked");
    }

    #[tokio::test]
    async fn a_stack_of_layers_is_around_prompts_and_resources_too() {
        let stack = ServiceBuilder::new()
            .map_request(|mut call: HandlerCall| {
                call.extensions_mut().insert(Tenant("tower"));
                call
            })
            .map_response(|reply| match reply {
                Reply::Prompt(_) => PromptResult::user("changed").into(),
                reply => reply,
            });
        let server = all_kinds()
            .resource(Resource::new("mem:who", "who"), |uri, context| async move {
                let Extension(Tenant(name)) = Extension::from_call(&context)?;
                Ok(ResourceContents::text(uri, name))
            })
            .tower_layer(stack)
            .build()
            .unwrap();
        let test = TestClient::new(&server).await.unwrap();
        let prompt = test.client().get_prompt("ask", &[("topic", "sun")]).await;
        let prompt = prompt.unwrap();
        assert_eq!(prompt.messages[0].content.as_text(), Some("changed"));
        let contents = test.client().read_resource("mem:who").await.unwrap();
        assert_eq!(contents[0].as_text(), Some("tower"));
    }

    #[tokio::test]
    async fn an_error_of_the_protocol_passes_a_stack_of_layers_unchanged() {
        let stack = ServiceBuilder::new()
            .layer(ConcurrencyLimitLayer::new(1))
            .layer(TimeoutLayer::new(Duration::from_secs(30)));
        let gone = |_: HandlerCall, _: Next| async {
            Err(HandlerError::protocol(ErrorKind::Internal, "gone"))
        };
        let server = echo().tower_layer(stack).layer(gone).build().unwrap();
        let test = TestClient::new(&server).await.unwrap();
        test.call("later", json!({"n": 1}))
            .await
            .expect_protocol_error(-32603);
    }
}
