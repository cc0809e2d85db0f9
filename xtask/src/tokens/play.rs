//! Plays a case against a server.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::authority::Authority;
use super::case::{Ask, Case, Expected, Step};
use super::mint::Keys;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The metadata of every resource of the corpus.
const METADATA: &str = "https://api.example/.well-known/oauth-protected-resource/mcp";

pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Answer {
    fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let own = self.headers.iter().filter(move |(own, _)| own == name);
        own.map(|(_, value)| &**value)
    }
}

/// What is kept between the steps of a case.
#[derive(Default)]
struct Kept {
    nonce: Option<String>,
    /// The last token and the last proofs, which `$same` stands for.
    token: String,
    proofs: Vec<String>,
}

pub fn play(case: &Case, at: SocketAddr, keys: &Keys, authority: &Authority) -> Result<()> {
    let mut kept = Kept::default();
    for (number, step) in case.steps.iter().enumerate() {
        let played = take(step, at, keys, authority, &mut kept);
        played.with_context(|| format!("step {}", number + 1))?;
    }
    Ok(())
}

fn take(
    step: &Step,
    at: SocketAddr,
    keys: &Keys,
    authority: &Authority,
    kept: &mut Kept,
) -> Result<()> {
    if let Some(change) = &step.authority {
        authority.change(change);
    }
    let Some(expected) = &step.expect else {
        return Ok(());
    };
    let mut head = String::new();
    if let Some(told) = &step.token {
        if told != "$same" {
            kept.token = keys.token(told, &authority.issuer)?;
        }
        head.push_str(&format!(
            "Authorization: {} {}\r\n",
            step.scheme, kept.token
        ));
    }
    let mut proofs = Vec::new();
    for told in &step.proofs {
        let nonce = kept.nonce.as_deref();
        proofs.push(match told == "$same" {
            true => kept.proofs.first().cloned().unwrap_or_default(),
            false => keys.proof(told, &kept.token, &step.method, nonce, &authority.issuer)?,
        });
    }
    for proof in &proofs {
        head.push_str(&format!("DPoP: {proof}\r\n"));
    }
    for line in &step.headers {
        head.push_str(&format!("{}\r\n", line.replace("$token", &kept.token)));
    }
    let path = step.path.replace("$token", &kept.token);
    let answer = ask(step, at, &path, &head)?;
    if let Some(nonce) = answer.all("dpop-nonce").next() {
        kept.nonce = Some(nonce.to_owned());
    }
    kept.proofs = proofs;
    let shown = format!("{} {:?} {}", answer.status, answer.headers, answer.body);
    check(expected, &answer, authority).context(shown)?;
    let secrets = kept
        .proofs
        .iter()
        .chain([&kept.token])
        .filter(|it| it.len() > 8);
    for secret in secrets {
        let said = format!("{:?} {}", answer.headers, answer.body);
        ensure!(
            !said.contains(&**secret),
            "the answer repeats a token or a proof"
        );
    }
    Ok(())
}

fn ask(step: &Step, at: SocketAddr, path: &str, head: &str) -> Result<Answer> {
    let (method, name, params) = match &step.ask {
        Ask::Call(tool) => (
            "tools/call",
            &**tool,
            json!({"name": tool, "arguments": {}}),
        ),
        Ask::Read(uri) => ("resources/read", &**uri, json!({"uri": uri})),
        Ask::Prompt(prompt) => ("prompts/get", &**prompt, json!({"name": prompt})),
        Ask::List(of) => (&**of, "", json!({})),
        Ask::Nothing => ("", "", Value::Null),
    };
    let mut body = String::new();
    let mut own = String::new();
    if !method.is_empty() {
        let mut call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        call["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        body = call.to_string();
        own = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n");
        if !name.is_empty() {
            own.push_str(&format!("Mcp-Name: {name}\r\n"));
        }
    }
    let mut stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let request = format!(
        "{} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{own}{head}Content-Length: {}\r\n\r\n{body}",
        step.method,
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    // A server that refuses a long head may reset the connection.
    let read = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = text
        .split_once("\r\n\r\n")
        .with_context(|| format!("no answer: {read:?}"))?;
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default().split(' ').nth(1);
    let headers = lines.filter_map(|line| line.split_once(": "));
    Ok(Answer {
        status: status.unwrap_or_default().parse()?,
        headers: headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect(),
        body: body.to_owned(),
    })
}

fn check(expected: &Expected, answer: &Answer, authority: &Authority) -> Result<()> {
    ensure!(
        answer.status == expected.status,
        "the status is not {}",
        expected.status
    );
    let challenges: Vec<_> = answer.all("www-authenticate").collect();
    for challenge in &challenges {
        let said = parameter(challenge, "resource_metadata");
        ensure!(
            said == METADATA,
            "a challenge names no metadata: {challenge}"
        );
        ensure!(
            !challenge.contains("offline_access"),
            "a challenge asks for offline access"
        );
        if let Some(scope) = &expected.scope {
            let said = parameter(challenge, "scope");
            ensure!(
                said == scope,
                "a challenge has the scope {said:?}, not {scope:?}"
            );
        }
    }
    if let Some(schemes) = &expected.schemes {
        let said: Vec<_> = challenges
            .iter()
            .map(|it| it.split(' ').next().unwrap_or_default())
            .collect();
        ensure!(
            said == *schemes,
            "the challenges are {said:?}, not {schemes:?}"
        );
    }
    let first = challenges.first().copied().unwrap_or_default();
    if let Some(error) = &expected.error {
        let said = parameter(first, "error");
        ensure!(said == error, "the error is {said:?}, not {error:?}");
    }
    if let Some(why) = &expected.why {
        let said = parameter(first, "error_description");
        ensure!(
            said.contains(&**why),
            "the description is {said:?}, not {why:?}"
        );
    }
    for part in &expected.body {
        let part = part.replace("$issuer", &authority.issuer);
        ensure!(answer.body.contains(&*part), "the body has no {part:?}");
    }
    for part in &expected.lacks {
        ensure!(!answer.body.contains(&**part), "the body has {part:?}");
    }
    for (name, part) in &expected.headers {
        let said: Vec<_> = answer.all(name).collect();
        match &**part {
            "" => ensure!(said.is_empty(), "there is a header {name}: {said:?}"),
            part => ensure!(
                said.iter().any(|it| it.contains(part)),
                "{name} is {said:?}, not {part:?}"
            ),
        }
    }
    if let Some(times) = expected.asked {
        let asked = authority.asked();
        ensure!(
            asked == times,
            "the authorization server was asked {asked} times, not {times}"
        );
    }
    Ok(())
}

/// The value of a parameter of a challenge; empty if it is missing.
fn parameter<'a>(challenge: &'a str, name: &str) -> &'a str {
    let after = challenge.split(&format!(" {name}=\"")).nth(1);
    after
        .and_then(|it| it.split('"').next())
        .unwrap_or_default()
}
