//! What the two eras say differently: capabilities, results, error codes (R-CHN-09, R-CHN-13, R-CHN-17).

use super::params::{is_any, json_text, push};
use crate::connection::PeerInfo;
use crate::error::PeerError;
use crate::json::reader;
use crate::mcp::code::{
    HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, MISSING_CLIENT_CAPABILITY,
    REQUEST_CANCELLED, UNSUPPORTED_VERSION, URL_ELICITATION_REQUIRED,
};
use crate::mcp::{Era, Method, Revision, meta};
use crate::unguessable;

/// The capabilities of a server of era `from`, as a client of era `to` may use them through a hop. Within an era all are
/// passed on. Between eras, only those whose messages the hop translates: tasks and extensions have other
/// messages in each era. The same to clients of the handshake era that share a connection: their tasks would be those of all.
pub(super) fn server_capabilities(
    capabilities: &str,
    from: Era,
    to: Era,
    is_shared: bool,
) -> String {
    pick(
        capabilities,
        from == to && !(is_shared && to == Era::Handshake),
        &[
            "tools",
            "resources",
            "prompts",
            "completions",
            "logging",
            "experimental",
        ],
    )
}

/// The capabilities of a client of era `from`, as a server of era `to` may use them through a hop.
pub(super) fn client_capabilities(capabilities: &str, from: Era, to: Era) -> String {
    let picked = pick(
        capabilities,
        from == to,
        &["roots", "sampling", "elicitation", "experimental"],
    );
    match (from, to) {
        // The roots of a client of the newer era are asked for anew in each call: they never change.
        (Era::Stateless, Era::Handshake) => picked,
        // No such notification exists there.
        (Era::Handshake, Era::Stateless) if reader::find(&picked, "roots").is_some() => {
            let mut out = vec![b'{'];
            for (name, value) in reader::members(&picked) {
                let value = if name == "roots" { "{}" } else { value };
                push(&mut out, name.raw(), value);
            }
            out.push(b'}');
            String::from_utf8(out).unwrap_or_default()
        }
        _ => picked,
    }
}

/// The members of `_meta` with which requests of a connection describe its client, for another client, which is of the handshake
/// era.
pub(super) fn envelope(members: &str, client: &PeerInfo) -> String {
    let declared = client_capabilities(&client.capabilities, Era::Handshake, Era::Stateless);
    let mut out = vec![b'{'];
    for (name, value) in reader::members(&format!("{{{members}}}")) {
        let value = match () {
            () if name == meta::CLIENT_CAPABILITIES => &declared,
            () if name == meta::CLIENT_INFO && !client.implementation.is_empty() => {
                &*client.implementation
            }
            () => value,
        };
        push(&mut out, name.raw(), value);
    }
    String::from_utf8(out.split_off(1)).unwrap_or_default()
}

fn pick(capabilities: &str, all: bool, names: &[&str]) -> String {
    if all {
        return capabilities.to_owned();
    }
    let mut out = vec![b'{'];
    for (name, value) in reader::members(capabilities) {
        if is_any(name, names) {
            push(&mut out, name.raw(), value);
        }
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// Whether a question sends the user to a page.
pub(super) fn is_page(method: Option<Method>, params: &str) -> bool {
    let mode = reader::find(params, "mode").and_then(reader::as_str);
    method == Some(Method::Elicit) && mode.as_deref() == Some("url")
}

/// The params of a question to a client of era `to`. In the handshake era a page has an id, so that the server can say later
/// that the user has finished there; in the stateless era it has none.
pub(super) fn question(method: Option<Method>, params: String, to: Era) -> String {
    const ID: &str = "elicitationId";
    if !is_page(method, &params) {
        return params;
    }
    let has_id = reader::find(&params, ID).is_some();
    if has_id == (to == Era::Handshake) {
        return params;
    }
    let mut out = vec![b'{'];
    for (name, value) in reader::members(&params).filter(|(name, _)| *name != ID) {
        push(&mut out, name.raw(), value);
    }
    if !has_id && let Some(id) = unguessable::name() {
        push(&mut out, ID, &json_text(&id));
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// The results that carry how long they may be cached, from 2026-07-28 on (R-CCH-01).
fn is_cacheable(method: Option<Method>) -> bool {
    matches!(
        method,
        Some(
            Method::Discover
                | Method::ListTools
                | Method::ListPrompts
                | Method::ListResources
                | Method::ListResourceTemplates
                | Method::ReadResource
        )
    )
}

/// The members of results that are new in 2026-07-28.
const NEWER: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// The members that a result of `method` has from 2026-07-28 on, and not before: after each of the result's own members,
/// with a comma before each. `server` is the server's `Implementation`.
pub(super) fn newer_result(result: &str, method: Option<Method>, server: &str) -> String {
    let mut out = vec![b'{'];
    let mut own = "{}";
    for (name, value) in reader::members(result) {
        if name == "_meta" {
            own = value;
        } else if !is_any(name, &NEWER) {
            push(&mut out, name.raw(), value);
        }
    }
    push(&mut out, "resultType", "\"complete\"");
    if is_cacheable(method) {
        push(&mut out, "ttlMs", "0");
        push(&mut out, "cacheScope", "\"private\"");
    }
    let has_name = reader::find(own, meta::SERVER_INFO).is_some();
    if !server.is_empty() && !has_name {
        let mut meta = vec![b'{'];
        for (name, value) in reader::members(own) {
            push(&mut meta, name.raw(), value);
        }
        push(&mut meta, meta::SERVER_INFO, server);
        meta.push(b'}');
        push(
            &mut out,
            "_meta",
            std::str::from_utf8(&meta).unwrap_or("{}"),
        );
    } else if own != "{}" {
        push(&mut out, "_meta", own);
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// A result without the members that are new in 2026-07-28.
pub(super) fn older_result(result: &str) -> String {
    let mut out = vec![b'{'];
    for (name, value) in reader::members(result) {
        if !is_any(name, &NEWER) {
            push(&mut out, name.raw(), value);
        }
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

/// The code of a peer's error, as a peer of `to` knows it. Within an era codes pass unchanged, but for those that 2026-07-28 has
/// ended (R-ERR-05); -32042 of an older server stays, since it is not told but [acted upon](super::url_elicitation).
pub(super) fn code(error: &PeerError, from: Revision, to: Revision) -> i64 {
    const NOT_FOUND: i64 = -32002;
    let lacks = || {
        let data = error.data.as_deref().unwrap_or_default();
        reader::find(data, "requiredCapabilities").is_some()
    };
    match (from.era(), to.era()) {
        (Era::Handshake, Era::Stateless) => match error.code {
            INVALID_REQUEST if lacks() => MISSING_CLIENT_CAPABILITY,
            NOT_FOUND => INVALID_PARAMS,
            REQUEST_CANCELLED => INTERNAL_ERROR,
            URL_ELICITATION_REQUIRED => URL_ELICITATION_REQUIRED,
            // Reserved there, and with other meanings.
            -32099..=-32000 => INTERNAL_ERROR,
            code => code,
        },
        (Era::Stateless, Era::Handshake) => match error.code {
            UNSUPPORTED_VERSION => INVALID_PARAMS,
            MISSING_CLIENT_CAPABILITY | HEADER_MISMATCH => INVALID_REQUEST,
            code => code,
        },
        (Era::Stateless, Era::Stateless) => match error.code {
            NOT_FOUND => INVALID_PARAMS,
            URL_ELICITATION_REQUIRED => INTERNAL_ERROR,
            code => code,
        },
        (Era::Handshake, Era::Handshake) => error.code,
    }
}
