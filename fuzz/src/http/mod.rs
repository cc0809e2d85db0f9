//! The law of HTTP servers: every request, with any head and body and in any order, soon gets a valid
//! response that belongs to it and leaves no bytes over. A server with a verifier answers no
//! request without the key.

mod answer;
mod request;

use std::future::Future;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use hyper::header::HeaderValue;
use hyper::{Method, Request};
use mcpbolt::io::http::{HttpOptions, HttpService};
use mcpbolt::io::{Counts, Workers, WorkersConfig};
use mcpbolt::limits::Limits;
use mcpbolt::policy::{ApiKeys, Policy};
use mcpbolt::server::{Arguments, Context, Hosting, Server, Tool};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::random::Random;
use answer::Answer;
use request::{Asked, Patience};

/// The longest time for an answer, and for anything to end.
const SOON: Duration = Duration::from_secs(10);
/// The longest accepted body, in bytes.
pub const MAX_LEN: usize = 3000;
const MAX_SESSIONS: usize = 3;

/// Two servers, whose handlers run on the same threads in every conversation. One serves all clients, the
/// other only those with [`KEY`].
static HOSTINGS: LazyLock<[Arc<dyn Hosting>; 2]> = LazyLock::new(|| {
    let workers = Arc::new(Workers::new(WorkersConfig::default()));
    let keys = ApiKeys::new().key(KEY, "somebody");
    let policies = [
        Policy::new(),
        Policy::new().verifier(move |said| keys.verify(said)),
    ];
    policies.map(|policy| server(policy).hosting(workers.clone()))
});

const KEY: &str = "a key that opens";

/// All session ids so far, including those of ended sessions.
type Names = Arc<Mutex<Vec<String>>>;

fn server(policy: Policy) -> Server {
    Server::builder("fuzz", "1.0.0")
        .policy(policy)
        .actions(true)
        .list_changes()
        .subscriptions()
        .tool(Tool::new("echo"), |arguments: Arguments, _| async move {
            let arguments: Value = serde_json::from_str(&arguments.0).unwrap_or_default();
            arguments["text"].as_str().unwrap_or_default().to_owned()
        })
        .tool(
            Tool::new("steps"),
            |_: Arguments, context: Context| async move {
                for step in 0..3 {
                    context.progress(f64::from(step), None, None);
                }
                "done"
            },
        )
        .tool(
            Tool::new("rest"),
            |_: Arguments, context: Context| async move {
                context.sleep(Duration::from_millis(1)).await;
                "rested"
            },
        )
        .build()
        .expect("a server")
}

fn options() -> HttpOptions {
    HttpOptions {
        limits: Limits {
            max_message_bytes: MAX_LEN,
            stall_timeout: Duration::from_millis(50),
            ..Limits::NETWORK
        },
        max_sessions: MAX_SESSIONS,
        replay_bytes: 4096,
        cors: true,
        grace: Duration::from_millis(2),
        ..HttpOptions::default()
    }
}

/// Sends some requests, sometimes at the same time. `bytes` may be the body of one.
pub fn conversation(bytes: &[u8], random: &mut Random) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let is_guarded = random.below(3) == 0;
        let hosting = HOSTINGS[usize::from(is_guarded)].clone();
        let service = HttpService::hosting(hosting, options()).expect("no trace");
        let names = Names::default();
        for _ in 0..1 + random.below(6) {
            let at_once = *random.pick(&[1, 1, 1, 2, 4]);
            let asked: Vec<_> = (0..at_once)
                .map(|_| {
                    let mut asked = request::request(bytes, &names.lock().unwrap(), random);
                    let may = !is_guarded || prove(&mut asked.request, random);
                    tokio::spawn(ask(service.clone(), asked, may, names.clone()))
                })
                .collect();
            for each in asked {
                each.await.expect("the law holds");
            }
            let few = |counts: Counts| counts.open_sessions <= MAX_SESSIONS as u64;
            until(&service, few).await;
        }
        service.stop();
        let nothing = |counts: Counts| counts.open_calls == 0 && counts.open_sessions == 0;
        until(&service, nothing).await;
    });
}

/// Adds credentials or none. Returns whether they are valid.
fn prove<B>(request: &mut Request<B>, random: &mut Random) -> bool {
    let (name, said) = *random.pick(&[
        ("x-api-key", KEY),
        ("x-api-key", KEY),
        ("x-api-key", "another key"),
        ("authorization", "Basic Og=="),
        ("x-other", KEY),
    ]);
    request
        .headers_mut()
        .insert(name, HeaderValue::from_static(said));
    (name, said) == ("x-api-key", KEY)
}

async fn until(service: &HttpService, holds: impl Fn(Counts) -> bool) {
    let begun = Instant::now();
    loop {
        let counts = service.metrics().counts();
        if holds(counts) {
            return;
        }
        assert!(begun.elapsed() < SOON, "{counts:?}");
        sleep(Duration::from_micros(100)).await;
    }
}

/// Sends a request and checks the response, unless the client leaves before. Without `may`, the response
/// must be an error.
async fn ask(service: HttpService, asked: Asked, may: bool, names: Names) {
    let Asked {
        request,
        patience,
        meant,
    } = asked;
    let shown = format!("{request:?} of {meant:?}");
    // A CORS preflight has no credentials.
    let is_preflight = request.method() == Method::OPTIONS;
    let answering = service.respond(request);
    let response = match patience {
        Patience::Gone(time) => return drop(timeout(time, answering).await),
        Patience::Stays(_) => soon(answering, &shown).await,
    };
    if !may {
        let status = response.status();
        let is_refused = status.is_client_error() || is_preflight;
        assert!(is_refused, "{status} without the key to {shown}");
        return;
    }
    let Patience::Stays(time) = patience else {
        return;
    };
    let answer = soon(Answer::read(response, time), &shown).await;
    names.lock().unwrap().extend(answer.session());
    answer.check(&meant, &shown);
}

async fn soon<T>(future: impl Future<Output = T>, shown: &str) -> T {
    let outcome = timeout(SOON, future).await;
    outcome.unwrap_or_else(|_| panic!("no answer to {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use request::Meant;

    /// A regression test: once an `Accept` that was damaged so that it named no JSON, the law rejected the
    /// event that refuses such an action.
    #[tokio::test]
    async fn actions_of_clients_that_take_events_alone_keep_the_law() {
        let service = HttpService::hosting(HOSTINGS[0].clone(), options()).expect("no trace");
        for (action, version, status) in [
            ("echo", "1.0", 200),
            ("steps", "1.0", 200),
            ("echo", "x", 400),
            ("nothing", "1.0", 404),
        ] {
            let body = format!(
                r#"{{"action":"{action}","params":{{"text":"a"}},"metadata":{{"version":"{version}"}}}}"#
            );
            let request = Request::post("/mcp")
                .header("host", "localhost")
                .header("content-type", "application/json")
                .header("accept", "text/event-stream");
            let request = request.body(body.clone()).expect("a request");
            let response = service.respond(request).await;
            assert_eq!(response.status(), status, "{body}");
            let answer = Answer::read(response, SOON).await;
            answer.check(&Meant::of(body.as_bytes()), &body);
        }
    }
}
