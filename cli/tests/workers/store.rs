//! Processes that have one store accept each other's sessions, and go on with each other's streams.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::Ordering::Relaxed;

use serde_json::json;

use crate::client::Client;
use crate::ends::replaced;
use crate::servers::{Program, Server};
use crate::serving::Serving;
use crate::sessions::answered_after_replacement;
use crate::tree::{Tree, comes};

/// A file of these lines, for its owner alone.
fn file(name: &str, lines: &[&str]) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, lines.join("\n")).unwrap();
    set_mode(&file, 0o600);
    file
}

fn set_mode(file: &Path, mode: u32) {
    std::fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
}

/// The options that name a store.
fn sharing<'a>(url: &'a str, keys: &'a Path) -> [&'a str; 4] {
    ["--store", url, "--store-keys", keys.to_str().unwrap()]
}

/// Answers what a call of `test_elicitation` has asked.
fn answer(client: &mut Client, session: &str, question: &serde_json::Value) -> u16 {
    let answer = json!({
        "jsonrpc": "2.0", "id": question["id"],
        "result": {"action": "accept", "content": {"username": "a", "email": "a@example.com"}},
    });
    let sent = client.send("POST", session, &answer.to_string());
    sent.unwrap().status
}

/// Sets the least severe level of what a session logs.
fn set_level(client: &mut Client, session: &str, level: &str) -> u16 {
    let set = json!({
        "jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": level},
    });
    client
        .send("POST", session, &set.to_string())
        .unwrap()
        .status
}

/// R-SES-05, R-SES-06, R-SSE-04: sessions and streams go on at another server, whose workers are fewer, and sessions after a restart.
#[test]
fn servers_with_one_store_go_on_with_each_others_sessions_and_streams() {
    for program in Program::ALL {
        let store = Server::start(program, &[]);
        let keys = file(
            &format!("keys-{program:?}"),
            &[&"a1".repeat(32), &"b2".repeat(32)],
        );
        let url = store.url();
        let many = Tree::new(3, &[&["--reuse-port"][..], &sharing(&url, &keys)].concat());
        let two = Tree::new(2, &sharing(&url, &keys));
        let alone = [
            &["serve", "http://127.0.0.1:0/mcp"][..],
            &sharing(&url, &keys),
        ]
        .concat();
        let one = Tree::of(Serving::with(&alone));
        let mut sessions = Vec::new();
        for _ in 0..8 {
            let mut client = many.client();
            let session = client.begin().unwrap();
            assert_eq!(set_level(&mut client, &session, "error"), 200);
            sessions.push(session);
        }
        for tree in [&many, &two, &one] {
            for session in &sessions {
                let answer = tree.client().call_in(session, "test_tool_with_logging");
                let answer = answer.unwrap();
                assert_eq!(answer.status, 200, "{session}: {answer:?}");
                // R-LOG-02: the log level goes along.
                assert!(!answer.body.contains("notifications/message"), "{answer:?}");
            }
        }
        for session in &sessions {
            let mut call = many.client().open(session, "test_elicitation");
            let question = call.next().unwrap();
            // R-SSE-10: this displaces the first reader, as soon as its process hears of it.
            let mut elsewhere = one.client().resume(session, &call.id);
            drop(call);
            // The answer comes where the call is.
            assert_eq!(answer(&mut many.client(), session, &question), 202);
            let whole = elsewhere.next().unwrap();
            assert_eq!(whole["id"], 1, "{whole}");
            assert!(whole["result"]["content"].is_array(), "{whole}");
        }
        let (ended, left) = sessions.split_first().unwrap();
        let gone = one.client().send("DELETE", ended, "").unwrap();
        assert_eq!(gone.status, 204, "{gone:?}");
        for tree in [&many, &two, &one] {
            let is_gone = || {
                let answer = tree.client().call_in(ended, "test_simple_text");
                answer.unwrap().status == 404
            };
            assert!(comes(is_gone));
        }
        drop((many, two, one));
        let again = Tree::of(Serving::with(&alone));
        for session in left {
            let answer = again.client().call_in(session, "test_simple_text").unwrap();
            assert_eq!(answer.status, 200, "{session}: {answer:?}");
        }
    }
}

/// R-SES-05: a proxy begins its session with the server again.
#[test]
fn a_proxy_goes_on_with_sessions_of_another_one() {
    let store = Server::start(Program::Valkey, &[]);
    let keys = file("keys-proxy", &[&"a1".repeat(32), &"b2".repeat(32)]);
    let url = store.url();
    let own = PathBuf::from(env!("CARGO_BIN_EXE_mcpbolt"));
    let server = own.with_file_name("examples/workloads");
    let proxy = || {
        let own = ["proxy", "http://127.0.0.1:0/mcp"];
        let behind = ["--", server.to_str().unwrap()];
        Serving::with(&[&own[..], &sharing(&url, &keys), &behind].concat())
    };
    let (one, two) = (proxy(), proxy());
    let session = Client::at(&one.address).begin().unwrap();
    for place in [&one, &two] {
        let answer = Client::at(&place.address)
            .call_in(&session, "echo")
            .unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

/// R-SES-05: workers are replaced, and no client has to begin its session again.
#[test]
fn sessions_outlive_the_workers_that_have_them() {
    let store = Server::start(Program::Valkey, &[]);
    let keys = file("keys-replaced", &[&"a1".repeat(32), &"b2".repeat(32)]);
    let url = store.url();
    let tree = Tree::new(2, &[&["--log", "info"][..], &sharing(&url, &keys)].concat());
    let tally = replaced(&tree);
    assert_eq!(tally.begun_again.load(Relaxed), 0, "{}", tree.log());
}

/// R-CAN-02: what a client sends about a call finds it, though the worker that began the session has ended.
#[test]
fn the_worker_of_a_session_has_one_successor() {
    let store = Server::start(Program::Valkey, &[]);
    let keys = file("keys-successor", &[&"a1".repeat(32), &"b2".repeat(32)]);
    let url = store.url();
    let tree = Tree::new(4, &[&["--log", "info"][..], &sharing(&url, &keys)].concat());
    let sessions = [(); 8].map(|()| tree.client().begin().unwrap());
    let old = tree.workers();
    tree.signal("-HUP");
    assert!(tree.has_replaced(&old), "{}", tree.log());
    for session in &sessions {
        let mut call = tree.client().open(session, "test_elicitation");
        let question = call.next().unwrap();
        // Each comes on a connection of its own, to any worker.
        assert_eq!(answer(&mut tree.client(), session, &question), 202);
        let whole = call.next().unwrap();
        assert!(whole["result"]["content"].is_array(), "{whole}");
        let mut call = tree.client().open(session, "test_elicitation");
        call.next().unwrap();
        let cancel = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1},
        });
        let told = tree.client().send("POST", session, &cancel.to_string());
        assert_eq!(told.unwrap().status, 202);
        let last = call.next().unwrap();
        assert_eq!(last["error"]["code"], -32800, "{last}");
    }
}

/// R-CAN-02, R-SES-05: a worker that was replaced hears what is sent about its calls until they end; everything else of their sessions is
/// served by others.
#[test]
fn a_replaced_worker_hears_of_its_calls_while_others_serve_its_sessions() {
    let store = Server::start(Program::Valkey, &[]);
    let keys = file("keys-heard", &[&"a1".repeat(32), &"b2".repeat(32)]);
    let url = store.url();
    let own = ["--reuse-port", "--grace", "60"];
    let tree = Tree::new(2, &[&own[..], &sharing(&url, &keys)].concat());
    answered_after_replacement(&tree, |client, session| {
        for blanks in [0, 1 << 20] {
            let call = json!({
                "jsonrpc": "2.0", "id": 2, "method": "tools/call",
                "params": {"name": "test_simple_text", "arguments": {"": " ".repeat(blanks)}},
            });
            let answer = client.send("POST", session, &call.to_string()).unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        // A question of the worker that goes on with the session is answered there.
        let mut call = client.open(session, "test_elicitation");
        let question = call.next().unwrap();
        assert_eq!(answer(client, session, &question), 202);
        let whole = call.next().unwrap();
        assert!(whole["result"]["content"].is_array(), "{whole}");
    });
}

/// R-S14-05: gateways with one store count the calls of a client together.
#[test]
fn gateways_with_one_store_count_together() {
    let store = Server::start(Program::Valkey, &[]);
    let keys = file("keys-gateway", &[&"a1".repeat(32), &"b2".repeat(32)]);
    let url = store.url();
    let own = PathBuf::from(env!("CARGO_BIN_EXE_mcpbolt"));
    let server = own.with_file_name("examples/workloads");
    let config = file(
        "counted.toml",
        &[
            "[servers.a]",
            &format!("command = [{:?}]", server.to_str().unwrap()),
            "prefix = \"\"",
            "[policy]",
            "quota = { calls = 3, period = 3600000 }",
        ],
    );
    let own = ["gateway", "http://127.0.0.1:0/mcp", "--config"];
    let own = [&own[..], &[config.to_str().unwrap()], &sharing(&url, &keys)].concat();
    let gateways = [Serving::with(&own), Serving::with(&own)];
    let mut clients = gateways.each_ref().map(|it| Client::at(&it.address));
    let session = clients[0].begin().unwrap();
    let statuses: Vec<_> = (0..6)
        .map(|n| clients[n % 2].call_in(&session, "echo").unwrap().status)
        .collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429, 429]);
    // The names in the store do not show who has called.
    let counts = store.raw("KEYS mcpbolt:q*");
    assert!(
        counts.starts_with("*1") && !counts.contains("quota"),
        "{counts}"
    );
}

/// A server begins without its store, and says so.
#[test]
fn a_server_begins_while_its_store_is_away() {
    let mut store = Server::stopped(Program::Valkey, &[]);
    let keys = file("keys-away", &[&"a1".repeat(32), &"b2".repeat(32)]);
    let url = store.url();
    let trees = [(); 2].map(|()| Tree::new(1, &sharing(&url, &keys)));
    let session = trees[0].client().begin().unwrap();
    let answer = trees[1].client().call_in(&session, "test_simple_text");
    assert_eq!(answer.unwrap().status, 200);
    let told = "sessions are not shared until the store answers";
    assert!(
        comes(|| trees[0].log().contains(told)),
        "{}",
        trees[0].log()
    );
    store.start_again();
    let ends = || {
        let ended = trees[0].client().send("DELETE", &session, "");
        ended.unwrap().status == 204
    };
    assert!(comes(ends));
    let is_gone = || {
        let answer = trees[1].client().call_in(&session, "test_simple_text");
        answer.unwrap().status == 404
    };
    assert!(comes(is_gone));
}

fn refused(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpbolt"));
    let output = command.args(args).env("STORE_SECRET", "hush").output();
    output.unwrap()
}

/// What is wrong is said before anything serves, and no error shows a secret.
#[test]
fn wrong_options_of_a_store_are_refused() {
    let (key, other) = (&*"a1".repeat(32), &*"b2".repeat(32));
    let good = file("keys-good", &[key, "", other, &"c3".repeat(32)]);
    let short = file("keys-short", &[key, "b2b2"]);
    let lonely = file("keys-lonely", &[key]);
    let same = file("keys-same", &[key, key]);
    let open = file("keys-open", &[key, other]);
    set_mode(&open, 0o644);
    let missing = Path::new("/none/store.keys");
    let (http, away) = ("http://127.0.0.1:0/mcp", "redis://127.0.0.1:1/0");
    for (address, url, keys, why) in [
        (http, away, missing, "openssl rand -hex 64"),
        (
            http,
            away,
            &*short,
            "line 2 is not a key, which has 64 hexadecimal digits",
        ),
        (http, away, &lonely, "keys there: 1; two are needed"),
        (http, away, &same, "both keys are the same"),
        (
            http,
            away,
            &open,
            "other users can reach the keys (mode 644); run: chmod 600 ",
        ),
        (
            http,
            "http://127.0.0.1:1",
            &good,
            "write redis://HOST:PORT/DATABASE",
        ),
        (
            http,
            "redis://${env:NOT_SET_HERE}@127.0.0.1",
            &good,
            "the variable NOT_SET_HERE is not set",
        ),
        (
            http,
            "${env:STORE_SECRET}",
            &good,
            "the address of the store is not valid",
        ),
        (
            "tcp:127.0.0.1:0",
            away,
            &good,
            "--store shares sessions of HTTP, and tcp:127.0.0.1:0 has none",
        ),
        ("stdio:", away, &good, "--store shares sessions of HTTP"),
    ] {
        let given = sharing(url, keys);
        let output = refused(&[&["serve", address][..], &given].concat());
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(why), "{told}");
        assert!(!told.contains("hush") && !told.contains("b2b2"), "{told}");
        // A gateway says the same of its options when its file is checked.
        let config = file("store.toml", &["[servers.a]", "command = [\"cat\"]"]);
        let check = [
            "gateway",
            address,
            "--check",
            "--config",
            config.to_str().unwrap(),
        ];
        let checked = refused(&[&check[..], &given].concat());
        assert_eq!(checked.status.code(), Some(1));
        let told = String::from_utf8(checked.stderr).unwrap();
        assert!(told.contains(why), "{told}");
    }
    let keys = good.to_str().unwrap();
    for half in [
        ["--store", away],
        ["--store-keys", keys],
        ["--store-prefix", "a"],
    ] {
        let output = refused(&[&["serve", http][..], &half].concat());
        assert_eq!(output.status.code(), Some(2));
    }
    let config = file("store.toml", &["[servers.a]", "command = [\"cat\"]"]);
    let check = ["gateway", "--check", "--config", config.to_str().unwrap()];
    for (mode, is_fine) in [
        (0o600, true),
        (0o400, true),
        (0o640, true),
        (0o620, false),
        (0o604, false),
    ] {
        set_mode(&good, mode);
        let checked = refused(&[&check[..], &sharing(away, &good)].concat());
        assert_eq!(checked.status.success(), is_fine, "{mode:o}");
    }
}
