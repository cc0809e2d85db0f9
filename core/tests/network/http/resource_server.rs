//! A resource server of OAuth over HTTP: its metadata and challenges, and tokens that the program verifies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcpbolt::connection::Principal;
use mcpbolt::io::http::HttpOptions;
use mcpbolt::limits::WRONG_CREDENTIALS;
use mcpbolt::policy::{ApiKeys, Credentials, Policy, ProofUse, ResourceServer};
use mcpbolt::server::{Arguments, Server, Tool};
use serde_json::json;

use super::Serving;
use super::credentials::say;

const URL: &str = "https://api.example/mcp";

fn serving(proofs: ProofUse) -> Serving {
    let resource = ResourceServer::new(URL)
        .issuer("https://login.example")
        .scopes(["notes"])
        .proofs(proofs)
        .build()
        .unwrap();
    let policy = Policy::new()
        .verifier(|credentials| match credentials {
            Credentials::Bearer("narrow") => Ok(Principal::new("alice").with_scopes(["notes"])),
            Credentials::Bearer("broad") => Ok(Principal::new("alice").with_scopes(["all"])),
            Credentials::Bearer("none") => Ok(Principal::new("alice")),
            Credentials::Bearer("ended") => Ok(Principal::new("alice").with_expiry(1)),
            Credentials::Bearer("bound") => Ok(Principal::new("alice")
                .with_scopes(["all"])
                .bound_to_key("0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")),
            Credentials::Basic {
                user: "bob",
                password: "s3cret:x",
            } => Ok(Principal::new("bob").with_scopes(["notes"])),
            Credentials::Basic { user: "eve", .. } => Ok("eve".into()),
            Credentials::ApiKey("k-ended") => Ok(Principal::key("bob").with_expiry(1)),
            Credentials::ApiKey("k-bound") => Ok(Principal::key("bob")
                .with_scopes(["all"])
                .bound_to_key("0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")),
            Credentials::ApiKey("k-mtls") => Ok(Principal::key("bob")
                .with_scopes(["all"])
                .bound_to_certificate("0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")),
            other => ApiKeys::new()
                .key("k-bob", Principal::key("bob").with_scopes(["notes"]))
                .key("k-none", "eve")
                .verify(other),
        })
        .resource(resource)
        .scope("note.write", "notes:write")
        .scope("note.erase", "offline_access")
        .scope_implies("all", "notes:write")
        .scope_implies("notes:write", "notes");
    let tool = |name| (Tool::new(name), |_: Arguments, _| async { "done" });
    let (read, write) = (tool("note.read"), tool("note.write"));
    let server = Server::builder("notes", "1").actions(true).policy(policy);
    let server = server.tool(read.0, read.1).tool(write.0, write.1);
    Serving::of(server.build().unwrap(), HttpOptions::default())
}

fn call(serving: &Serving, tool: &str, headers: &str) -> super::wire::Answer {
    let action = json!({"action": tool, "params": {}}).to_string();
    say(serving, "POST /mcp", headers, &action)
}

/// R-AUS-02, R-AUS-03, R-AUS-04, R-AUS-05, R-AUS-09: the metadata is at both places, for pages of any origin; a 401 names
/// it, and the scopes to ask for, without offline access.
#[test]
fn clients_are_told_where_to_get_a_token() {
    let serving = serving(ProofUse::Accepted);
    for path in ["", "/mcp"] {
        let first = format!("GET /.well-known/oauth-protected-resource{path}");
        let answer = say(&serving, &first, "Origin: https://page.example\r\n", "");
        assert_eq!(
            (answer.status, answer.header("access-control-allow-origin")),
            (200, "*")
        );
        let metadata = answer.json();
        assert_eq!(metadata["resource"], URL);
        assert_eq!(
            metadata["authorization_servers"],
            json!(["https://login.example"])
        );
        assert_eq!(
            metadata["scopes_supported"],
            json!(["notes", "notes:write"])
        );
    }
    let answer = call(&serving, "note.read", "");
    assert_eq!(answer.status, 401);
    let challenge = answer.header("www-authenticate");
    let expected = "Bearer resource_metadata=\"https://api.example/.well-known/oauth-protected-resource/mcp\", scope=\"notes\"";
    assert_eq!(challenge, expected);
    serving.end();
}

/// R-AUS-01, R-AUS-06, R-AUS-07, R-AUS-08, R-AUS-10: each token is judged by its scopes, those that they imply, its end and
/// its binding; other credentials are judged in the same way.
#[test]
fn tokens_that_the_program_verifies_are_judged() {
    let serving = serving(ProofUse::Off);
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let key = |key: &str| format!("X-API-Key: {key}\r\n");
    for (headers, tool, status, error) in [
        (bearer("narrow"), "note.read", 200, ""),
        (bearer("narrow"), "note.write", 403, "insufficient_scope"),
        (bearer("broad"), "note.read", 200, ""),
        (bearer("broad"), "note.write", 200, ""),
        (bearer("none"), "note.read", 403, "insufficient_scope"),
        (bearer("ended"), "note.read", 401, "invalid_token"),
        (bearer("bound"), "note.read", 401, "invalid_token"),
        (bearer("other"), "note.read", 401, "invalid_token"),
        (bearer("a b"), "note.read", 400, "invalid_request"),
        (
            bearer("broad").repeat(2),
            "note.read",
            400,
            "invalid_request",
        ),
        (key("k-bob"), "note.read", 200, ""),
        (key("k-bob"), "note.write", 403, "insufficient_scope"),
        (key("k-none"), "note.read", 403, "insufficient_scope"),
        (key("k-ended"), "note.read", 401, "invalid_token"),
        (key("k-bound"), "note.read", 401, "invalid_token"),
        (key("k-mtls"), "note.read", 401, "invalid_token"),
        (key("k-bob").repeat(2), "note.read", 400, "invalid_request"),
        (key("k-eve"), "note.read", 401, "invalid_token"),
        // eve:x
        (
            "Authorization: Basic ZXZlOng=\r\n".into(),
            "note.read",
            403,
            "insufficient_scope",
        ),
        (
            "Authorization: Basic Ym9iOnMzY3JldDp4\r\n".into(),
            "note.read",
            200,
            "",
        ),
        (
            "Authorization: Basic Ym9iOng=\r\n".into(),
            "note.read",
            401,
            "invalid_token",
        ),
    ] {
        let answer = call(&serving, tool, &headers);
        assert_eq!(answer.status, status, "{headers}{answer:?}");
        let challenge = answer.header("www-authenticate");
        let said = format!("error=\"{error}\"");
        assert!(
            error.is_empty() || challenge.contains(&said),
            "{headers}{answer:?}"
        );
    }
    let answer = say(&serving, "POST /mcp?access_token=broad", "", "{}");
    assert_eq!(answer.status, 401);
    serving.end();
}

/// R-AUS-07: a verifier that has no verdict says nothing about a token: the client is told to come again, and the next
/// request is verified anew.
#[test]
fn a_token_without_a_verdict_is_not_refused_for_good() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let resource = ResourceServer::new(URL).issuer("https://login.example");
    let resource = resource.cached_for(Duration::from_secs(600)).build();
    let policy = Policy::new()
        .async_verifier(move |credentials| {
            let time = count.fetch_add(1, Ordering::SeqCst);
            let is_good = matches!(credentials, Credentials::Bearer("good"));
            async move {
                match time {
                    0 => std::future::pending().await,
                    1 => panic!("the verifier breaks"),
                    _ if is_good => Ok(Principal::new("alice")),
                    _ => Err("no".to_owned()),
                }
            }
        })
        .verifier_timeout(Duration::from_millis(50))
        .resource(resource.unwrap());
    let server = Server::builder("notes", "1").actions(true).policy(policy);
    let server = server.tool(Tool::new("note.read"), |_: Arguments, _| async { "done" });
    let serving = Serving::of(server.build().unwrap(), HttpOptions::default());
    let statuses = |token: &str| {
        let headers = format!("Authorization: Bearer {token}\r\n");
        call(&serving, "note.read", &headers).status
    };
    let seen: Vec<_> = ["good", "good", "good", "good", "bad", "bad"]
        .map(statuses)
        .into();
    assert_eq!(seen, [503, 503, 200, 200, 401, 401]);
    assert_eq!(asked.load(Ordering::SeqCst), 4, "verdicts are used again");
    serving.end();
}

/// R-AUX-03: a client whose token has ended, or lacks a proof or scopes, does not guess; one that makes tokens up does.
#[test]
fn only_tokens_that_nobody_issued_count_as_guesses() {
    let serving = serving(ProofUse::Off);
    let many = WRONG_CREDENTIALS.burst + 1;
    let mut wire = super::wire::Wire::open(serving.at);
    let mut status = |token: &str| {
        let body = r#"{"action":"note.read","params":{}}"#;
        let head = format!(
            "Authorization: Bearer {token}\r\nContent-Length: {}",
            body.len()
        );
        let usual = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
        wire.send(format!("{usual}\r\n{head}\r\n\r\n{body}").as_bytes());
        wire.answer().status
    };
    for token in ["ended", "bound", "none"] {
        let expected = if token == "none" { 403 } else { 401 };
        assert!((0..many).all(|_| status(token) == expected), "{token}");
    }
    // The rate lets some more pass while these are sent.
    assert!((0..20 * many).any(|_| status("made-up") == 429));
    serving.end();
}
