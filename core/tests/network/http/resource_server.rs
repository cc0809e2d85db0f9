//! A resource server of OAuth over HTTP: its metadata and challenges, and tokens that the program verifies.

use mcpbolt::connection::Principal;
use mcpbolt::io::http::HttpOptions;
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
            } => Ok("bob".into()),
            other => ApiKeys::new().key("k-bob", "bob").verify(other),
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
/// its binding; other credentials are judged by the same verifier.
#[test]
fn tokens_that_the_program_verifies_are_judged() {
    let serving = serving(ProofUse::Off);
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
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
        ("X-API-Key: k-bob\r\n".into(), "note.read", 200, ""),
        (
            "X-API-Key: k-eve\r\n".into(),
            "note.read",
            401,
            "invalid_token",
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
