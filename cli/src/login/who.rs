//! The stored documents of a login.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpbolt::client::block_on;
use mcpbolt::io::login::{FileStore, ServerCredentials};
use serde_json::{Value, json};

use super::Server;
use crate::shown;

/// Show a stored login, without asking anybody.
#[derive(clap::Args)]
pub struct Whoami {
    #[command(flatten)]
    server: Server,
    /// Show JSON
    #[arg(long)]
    json: bool,
}

/// Prints the stored login of a server. Fails if there is none.
pub fn whoami(args: &Whoami) -> Result<u8> {
    let url = args.server.url()?;
    let Some(who) = load(&FileStore::of_the_user()?, &url)? else {
        eprintln!("There is no login for {url}; run: mcpbolt login {url}");
        return Ok(1);
    };
    match args.json {
        true => shown::print(&shown::json(&format!("{:#}\n", who.0)))?,
        false => shown::print(&who.lines())?,
    }
    Ok(0)
}

/// The facts of a login, without secrets.
pub struct Who(Value);

/// The stored login of a server.
pub fn load(store: &FileStore, url: &str) -> Result<Option<Who>> {
    let credentials = block_on(ServerCredentials::load(store, url));
    let credentials = credentials.context("reading the stored login")?;
    Ok(credentials.map(|credentials| Who(about(&credentials, now()))))
}

fn about(credentials: &ServerCredentials, now: u64) -> Value {
    let tokens = credentials.tokens();
    let left = tokens.expires_at.map(|end| end.saturating_sub(now));
    json!({
        "issuer": credentials.issuer(),
        "resource": credentials.resource(),
        "clientId": credentials.client_id(),
        "subject": subject(&tokens.access_token),
        "scopes": tokens.scope.as_deref().map(|scope| scope.split(' ').collect::<Vec<_>>()),
        "tokenType": tokens.token_type,
        "expiresAt": tokens.expires_at,
        "secondsLeft": left,
        "refreshes": tokens.refresh_token.is_some(),
        "isBound": tokens.dpop_key.is_some(),
    })
}

impl Who {
    /// A line for each fact.
    pub fn lines(&self) -> String {
        let Self(who) = self;
        let scopes = who["scopes"].as_array().map(|scopes| {
            let names = scopes.iter().filter_map(Value::as_str);
            names.collect::<Vec<_>>().join(" ")
        });
        let ends = match (who["secondsLeft"].as_u64(), who["refreshes"] == true) {
            (Some(0), true) => "has ended; the next use refreshes it".to_owned(),
            (Some(0), false) => "has ended; log in again".to_owned(),
            (Some(left), true) => format!("valid for {}, then refreshed", time(left)),
            (Some(left), false) => format!("valid for {}, then log in again", time(left)),
            (None, true) => "valid until the server refuses it, then refreshed".to_owned(),
            (None, false) => "valid until the server refuses it".to_owned(),
        };
        let bound = if who["isBound"] == true {
            ", bound to a key (DPoP)"
        } else {
            ""
        };
        let text = |name: &str| who[name].as_str().unwrap_or("unknown").to_owned();
        let lines = [
            ("user", text("subject")),
            ("scopes", scopes.unwrap_or_else(|| "unknown".to_owned())),
            ("issuer", text("issuer")),
            ("resource", text("resource")),
            ("client", text("clientId")),
            ("token", format!("{ends}{bound}")),
        ];
        let line = |(name, value): (&str, String)| format!("  {name:<10}{}\n", shown::line(&value));
        lines.into_iter().map(line).collect()
    }
}

/// Who a signed access token is about. It is not verified: the server does that.
fn subject(token: &str) -> Option<String> {
    let claims = token
        .split('.')
        .nth(1)
        .filter(|_| token.split('.').count() == 3)?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    let of = |name: &str| claims[name].as_str().map(str::to_owned);
    of("preferred_username")
        .or_else(|| of("email"))
        .or_else(|| of("sub"))
}

fn time(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} seconds"),
        120..7200 => format!("{} minutes", seconds / 60),
        7200..172_800 => format!("{} hours", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
