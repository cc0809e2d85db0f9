//! A session belongs to one worker; its requests come to any.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::serving::Serving;
use crate::tree::{Tree, comes, limit_descriptors};

/// A little longer than a worker that is replaced takes requests.
const LAST_REQUESTS: Duration = Duration::from_secs(6);

/// Clients with sessions at several workers.
fn begun(tree: &Tree, count: usize) -> Vec<(Client, String)> {
    let begun = (0..count).map(|_| {
        let mut client = tree.client();
        let session = client.begin().unwrap();
        (client, session)
    });
    begun.collect()
}

/// The worker that a session's id names.
fn worker(session: &str) -> &str {
    let id = session.lines().next().unwrap();
    id.rsplit_once('-').unwrap().1
}

/// Each call of each session on a connection of its own, so that most come to another worker than the session's.
#[test]
fn a_session_is_served_by_whichever_worker_gets_its_requests() {
    let tree = Tree::new(3, &["--reuse-port"]);
    let mut clients = begun(&tree, 12);
    let owners: BTreeSet<_> = clients.iter().map(|(_, session)| worker(session)).collect();
    assert!(owners.len() > 1, "{owners:?}");
    for _ in 0..20 {
        for (client, session) in &mut clients {
            client.hang_up();
            let answer = client.call_in(session, "test_simple_text").unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
            assert_eq!(answer.text(), "This is a simple text response for testing.");
        }
    }
    for (client, session) in &mut clients {
        client.hang_up();
        let ended = client.send("DELETE", session, "").unwrap();
        assert_eq!(ended.status, 204, "{ended:?}");
        client.hang_up();
        // R-SES-05.
        let gone = client.call_in(session, "test_simple_text").unwrap();
        assert_eq!(gone.status, 404, "{gone:?}");
    }
}

/// A call that asks its client: the question comes on the stream of the call, and the answer to any worker.
#[test]
fn an_answer_finds_the_call_that_asked() {
    let tree = Tree::new(3, &["--reuse-port"]);
    for (mut client, session) in begun(&tree, 12) {
        let mut call = client.open(&session, "test_elicitation");
        let question = call.next().unwrap();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let answer = json!({
            "jsonrpc": "2.0", "id": question["id"],
            "result": {"action": "accept", "content": {"username": "a", "email": "a@example.com"}},
        });
        client.hang_up();
        let taken = client.send("POST", &session, &answer.to_string()).unwrap();
        assert_eq!(taken.status, 202, "{taken:?}");
        let answer = call.next().unwrap();
        assert_eq!(answer["id"], 1, "{answer}");
        assert!(answer["result"]["content"].is_array(), "{answer}");
    }
}

/// R-MRT-08: the state of a call that asks its client is good at every worker, each round on a connection of its own; and after all
/// have been replaced.
#[test]
fn a_call_goes_on_at_another_worker() {
    const TOOL: &str = "test_input_required_result_elicitation";
    let tree = Tree::new(3, &["--reuse-port"]);
    let mut client = tree.client();
    let mut asked = |round: &Value| {
        client.hang_up();
        client.call_with(TOOL, round).unwrap().message()
    };
    let first = asked(&json!({}));
    let (key, _) = first["result"]["inputRequests"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .unwrap();
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    let round =
        json!({"requestState": first["result"]["requestState"], "inputResponses": {key: answer}});
    for _ in 0..12 {
        let done = asked(&round);
        assert!(done["result"]["content"].is_array(), "{done}");
    }
    let old = tree.workers();
    tree.signal("-HUP");
    assert!(tree.has_replaced(&old), "{}", tree.log());
    let done = asked(&round);
    assert!(done["result"]["content"].is_array(), "{done}");
}

/// A user may take a while to answer, and the worker that asks may have been replaced by then.
#[test]
fn an_answer_finds_the_call_that_asked_after_its_worker_was_replaced() {
    let tree = Tree::new(2, &["--reuse-port", "--grace", "60"]);
    answered_after_replacement(&tree, |_, _| ());
}

/// Has calls ask their clients, replaces the worker of some, and has clients answer when it takes no requests any more. Before, `meanwhile`
/// does something in each session.
pub fn answered_after_replacement(tree: &Tree, meanwhile: impl Fn(&mut Client, &str)) {
    let mut clients = begun(tree, 6);
    // The first worker is replaced first.
    while clients.iter().all(|(_, session)| worker(session) != "1") {
        assert!(clients.len() < 100, "the first worker gets no connection");
        clients.extend(begun(tree, 1));
    }
    let mut asked: Vec<_> = clients
        .into_iter()
        .map(|(client, session)| {
            let mut call = client.open(&session, "test_elicitation");
            let question = call.next().unwrap();
            (client, session, call, question)
        })
        .collect();
    let old = tree.workers();
    tree.signal("-HUP");
    // The first one has been replaced, and waits for its calls; the other one waits for it.
    assert!(comes(|| tree.log().matches("a worker serves").count() > 2));
    std::thread::sleep(LAST_REQUESTS);
    for (client, session, call, question) in &mut asked {
        client.hang_up();
        meanwhile(client, session);
        let answer =
            json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
        client.hang_up();
        let taken = client.send("POST", session, &answer.to_string()).unwrap();
        assert_eq!(taken.status, 202, "{taken:?}");
        let answer = call.next().unwrap();
        assert!(answer["result"]["content"].is_array(), "{answer}");
    }
    assert!(tree.has_replaced(&old), "{}", tree.log());
}

/// R-SES-05: a client would throw its session away at 404, so it is asked to wait.
#[test]
fn a_session_outlasts_a_want_of_descriptors() {
    let tree = Tree::new(2, &["--reuse-port"]);
    let mut clients = begun(&tree, 12);
    let (mut client, own) = clients.pop().unwrap();
    let of_another = |(_, session): &&(Client, String)| worker(session) != worker(&own);
    let (_, session) = clients.iter().find(of_another).unwrap();
    let limits = tree.workers().into_iter();
    let limits: Vec<_> = limits.map(|it| (it, limit_descriptors(it, 3))).collect();
    let busy = client.call_in(session, "test_simple_text").unwrap();
    assert_eq!(busy.status, 503, "{busy:?}");
    assert_eq!(busy.retry_after.as_deref(), Some("1"));
    for (process, limit) in limits {
        limit_descriptors(process, limit);
    }
    let answer = client.call_in(session, "test_simple_text").unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Some systems remove old files from the folder for temporary ones.
#[test]
fn workers_whose_folder_was_removed_are_replaced() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("removed");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    let own = [
        "serve",
        "http://127.0.0.1:0/mcp",
        "--workers",
        "2",
        "--reuse-port",
    ];
    let variables = [("TMPDIR", folder.to_str().unwrap())];
    let tree = Tree::of(Serving::with_env(&own, &variables));
    let old = tree.workers();
    let mut clients = begun(&tree, 6);
    for entry in std::fs::read_dir(&folder).unwrap() {
        std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
    for (client, session) in &mut clients {
        client.hang_up();
        let answer = client.call_in(session, "test_simple_text").unwrap();
        assert!(matches!(answer.status, 200 | 503), "{answer:?}");
    }
    assert!(tree.has_replaced(&old), "{}", tree.log());
    assert!(
        tree.log().contains("somebody has removed the folder"),
        "{}",
        tree.log()
    );
    for (mut client, session) in begun(&tree, 6) {
        client.hang_up();
        let answer = client.call_in(&session, "test_simple_text").unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

/// R-SES-05: nobody can name a worker that is not there, and a session of a worker is of no other.
#[test]
fn a_session_of_no_worker_is_unknown() {
    let tree = Tree::new(2, &[]);
    let mut client = tree.client();
    for id in [
        "a-99",
        "a-0",
        "a-18446744073709551615",
        "a-18446744073709551616",
        "a-1",
        "a-2",
        "a",
    ] {
        let session = format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
        let answer = client.call_in(&session, "test_simple_text").unwrap();
        assert_eq!(answer.status, 404, "{id}: {answer:?}");
    }
}

/// What a request is checked for is checked where it is served, for the host that the client wrote (R-HTP-06).
#[test]
fn a_request_that_is_passed_on_is_checked() {
    let tree = Tree::new(2, &["--reuse-port"]);
    for (mut client, session) in begun(&tree, 6) {
        for (header, status) in [
            ("Origin: https://evil.example.com\r\n", 403),
            ("Origin: http://localhost:3000\r\n", 200),
        ] {
            client.hang_up();
            let headers = format!("{session}{header}");
            let answer = client.call_in(&headers, "test_simple_text").unwrap();
            assert_eq!(answer.status, status, "{answer:?}");
        }
    }
}
