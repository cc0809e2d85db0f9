//! The pages that a user sees.

use std::fmt::Write as _;

use url::Url;

use super::authorize::AuthorizationRequest;
use super::clients::RegisteredClient;
use super::options::ConsentProxyOptions;
use super::reply::ProxyReply;
use crate::local::is_local;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1rem;color:#1d1d1f;background:#fff}\
dt{color:#57575c}dd{margin:0 0 .8rem;overflow-wrap:anywhere}button{font:inherit;padding:.5rem 1.4rem;margin-right:.8rem;border-radius:.4rem;border:1px solid #6e6e73;background:#fff;color:inherit}\
button.yes{background:#0b57d0;border-color:#0b57d0;color:#fff}\
@media(prefers-color-scheme:dark){body,button{background:#1d1d1f;color:#f5f5f7}dt{color:#a1a1a6}}";

/// Asks whether a client may act for the user: who it says it is, where the answer goes, what it may do.
pub fn consent(
    options: &ConsentProxyOptions,
    client: &RegisteredClient,
    request: &AuthorizationRequest,
    sealed: &str,
) -> ProxyReply {
    let (name, server) = (escaped(&client.name), escaped(&options.name));
    let mut rows = String::new();
    let mut row = |what: &str, value: &str| {
        let _ = write!(rows, "<dt>{what}</dt><dd>{}</dd>", escaped(value));
    };
    let to = Url::parse(&request.redirect).ok();
    let is_here = to.as_ref().is_some_and(is_local);
    let host = to.as_ref().and_then(Url::host_str).unwrap_or_default();
    match is_here {
        true => row("The answer goes to", "a program on this computer"),
        false => row("The answer goes to", host),
    }
    row("Address", &request.redirect);
    if !request.scopes.is_empty() {
        row("It may", &request.scopes.join(", "));
    }
    row("At", &options.resource);
    let action = escaped(&format!("{}/consent", options.issuer));
    let html = document(
        &format!("Allow {name}?"),
        &format!(
            "<h1>Allow <em>{name}</em> to use {server} for you?</h1>\
             <p>The application names itself; nobody has checked the name. Go on only if you have just begun this login.</p>\
             <dl>{rows}</dl>\
             <form method=\"post\" action=\"{action}\"><input type=\"hidden\" name=\"request\" value=\"{}\">\
             <button class=\"yes\" name=\"answer\" value=\"allow\">Allow</button><button name=\"answer\" value=\"deny\">Do not allow</button></form>",
            escaped(sealed)
        ),
    );
    ProxyReply::page(200, html)
}

/// Tells the user what is wrong, where nobody can be answered.
pub fn refused(why: &str) -> ProxyReply {
    let text = format!("<h1>This login cannot go on</h1><p>{}</p>", escaped(why));
    ProxyReply::page(400, document("This login cannot go on", &text))
}

fn document(title: &str, text: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style><body>{text}"
    )
}

/// A text within HTML. Characters that change the direction of writing, and so what is read, are left out.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c => escaped.push(c),
        }
    }
    escaped
}
