//! Panics of the program's functions: each ends only its own call, and the operator learns of it.

use mcpbolt::client::{Client, block_on};
use mcpbolt::mcp::{Revision, Revisions};
use mcpbolt::model::CompletionTarget;
use mcpbolt::server::{
    Arguments, Builder, Completions, Context, HandlerCall, Next, Prompt, PromptResult, Resource,
    ResourceContents, Server, Tool,
};
use mcpbolt::testing::TestClient;
use serde_json::json;

/// Panics when it is dropped.
struct Broken;

impl Drop for Broken {
    fn drop(&mut self) {
        panic!("a secret in a destructor");
    }
}

fn panics() -> bool {
    panic!("a secret")
}

/// A server with a handler of each kind that panics, and a tool that does not.
fn server() -> Builder {
    Server::builder("s", "1")
        .tool(Tool::new("well"), |_: Arguments, _| async { "well" })
        .tool(Tool::new("before"), |_: Arguments, _| {
            assert!(panics());
            async { "never" }
        })
        .tool(Tool::new("first"), |_: Arguments, _| async {
            panics().to_string()
        })
        .tool(
            Tool::new("later"),
            |_: Arguments, context: Context| async move {
                context.sleep(std::time::Duration::from_millis(1)).await;
                panics().to_string()
            },
        )
        .tool(Tool::new("dropping"), |_: Arguments, _| async {
            let _broken = Broken;
            "never"
        })
        .tool(Tool::new("layered"), |_: Arguments, _| async { "never" })
        .blocking_tool(Tool::new("blocking"), |_: Arguments, _| {
            panics().to_string()
        })
        .inline_tool(Tool::new("inline"), |_: Arguments| panics().to_string())
        .prompt(
            Prompt::new("prompt").argument("a", "", false),
            |_, _| async { Ok(PromptResult::user(panics().to_string())) },
        )
        .resource(Resource::new("mem:one", "one"), |uri, _| async {
            Ok(ResourceContents::text(uri, panics().to_string()))
        })
        .resource_template(Resource::new("mem:all/{n}", "all"), |uri, _, _| async {
            Ok(ResourceContents::text(uri, panics().to_string()))
        })
        .completion(|_, _| async { Ok(Completions::from(vec![panics().to_string()])) })
        .layer_for(["layered"], |call: HandlerCall, next: Next| async move {
            panics();
            next.run(call).await
        })
}

async fn check(test: &TestClient) {
    let client = test.client();
    for tool in [
        "before", "first", "later", "dropping", "layered", "blocking", "inline",
    ] {
        let called = test.call(tool, json!({})).await;
        called.expect_error("the tool failed unexpectedly");
        assert!(!format!("{called}").contains("secret"));
    }
    let untold = |error: mcpbolt::error::RequestError| {
        assert_eq!(error.code(), Some(-32603));
        let error = error.to_string();
        assert!(
            error.ends_with("the handler failed unexpectedly"),
            "{error}"
        );
    };
    untold(client.get_prompt("prompt", &[]).await.unwrap_err());
    untold(client.read_resource("mem:one").await.unwrap_err());
    untold(client.read_resource("mem:all/7").await.unwrap_err());
    let target = CompletionTarget::prompt("prompt");
    untold(client.complete(&target, ("a", ""), &[]).await.unwrap_err());
    test.call("well", json!({})).await.expect_text("well");
}

#[test]
fn a_handler_that_panics_is_an_error_without_the_text_and_the_connection_goes_on() {
    let server = server().build().unwrap();
    for revision in Revision::ALL {
        let builder = Client::builder("test", "1").revisions(Revisions::only(revision));
        block_on(async { check(&TestClient::with(builder, &server).await.unwrap()).await });
    }
}

/// Handlers of one batch that is run by tokio: what one leaves behind reaches no other.
#[cfg(feature = "tokio")]
#[tokio::test]
async fn a_panic_ends_nothing_else_of_a_batch_in_tokio() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use mcpbolt::handler::Spawner;

    let ran = Arc::new(AtomicUsize::new(0));
    let job = |panics: bool| {
        let ran = ran.clone();
        let broken = panics.then(|| Broken);
        let job: mcpbolt::handler::Job = Box::pin(async move {
            let _broken = broken;
            ran.fetch_add(1, Ordering::Relaxed);
        });
        job
    };
    let jobs: Vec<_> = (0..20).map(|n| job(n % 3 == 0)).collect();
    let handle = tokio::runtime::Handle::current();
    Spawner::spawn_batch(&handle, Box::new(jobs.into_iter()));
    while ran.load(Ordering::Relaxed) < 20 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[cfg(feature = "tracing")]
mod traced {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::wire::Wire;

    /// The events at level ERROR, with the text of their fields.
    #[derive(Clone, Default)]
    struct Errors(Arc<Mutex<Vec<Fields>>>);

    #[derive(Debug)]
    struct Fields(Vec<(String, String)>);

    impl tracing::field::Visit for Fields {
        fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
            self.0.push((field.name().to_owned(), format!("{value:?}")));
        }
    }

    impl tracing::Subscriber for Errors {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            *metadata.level() == tracing::Level::ERROR
        }

        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }

        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

        fn event(&self, event: &tracing::Event<'_>) {
            let mut fields = Fields(Vec::new());
            event.record(&mut fields);
            self.0.lock().unwrap().push(fields);
        }

        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    /// Runs the handlers on the thread that submits them, whose subscriber hears them.
    struct Here;

    impl mcpbolt::handler::Spawner for Here {
        fn spawn(&self, job: mcpbolt::handler::Job) {
            block_on(job);
        }
    }

    #[test]
    fn the_operator_gets_the_text_the_place_and_a_backtrace_of_each_panic() {
        let errors = Errors::default();
        let (server, line) = (server().build().unwrap(), file!());
        let expected = [
            ("tools/call", "first", "a handler panicked"),
            ("tools/call", "dropping", "a handler panicked"),
            ("tools/call", "layered", "a handler panicked"),
            ("tools/call", "inline", "an inline tool panicked"),
            ("prompts/get", "prompt", "a handler panicked"),
            ("resources/read", "mem:one", "a handler panicked"),
        ];
        tracing::subscriber::with_default(errors.clone(), || {
            for (method, name, said) in expected {
                let params = match method {
                    "resources/read" => json!({"uri": name}),
                    _ => json!({"name": name}),
                };
                let mut wire = Wire::on(server.clone(), Arc::new(Here));
                let answer = wire.ask(Revision::V2026_07_28, method, params);
                assert!(
                    answer.to_string().contains("failed unexpectedly"),
                    "{answer}"
                );
                let events = std::mem::take(&mut *errors.0.lock().unwrap());
                assert_eq!(events.len(), 1, "{name}: {events:?}");
                let field = |name: &str| {
                    let of_name = events[0].0.iter().find(|(own, _)| own == name);
                    of_name.map_or("", |(_, value)| value)
                };
                assert_eq!(field("message"), said);
                assert!(field("panic").contains("a secret"), "{events:?}");
                assert!(field("place").starts_with(line), "{events:?}");
                assert!(field("backtrace").contains("panics::"), "{events:?}");
            }
        });
    }
}
