//! Sessions over HTTP that processes share, on a server.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::Method;
use mcpbolt::io::http::{HttpOptions, HttpService, SharedSessions};
use mcpbolt::limits::Quota;
use mcpbolt::policy::Policy;
use mcpbolt::server::{Arguments, Server as McpServer, Tool};
use mcpbolt::store::{SealedStore, StoreKeys};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::http;
use crate::servers::{Program, Server};
use crate::stores::{LONG, SOON, on_every_store, open};

/// A process with a connection to the store of its own.
pub fn process(store: &Server) -> HttpService {
    let keys = Arc::new(StoreKeys::new([1; 32], [2; 32]));
    let store = SealedStore::new(Arc::new(open(&store.url())), keys.clone());
    let options = HttpOptions {
        shared_sessions: Some(SharedSessions::new(Arc::new(store), keys)),
        // One client may have three quarters of them.
        max_sessions: 20_000,
        ..HttpOptions::default()
    };
    let server = McpServer::builder("shared", "1.0.0").build().unwrap();
    HttpService::new(&server, options).unwrap()
}

/// The status of a request, and the id of the session that it begins.
pub async fn send(
    at: &HttpService,
    session: Option<&str>,
    method: Method,
    message: Value,
) -> (u16, Option<String>) {
    let named = session.map(|id| ("Mcp-Session-Id", id));
    let answer = http::send(at, method, named.as_slice(), &message).await;
    let (head, body) = answer.into_parts();
    body.collect().await.unwrap();
    let id = head.headers.get("mcp-session-id");
    (
        head.status.as_u16(),
        id.map(|id| id.to_str().unwrap().to_owned()),
    )
}

/// R-S14-05: the limits of a policy hold for all processes if they share it with their sessions, and for each if not.
#[test]
fn sessions_may_share_the_policy_of_their_server() {
    on_every_store(async |world| {
        let process = |shares_policy| {
            let quota = Quota {
                calls: 3,
                period: LONG,
            };
            let server = McpServer::builder("limited", "1.0.0").policy(Policy::new().quota(quota));
            let server = server.tool(Tool::new("none"), |_: Arguments, _| async { "done" });
            let keys = Arc::new(StoreKeys::new([1; 32], [2; 32]));
            let options = HttpOptions {
                shared_sessions: Some(SharedSessions {
                    shares_policy,
                    ..SharedSessions::new(world.connect(), keys)
                }),
                ..HttpOptions::default()
            };
            HttpService::new(&server.build().unwrap(), options).unwrap()
        };
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "none", "arguments": {}}});
        for (shares_policy, done) in [(false, 6), (true, 3)] {
            let all = [(); 2].map(|()| process(shares_policy));
            let (_, id) = send(&all[0], None, Method::POST, hello()).await;
            let mut statuses = Vec::new();
            for n in 0..8 {
                let answer = send(&all[n % 2], id.as_deref(), Method::POST, call.clone());
                statuses.push(answer.await.0);
            }
            assert_eq!(statuses[..done], vec![200; done]);
            assert_eq!(statuses[done..], vec![429; 8 - done]);
        }
    });
}

fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "mover", "version": "1"}}})
}

/// R-SES-05, R-SES-06: sessions move between processes, cost the server nothing while they live, and end everywhere.
#[test]
fn sessions_move_between_processes_and_cost_the_store_nothing() {
    const SESSIONS: usize = 100;
    let runtime = Runtime::new().unwrap();
    let mut server = Server::start(Program::Valkey, &[]);
    runtime.block_on(async {
        let (one, two) = (process(&server), process(&server));
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let mut ids = Vec::new();
        for _ in 0..SESSIONS {
            let (status, id) = send(&one, None, Method::POST, hello()).await;
            assert_eq!(status, 200);
            ids.push(id.unwrap());
        }
        for id in &ids {
            assert_eq!(
                send(&two, Some(id), Method::POST, ping.clone()).await.0,
                200
            );
        }
        assert_eq!(
            server.raw("DBSIZE"),
            ":0\r\n",
            "live sessions are in the store"
        );
        for id in &ids[1..] {
            assert_eq!(
                send(&one, Some(id), Method::DELETE, Value::Null).await.0,
                204
            );
        }
        let told = async {
            while two.metrics().counts().open_sessions > 1 {
                tokio::task::yield_now().await;
            }
        };
        timeout(SOON, told)
            .await
            .expect("the other process is told");
        assert_eq!(
            send(&process(&server), Some(&ids[1]), Method::POST, ping.clone())
                .await
                .0,
            404
        );
        // Without the server, the session that is left moves on.
        server.kill();
        let late = process(&server);
        assert_eq!(send(&late, Some(&ids[0]), Method::POST, ping).await.0, 200);
        assert_eq!(
            send(&late, Some(&ids[0]), Method::DELETE, Value::Null)
                .await
                .0,
            503
        );
    });
}
