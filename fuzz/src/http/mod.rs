//! The law of servers on HTTP: whatever is asked, of whatever head and body and in whatever
//! order, there is soon an answer, it is one that there may be, it is that of its request, and
//! nothing is left of it.

mod answer;
mod request;

use std::future::Future;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use mcpbolt::io::http::{HttpOptions, HttpService};
use mcpbolt::io::{Counts, Workers, WorkersConfig};
use mcpbolt::limits::Limits;
use mcpbolt::server::{Arguments, Context, Hosting, Server, Tool};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::random::Random;
use answer::Answer;
use request::{Asked, Patience};

/// No answer takes longer, nor does anything take longer to end.
const SOON: Duration = Duration::from_secs(10);
/// Longest body that is taken.
pub const MAX_LEN: usize = 3000;
const MAX_SESSIONS: usize = 3;

/// Handlers run on the same threads in every conversation.
static HOSTING: LazyLock<Arc<dyn Hosting>> =
    LazyLock::new(|| server().hosting(Arc::new(Workers::new(WorkersConfig::default()))));

/// Names of sessions that were heard of, also of those that have ended.
type Names = Arc<Mutex<Vec<String>>>;

fn server() -> Server {
    Server::builder("fuzz", "1.0.0")
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

/// Some requests, now and then at the same time, of which `bytes` may be a body.
pub fn conversation(bytes: &[u8], random: &mut Random) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let service = HttpService::hosting(HOSTING.clone(), options()).expect("no trace");
        let names = Names::default();
        for _ in 0..1 + random.below(6) {
            let at_once = *random.pick(&[1, 1, 1, 2, 4]);
            let asked: Vec<_> = (0..at_once)
                .map(|_| request::request(bytes, &names.lock().unwrap(), random))
                .map(|asked| tokio::spawn(ask(service.clone(), asked, names.clone())))
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

/// Asks, and holds the answer against the law unless whoever asks goes before.
async fn ask(service: HttpService, asked: Asked, names: Names) {
    let Asked {
        request,
        patience,
        meant,
    } = asked;
    let shown = format!("{request:?} of {meant:?}");
    let answering = service.respond(request);
    let response = match patience {
        Patience::Gone(time) => return drop(timeout(time, answering).await),
        Patience::Stays(_) => soon(answering, &shown).await,
    };
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
