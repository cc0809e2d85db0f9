//! Rates and quotas that the processes of a server count together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpbolt::client::{Client, block_on};
use mcpbolt::io::{ChildCommand, Stderr};
use mcpbolt::limits::{Quota, Rate};
use mcpbolt::policy::Policy;
use mcpbolt::server::{Arguments, Server as McpServer, Tool};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::servers::{Program, Server};
use crate::stores::{Chance, LONG, SOON, Store, World, on_every_store, open};

const PROCESSES: u64 = 8;
/// Set in a process of its own: the limit and the address of the store.
const ROLE: &str = "MCPBOLT_TEST_COUNTS";

const RATE: Rate = Rate {
    // So slow that a busy machine takes more, and so much that nothing is lost while it does something else for forty seconds,
    // once the burst is used up.
    burst: 400,
    per_second: 10,
};
const QUOTA: Quota = Quota {
    calls: 100,
    period: LONG,
};

fn policy(limit: &str) -> Policy {
    match limit {
        "rate" => Policy::new().rate(RATE),
        _ => Policy::new().quota(QUOTA),
    }
}

fn server(policy: Policy, store: Store) -> McpServer {
    McpServer::builder("counted", "1.0.0")
        .policy(policy.share(store))
        .tool(Tool::new("echo"), |_: Arguments, _| async { "echo" })
        .build()
        .unwrap()
}

/// Not a test: another process. Without its variable it has nothing to do.
#[test]
fn process() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let (limit, url) = role.split_once(' ').unwrap();
    let store = Arc::new(open(url));
    drop(server(policy(limit), store).serve_stdio().wait());
    std::process::exit(0);
}

/// Clients of eight servers with one store, in processes of their own where these find the store.
async fn clients(world: &World, limit: &str) -> Arc<[Client]> {
    let mut clients = Vec::new();
    for _ in 0..PROCESSES {
        let client = match &world.url {
            Some(url) => {
                let command = ChildCommand::new(std::env::current_exe().unwrap())
                    .args(["--exact", "counts::process", "--nocapture", "--quiet"])
                    .env(ROLE, format!("{limit} {url}"))
                    .stderr(Stderr::Discard);
                Client::spawn(command).await
            }
            None => {
                let server = server(policy(limit), world.connect());
                Client::builder("test", "1.0.0").connect(&server).await
            }
        };
        clients.push(client.unwrap());
    }
    clients.into()
}

/// Calls a tool. Returns whether the server allowed it.
async fn is_allowed(client: &Client) -> bool {
    let result = client.call_tool("echo", &json!({})).await.unwrap();
    assert_eq!(
        result.is_error,
        result.text() != "echo",
        "{}",
        result.text()
    );
    !result.is_error
}

/// Runs eight tasks, each with numbers of its own.
async fn tasks<T, F>(clients: &Arc<[Client]>, work: impl Fn(Arc<[Client]>, Chance) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut chance = Chance::new();
    let mut tasks = JoinSet::new();
    for _ in 0..PROCESSES {
        tasks.spawn(work(clients.clone(), chance.split()));
    }
    tasks.join_all().await
}

/// Has all processes called until nothing is left, for `time` at least. Returns how many calls were allowed, and between which
/// instants the last one was refused: all that had come by then was taken, and nothing was taken later.
async fn use_up(clients: &Arc<[Client]>, time: Duration) -> (f64, [Instant; 2]) {
    let begun = Instant::now();
    let all = tasks(clients, |clients, mut chance| async move {
        let mut taken = 0;
        loop {
            let (process, asked) = (chance.below(PROCESSES) as usize, Instant::now());
            if is_allowed(&clients[process]).await {
                taken += 1;
            } else if asked > begun + time {
                return (taken, [asked, Instant::now()]);
            } else {
                sleep(Duration::from_millis(5)).await;
            }
        }
    });
    let (taken, refused): (Vec<u32>, Vec<_>) = all.await.into_iter().unzip();
    (
        taken.iter().sum::<u32>().into(),
        refused.into_iter().max().unwrap(),
    )
}

/// Whichever process a call comes to, a client gets its burst, and then its rate within two per cent.
#[test]
fn a_rate_holds_for_eight_processes_together() {
    let due = |from: Instant, to: Instant| {
        to.duration_since(from).as_secs_f64() * f64::from(RATE.per_second)
    };
    on_every_store(async |world| {
        let clients = clients(world, "rate").await;
        let begun = Instant::now();
        let (taken, empty) = use_up(&clients, Duration::ZERO).await;
        let (least, most) = (f64::from(RATE.burst), due(begun, empty[1]));
        assert!(taken >= least, "{taken} of {least}");
        assert!(
            taken <= least + 1.02 * most,
            "{taken} of {least} and {most}"
        );

        let (taken, again) = use_up(&clients, Duration::from_secs(5)).await;
        let (least, most) = (due(empty[1], again[0]), due(empty[0], again[1]));
        // Part of a call may have been left each time.
        assert!(taken >= 0.98 * least - 1.0, "{taken} of at least {least}");
        assert!(taken <= 1.02 * most + 1.0, "{taken} of at most {most}");
    });
}

/// Whichever process a call comes to, a client gets exactly its quota.
#[test]
fn a_quota_holds_for_eight_processes_together() {
    on_every_store(async |world| {
        let clients = clients(world, "quota").await;
        let taken = tasks(&clients, |clients, mut chance| async move {
            let mut taken = 0;
            for _ in 0..QUOTA.calls / 4 {
                let process = chance.below(PROCESSES) as usize;
                taken += u64::from(is_allowed(&clients[process]).await);
            }
            taken
        });
        assert_eq!(taken.await.iter().sum::<u64>(), QUOTA.calls);
        let refused = clients[0].call_tool("echo", &json!({})).await.unwrap();
        assert!(
            refused.text().contains("the quota of 100 calls"),
            "{}",
            refused.text()
        );
    });
}

/// As in one process: who has used up a limit is not held to it when it is another one.
#[test]
fn another_limit_is_counted_anew() {
    on_every_store(async |world| {
        for calls in [1, 2] {
            let period = LONG;
            let rate = Rate {
                burst: calls,
                per_second: 0,
            };
            let calls = u64::from(calls);
            for policy in [
                Policy::new().quota(Quota { calls, period }),
                Policy::new().rate(rate),
            ] {
                let server = server(policy, world.connect());
                let client = Client::builder("test", "1.0.0").connect(&server);
                let client = client.await.unwrap();
                let mut allowed = 0;
                while is_allowed(&client).await {
                    allowed += 1;
                }
                assert_eq!(allowed, calls);
            }
        }
    });
}

/// While the store is away, calls are served, and each process counts by itself; when it is back, all count together.
#[test]
fn each_process_counts_by_itself_while_the_store_is_away() {
    const CALLS: u64 = 3;
    let quota = Quota {
        calls: CALLS,
        period: LONG,
    };
    for program in Program::ALL {
        let mut store = Server::start(program, &[]);
        let connected = || {
            let server = server(Policy::new().quota(quota), Arc::new(open(&store.url())));
            block_on(Client::builder("test", "1.0.0").connect(&server)).unwrap()
        };
        let both = [connected(), connected()];
        let runtime = Runtime::new().unwrap();
        let allowed = |calls: u64| {
            let calls = (0..calls).flat_map(|_| &both);
            calls
                .filter(|client| runtime.block_on(is_allowed(client)))
                .count() as u64
        };
        assert_eq!(allowed(1), 2);
        store.kill();
        assert_eq!(allowed(2 * CALLS), 2 * CALLS);
        store.start_again();
        let begun = Instant::now();
        let mut together = 0;
        while together < CALLS {
            assert!(begun.elapsed() < SOON, "{together}");
            together += allowed(1);
        }
        // Time enough for both to have asked the store again.
        let until = Instant::now() + Duration::from_millis(2500);
        while Instant::now() < until {
            together += allowed(1);
        }
        assert_eq!(together, CALLS);
    }
}

/// Over HTTP, a refused request has status 429 and says when to ask again, in a session and without one.
#[cfg(feature = "http")]
#[test]
fn requests_above_a_shared_limit_have_their_status() {
    use hyper::Method;
    use mcpbolt::io::http::{HttpOptions, HttpService};
    use mcpbolt::store::LocalStore;

    use crate::http::send;

    let runtime = Runtime::new().unwrap();
    let service = || {
        let quota = Quota {
            calls: 1,
            period: LONG,
        };
        let policy = Policy::new().quota(quota);
        let server = server(policy, Arc::new(LocalStore::new()));
        HttpService::new(&server, HttpOptions::default()).unwrap()
    };
    let call = |id: u32, meta: serde_json::Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "echo", "arguments": {}, "_meta": meta}})
    };
    runtime.block_on(async {
        let at = service();
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}});
        let head = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "echo"),
        ];
        let first = send(&at, Method::POST, &head, &call(1, meta.clone())).await;
        assert_eq!(first.status(), 200);
        let second = send(&at, Method::POST, &head, &call(2, meta)).await;
        assert_eq!(second.status(), 429);
        let wait = second.headers()["retry-after"].to_str().unwrap();
        let wait: u64 = wait.parse().unwrap();
        assert!((1..=LONG.as_secs()).contains(&wait), "{wait}");

        let at = service();
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}});
        let begun = send(&at, Method::POST, &[], &hello).await;
        let session = begun.headers()["mcp-session-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let head = [("Mcp-Session-Id", &*session)];
        let first = send(&at, Method::POST, &head, &call(1, json!({}))).await;
        assert_eq!(first.status(), 200);
        let second = send(&at, Method::POST, &head, &call(2, json!({}))).await;
        assert_eq!(second.status(), 429);
    });
}
