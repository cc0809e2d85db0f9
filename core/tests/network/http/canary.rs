//! No secret of a client or of the server in any answer, log, trace, audit event, `Debug` or panic text of ours.

use std::fmt::{Debug, Write as _};
use std::panic;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpbolt::connection::Principal;
use mcpbolt::io::http::HttpOptions;
use mcpbolt::policy::{Credentials, Policy, ProofUse, ResourceServer};
use mcpbolt::server::{Arguments, Server, Tool};

use super::Serving;
use super::credentials::say;

/// Part of every secret here.
const CANARY: &str = "c4n4ry";

/// All that is written down.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<String>>);

impl Written {
    fn add(&self, text: impl Debug) {
        let _ = writeln!(self.0.lock().unwrap(), "{text:?}");
    }
}

impl tracing::field::Visit for Written {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn Debug) {
        self.add((field.name(), value));
    }
}

impl tracing::Subscriber for Written {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        span.record(&mut self.clone());
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

fn policy(written: &Written) -> Policy {
    let secret = format!("{CANARY}-of-the-server-{}", "x".repeat(32));
    let resource = ResourceServer::new("https://api.example/mcp")
        .issuer("https://login.example")
        .issuer("https://other.example")
        .introspection("http://127.0.0.1:9/introspect", "mcp", &secret)
        .proofs(ProofUse::Accepted)
        .proof_nonces([0xc4; 32], Duration::from_secs(60))
        .proxy(format!("http://user:{CANARY}@127.0.0.1:9"))
        .build();
    let audited = written.clone();
    let policy = Policy::new()
        .audit(move |event| audited.add(event.to_json()))
        .audit_to_tracing()
        .audit_arguments()
        .verifier(|credentials| match credentials {
            Credentials::ApiKey(key) if key.ends_with("breaks") => panic!("the verifier breaks"),
            Credentials::ApiKey(key) if key.ends_with("good") => Ok(Principal::new("alice")),
            _ => Err("no"),
        })
        .resource(resource.unwrap());
    written.add(&policy);
    policy
}

/// R-AUX-01: whatever becomes of a request, the credentials that it brought are written down nowhere.
#[test]
fn no_secret_is_written_down() {
    let written = Written::default();
    // The only subscriber and the only hook of this process; other tests add to what is searched.
    let _ = tracing::subscriber::set_global_default(written.clone());
    let (panics, before) = (written.clone(), panic::take_hook());
    panic::set_hook(Box::new(move |panic| {
        panics.add(panic.to_string());
        before(panic);
    }));
    let server = Server::builder("notes", "1")
        .actions(true)
        .policy(policy(&written));
    let server = server.tool(Tool::new("note.read"), |_: Arguments, _| async { "done" });
    let serving = Serving::of(server.build().unwrap(), HttpOptions::default());
    // A header, claims and a signature that name an issuer of ours.
    let jwt = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL290aGVyLmV4YW1wbGUifQ";
    let long = CANARY.repeat(4000);
    let mut statuses = Vec::new();
    for headers in [
        format!("X-API-Key: {CANARY}-good\r\n"),
        format!("X-API-Key: {CANARY}-breaks\r\n"),
        format!("X-API-Key: {CANARY}-wrong\r\n"),
        format!("X-API-Key: {CANARY}\r\nX-API-Key: {CANARY}\r\n"),
        format!("Authorization: Bearer {CANARY}\r\n"),
        format!("Authorization: Bearer {CANARY} {CANARY}\r\n"),
        format!("Authorization: Bearer {jwt}.{CANARY}\r\n"),
        format!("Authorization: Bearer {long}\r\n"),
        format!("Authorization: DPoP {CANARY}\r\nDPoP: {jwt}.{CANARY}\r\n"),
        format!("Authorization: {CANARY} {CANARY}\r\n"),
        // user:c4n4ry
        "Authorization: Basic dXNlcjpjNG40cnk=\r\n".to_owned(),
        format!("Cookie: session={CANARY}\r\n"),
    ] {
        for body in [
            r#"{"action":"note.read","params":{}}"#.to_owned(),
            format!(r#"{{"action":"note.read","params":{{"password":"{CANARY}"}}}}"#),
        ] {
            let place = format!("POST /mcp?access_token={CANARY}");
            let answer = say(&serving, &place, &headers, &body);
            statuses.push(answer.status);
            written.add(&answer);
        }
    }
    serving.end();
    let text = written.0.lock().unwrap();
    for expected in [200, 400, 401, 503] {
        assert!(statuses.contains(&expected), "{expected}: {statuses:?}");
    }
    // Something was written: by the audit, by tracing, and by the hook.
    for sign in ["note.read", "\"status\"", "the verifier breaks"] {
        assert!(text.contains(sign), "{sign}: {text}");
    }
    let leak = text
        .lines()
        .find(|line| line.contains(CANARY) || line.contains("196, 196"));
    assert_eq!(leak, None);
}
