//! A server on stdin and stdout that echoes, written by hand so that it can do what no server should: its argument says
//! what.
//!
//! | argument | fault |
//! |---|---|
//! | `freezes:PERIOD:LENGTH` | does nothing for the last LENGTH ms of every PERIOD ms |
//! | `twice:N` | answers every Nth call a second time |
//! | `wrong:N` | answers every Nth call with the text of another one |
//! | `silent:N` | does not answer every Nth call |
//! | `dies:N` | ends at the Nth call |
//! | `swaps:N` | reports the progress of every Nth call out of order |
//! | `refuses:N` | answers every Nth call of `sleep` with an error |
//! | `insists` | answers calls of `sleep` although they were cancelled |
//! | `deaf` | does not answer subscriptions |

use std::io::{self, BufRead, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let argument = std::env::args().nth(1).unwrap_or_default();
    let mut words = argument.split(':');
    let fault = words.next().unwrap_or_default();
    let mut number = || {
        words
            .next()
            .and_then(|word| word.parse::<u64>().ok())
            .unwrap_or(1)
    };
    let (every, length) = (number(), number());
    let begin = Instant::now();
    let mut calls = 0_u64;
    // The calls of `sleep` that have started, and those that were not cancelled.
    let (mut started, mut active) = (0_u64, Vec::new());
    let mut sleeps = 0_u64;
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let mut say = |message: Value| writeln!(out, "{message}");
        let Some(id) = message.get("id") else {
            let id = &message["params"]["requestId"];
            if let Some(at) = active.iter().position(|active| active == id) {
                active.swap_remove(at);
                if fault == "insists" {
                    let error = json!({"code": 0, "message": "cancelled"});
                    say(json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
                }
            }
            continue;
        };
        if fault == "freezes" {
            let within = u64::try_from(begin.elapsed().as_millis()).unwrap_or_default() % every;
            if within >= every - length {
                thread::sleep(Duration::from_millis(every - within));
            }
        }
        let is_call = message["method"] == "tools/call";
        calls += u64::from(is_call);
        let is_it = is_call && calls.is_multiple_of(every);
        let arguments = &message["params"]["arguments"];
        let method = message["method"].as_str().unwrap_or_default();
        let tool = message["params"]["name"].as_str().unwrap_or_default();
        match (fault, is_it, method) {
            ("silent", true, _) | ("deaf", _, "subscriptions/listen" | "resources/subscribe") => {
                continue;
            }
            ("dies", true, _) => return Ok(()),
            _ => {}
        }
        if tool == "sleep" && !arguments["ms"].is_null() {
            sleeps += 1;
            if fault == "refuses" && sleeps.is_multiple_of(every) {
                let error = json!({"code": -32000, "message": "there is no room"});
                say(json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
            } else {
                started += 1;
                active.push(id.clone());
            }
            continue;
        }
        if let Some(count) = arguments["n"].as_u64() {
            let mut done: Vec<_> = (1..=count).collect();
            if fault == "swaps" && is_it {
                done.reverse();
            }
            let token = &message["params"]["_meta"]["progressToken"];
            for done in done {
                let params = json!({"progressToken": token, "progress": done, "total": count});
                say(
                    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
                )?;
            }
        }
        let answer = match method {
            "server/discover" => json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}},
                "ttlMs": 0,
                "cacheScope": "private",
                "resultType": "complete",
            }),
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "serverInfo": {"name": "faulty", "version": "1"},
                "capabilities": {"tools": {}},
            }),
            "tools/list" => {
                json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
            }
            "tools/call" if tool == "stats" => {
                let stats = json!({"active": active.len(), "started": started}).to_string();
                json!({"content": [{"type": "text", "text": stats}]})
            }
            "tools/call" => {
                let text = match (fault, is_it) {
                    ("wrong", true) => "the text of another call",
                    _ => arguments["text"].as_str().unwrap_or("done"),
                };
                json!({"content": [{"type": "text", "text": text}]})
            }
            _ => {
                let error = json!({"code": -32601, "message": "there is no such method"});
                say(json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
                continue;
            }
        };
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": answer});
        say(answer.clone())?;
        if fault == "twice" && is_it {
            say(answer)?;
        }
        out.flush()?;
    }
    Ok(())
}
