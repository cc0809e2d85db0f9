//! What idle sessions cost a store that processes share.

use std::collections::BTreeMap;

use hyper::Method;
use mcpbolt::io::http::HttpService;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::servers::{Program, Server};
use crate::sessions::{process, send};

/// The most bytes of the store that each session may take.
const MOST_BYTES: u64 = 300;
/// Commands of this test, and of a process that connects and hears of what others have ended, whether there are sessions or not.
const OWN: [&str; 10] = [
    "client|setinfo",
    "config|resetstat",
    "dbsize",
    "evalsha",
    "hello",
    "hget",
    "info",
    "ping",
    "script|load",
    "subscribe",
];

/// How many sessions there are; as many as `MCPBOLT_TRIALS`, but at most 10,000.
fn sessions() -> u64 {
    let given = std::env::var("MCPBOLT_TRIALS").ok();
    given
        .map_or(1_000, |trials| trials.parse().unwrap())
        .min(10_000)
}

/// The part of `INFO` with that name, by field.
fn info(server: &Server, part: &str) -> BTreeMap<String, String> {
    let text = server.raw(&format!("INFO {part}"));
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

fn used_memory(server: &Server) -> u64 {
    info(server, "memory")["used_memory"].parse().unwrap()
}

/// How often each command has come since the last call.
fn commands(server: &Server) -> Vec<(String, u64)> {
    let all = info(server, "commandstats");
    server.raw("CONFIG RESETSTAT");
    let counted = all.iter().filter_map(|(name, numbers)| {
        let name = name.strip_prefix("cmdstat_")?;
        let calls = numbers.strip_prefix("calls=")?.split(',').next()?;
        Some((name.to_owned(), calls.parse().unwrap()))
    });
    counted
        .filter(|(name, _)| !OWN.contains(&name.as_str()))
        .collect()
}

/// Uses each session once.
async fn visit(at: &HttpService, sessions: &[String]) {
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for id in sessions {
        let (status, _) = send(at, Some(id), Method::POST, ping.clone()).await;
        assert_eq!(status, 200);
    }
}

/// R-SES-05: a session costs the store no command and no memory. Only a process that meets a session of another one asks whether it has
/// been ended: before it takes the session over, and afterwards.
#[test]
fn idle_sessions_cost_the_store_no_memory_and_no_command() {
    let (count, server) = (sessions(), Server::start(Program::Valkey, &[]));
    Runtime::new().unwrap().block_on(async {
        let (one, two) = (process(&server), process(&server));
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "idle", "version": "1"}}});
        let begin = async || {
            send(&one, None, Method::POST, hello.clone())
                .await
                .1
                .unwrap()
        };
        // Connections to the store are open after this.
        visit(&two, &[begin().await]).await;
        commands(&server);
        let before = used_memory(&server);
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(begin().await);
        }
        visit(&one, &ids).await;
        assert_eq!(commands(&server), [], "where they have begun");
        visit(&two, &ids).await;
        assert_eq!(commands(&server), [("get".to_owned(), 2 * count)]);
        visit(&two, &ids).await;
        assert_eq!(commands(&server), [], "once they are known");
        let each = used_memory(&server).saturating_sub(before) / count;
        println!("{each} bytes of the store for each of {count} idle sessions");
        assert!(each <= MOST_BYTES, "{each} bytes each");
        assert_eq!(server.raw("DBSIZE"), ":0\r\n");
        let channels = server.raw("PUBSUB CHANNELS");
        let channels = channels.lines().next().unwrap();
        assert_eq!(channels, "*2", "one for ends of sessions, one for changes");
    });
}
