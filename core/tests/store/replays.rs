//! What is accepted once, whichever process it comes to.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use http_body_util::BodyExt as _;
use hyper::{Method, Response};
use mcpbolt::connection::Principal;
use mcpbolt::io::http::{HttpBody, HttpOptions, HttpService};
use mcpbolt::model::{Elicitation, Elicited};
use mcpbolt::policy::{Credentials, Policy, ProofUse, ResourceServer};
use mcpbolt::server::{Arguments, Context, HandlerError, Server as McpServer, Tool};
use mcpbolt_oauth::client::DpopKey;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::http::send;
use crate::servers::{Program, Server};
use crate::stores::{SOON, Store, on_every_store, open};

/// The tool asks the user, and then does what must be done once.
fn asking(store: Store) -> HttpService {
    let ask = |_: Arguments, context: Context| async move {
        let fields = json!({"type": "object", "properties": {"sure": {"type": "boolean"}}});
        match context.elicit(Elicitation::form("Pay?", fields)).await? {
            Elicited::Accepted(_) => Ok::<_, HandlerError>("paid"),
            _ => Ok("not paid"),
        }
    };
    let server = McpServer::builder("shop", "1.0.0")
        .state_key([7; 32])
        .single_use_states_on(store)
        .tool(Tool::new("pay"), ask)
        .build()
        .unwrap();
    HttpService::new(&server, HttpOptions::default()).unwrap()
}

async fn body(answer: Response<HttpBody>) -> Value {
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap_or_else(|_| panic!("{body:?}"))
}

/// Calls the tool, with what the round before has brought.
async fn pay(at: &HttpService, round: Option<(&str, &str)>) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "pay", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "buyer", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}}});
    if let Some((state, question)) = round {
        let answer = json!({"action": "accept", "content": {"sure": true}});
        message["params"]["requestState"] = state.into();
        message["params"]["inputResponses"] = json!({question: answer});
    }
    let head = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "pay"),
    ];
    body(send(at, Method::POST, &head, &message).await).await
}

/// The state of a first round, and the name of its question.
async fn asked(at: &HttpService) -> (String, String) {
    let answer = pay(at, None).await;
    let questions = answer["result"]["inputRequests"].as_object();
    let questions = questions.unwrap_or_else(|| panic!("{answer}"));
    (
        answer["result"]["requestState"].as_str().unwrap().into(),
        questions.keys().next().unwrap().clone(),
    )
}

/// R-MRT-09: on one answer of the user, a call runs once.
#[test]
fn a_state_is_accepted_once_by_all_processes() {
    on_every_store(async |world| {
        let processes: Vec<_> = (0..8).map(|_| asking(world.connect())).collect();
        let (state, question) = asked(&processes[0]).await;
        let round = Some((&*state, &*question));
        let answers = processes.iter().map(|at| pay(at, round));
        let answers = futures::future::join_all(answers).await;
        let (paid, refused): (Vec<_>, Vec<_>) =
            answers.iter().partition(|answer| answer["error"].is_null());
        assert_eq!(paid.len(), 1, "{answers:?}");
        assert_eq!(paid[0]["result"]["content"][0]["text"], "paid");
        for answer in refused {
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
    });
}

/// While the store is away, no call runs on a state, and the state is good when the store is back.
#[test]
fn no_state_is_accepted_while_the_store_is_away() {
    let runtime = Runtime::new().unwrap();
    for program in Program::ALL {
        let mut store = Server::start(program, &[]);
        runtime.block_on(async {
            let at = asking(Arc::new(open(&store.url())));
            let (state, question) = asked(&at).await;
            let round = Some((&*state, &*question));
            store.kill();
            let refused = pay(&at, round).await;
            let why = refused["error"]["message"].as_str().unwrap_or_default();
            assert!(
                why.contains("nobody knows whether requestState was used"),
                "{refused}"
            );
            store.start_again();
            let begun = Instant::now();
            let paid = loop {
                let answer = pay(&at, round).await;
                if answer["error"].is_null() {
                    break answer;
                }
                assert!(begun.elapsed() < SOON, "{answer}");
                tokio::task::yield_now().await;
            };
            assert_eq!(paid["result"]["content"][0]["text"], "paid");
        });
    }
}

const URL: &str = "https://api.example/mcp";

/// A server whose tokens are bound to this key.
fn bound(key: &DpopKey, store: Store) -> HttpService {
    let resource = ResourceServer::new(URL)
        .issuer("https://login.example")
        .proofs(ProofUse::Required)
        .build()
        .unwrap();
    let thumbprint = key.thumbprint().to_owned();
    let policy = Policy::new()
        .resource(resource)
        .verifier(move |credentials| match credentials {
            Credentials::Bearer("t") => Ok(Principal::new("alice").bound_to_key(&*thumbprint)),
            _ => Err("no token"),
        })
        .share(store);
    let server = McpServer::builder("bound", "1.0.0")
        .policy(policy)
        .tool(Tool::new("echo"), |_: Arguments, _| async { "echo" })
        .build()
        .unwrap();
    HttpService::new(&server, HttpOptions::default()).unwrap()
}

fn proof(key: &DpopKey) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    key.proof("POST", URL, Some("t"), None, now.as_secs())
        .unwrap()
}

/// The status of a call with a proof, and the error of the challenge.
async fn call(at: &HttpService, proof: &str) -> (u16, bool) {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "echo", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "bound", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}}}});
    let head = [
        ("Authorization", "DPoP t"),
        ("DPoP", proof),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "echo"),
    ];
    let answer = send(at, Method::POST, &head, &message).await;
    let challenges = answer.headers().get_all("www-authenticate").iter();
    let is_about_proof = challenges
        .filter_map(|it| it.to_str().ok())
        .any(|it| it.contains("the proof was used before"));
    (answer.status().as_u16(), is_about_proof)
}

/// RFC 9449, section 11.1: a proof that was caught on its way is worth nothing at another process.
#[test]
fn a_proof_is_accepted_once_by_all_processes() {
    on_every_store(async |world| {
        let key = DpopKey::generate().unwrap();
        let processes: Vec<_> = (0..8).map(|_| bound(&key, world.connect())).collect();
        for process in &processes {
            assert_eq!(call(process, &proof(&key)).await, (200, false));
        }
        let caught = proof(&key);
        let answers = processes.iter().map(|at| call(at, &caught));
        let mut answers = futures::future::join_all(answers).await;
        answers.sort_unstable();
        assert_eq!(answers[0], (200, false), "{answers:?}");
        assert!(
            answers[1..].iter().all(|it| *it == (401, true)),
            "{answers:?}"
        );
    });
}

/// While the store is away, requests with proofs are refused for the time being.
#[test]
fn no_proof_is_accepted_while_the_store_is_away() {
    let runtime = Runtime::new().unwrap();
    let mut store = Server::start(Program::Valkey, &[]);
    runtime.block_on(async {
        let key = DpopKey::generate().unwrap();
        let at = bound(&key, Arc::new(open(&store.url())));
        assert_eq!(call(&at, &proof(&key)).await, (200, false));
        store.kill();
        assert_eq!(call(&at, &proof(&key)).await, (503, false));
        store.start_again();
        let begun = Instant::now();
        loop {
            match call(&at, &proof(&key)).await.0 {
                200 => break,
                status => assert_eq!(status, 503),
            }
            assert!(begun.elapsed() < SOON, "the store is back");
            tokio::task::yield_now().await;
        }
    });
}
