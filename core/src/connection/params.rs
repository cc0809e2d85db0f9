//! Encodes the requests and notifications of this side, with the `_meta` that the revision requires.

use super::config::Config;
use super::options::RequestOptions;
use crate::buffer::PADDING;
use crate::correlate::RequestKey;
use crate::error::RequestError;
use crate::json::{number, reader, string, validate_head, writer};
use crate::limits::Limits;
use crate::mcp::{Era, Method, Revision, Side, TraceContext, meta, trace_context};

/// The `_meta` members that every request of this side carries in `revision`, separated by commas;
/// `None` if there are none.
pub(crate) fn envelope(config: &Config, revision: Revision) -> Option<Box<[u8]>> {
    if revision.era() == Era::Handshake || config.side == Side::Server {
        return None;
    }
    let mut out = Vec::new();
    raw_key(&mut out, meta::PROTOCOL_VERSION);
    string::append(&mut out, revision.name());
    out.push(b',');
    raw_key(&mut out, meta::CLIENT_INFO);
    writer::append_compact(&mut out, &config.implementation);
    out.push(b',');
    raw_key(&mut out, meta::CLIENT_CAPABILITIES);
    writer::append_compact(&mut out, config.capabilities(revision));
    Some(out.into())
}

/// Appends one request with the [`envelope`] of its revision. The progress token is the request's own
/// id, which is unique among the active requests (R-PRG-01).
///
/// # Errors
/// If `params` or the options' `_meta` is not a JSON object, or a trace context or baggage in `_meta`
/// is not valid.
pub(crate) fn request(
    out: &mut Vec<u8>,
    envelope: Option<&[u8]>,
    key: RequestKey,
    method: &str,
    params: Option<&str>,
    options: &RequestOptions,
) -> Result<(), RequestError> {
    let own = options.meta.as_deref().map(str::trim_ascii);
    if own.is_some_and(|own| !is_object(own)) {
        return Err(RequestError::Misuse("_meta must be a JSON object"));
    }
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    number::append(out, key.get());
    out.extend_from_slice(b",\"method\":");
    append_method(out, method);
    let head = out.len();
    let params = append_params(out, params)?;
    if envelope.is_none() && options.progress.is_none() && own.is_none() {
        out.push(b'}');
        return Ok(());
    }
    let mut theirs = None;
    match params {
        Some(params) if may_hold_meta(params) => {
            out.truncate(head);
            out.extend_from_slice(b",\"params\":{");
            theirs = append_all_but_meta(out, params);
        }
        // The params were copied: reopen the object to add `_meta`.
        Some(_) => {
            out.pop();
            let end = out.trim_ascii_end().len();
            out.truncate(end);
            if out.last() != Some(&b'{') {
                out.push(b',');
            }
        }
        None => out.extend_from_slice(b",\"params\":{"),
    }
    out.extend_from_slice(b"\"_meta\":{");
    let start = out.len();
    let theirs = theirs.into_iter().flat_map(reader::members);
    let owns = || own.into_iter().flat_map(reader::members);
    // A member that both have is written once, with the options' value.
    let theirs = theirs.filter(|(name, _)| owns().all(|(own, _)| own != *name));
    for (name, value) in theirs.chain(owns()) {
        let name = name.raw();
        if reader::as_str(value).is_some_and(|value| !trace_context::is_valid(name, &value)) {
            return Err(RequestError::Misuse(
                "traceparent, tracestate and baggage are as the W3C has them",
            ));
        }
        if name != "progressToken" && !(envelope.is_some() && engine_key(name)) {
            raw_key(out, name);
            writer::append_compact(out, value);
            out.push(b',');
        }
    }
    if let Some(envelope) = envelope {
        out.extend_from_slice(envelope);
        out.push(b',');
    }
    if options.progress.is_some() {
        out.extend_from_slice(b"\"progressToken\":");
        number::append(out, key.get());
        out.push(b',');
    }
    if out.len() > start {
        out.pop();
    }
    out.extend_from_slice(b"}}}");
    Ok(())
}

/// The members of `_meta` that say which span a request belongs to. Baggage is the application's, and stays as it is.
pub(crate) const CONTEXT_KEYS: [&str; 2] = ["traceparent", "tracestate"];

/// A `_meta` with that trace context in place of its own; its baggage stays.
pub(crate) fn with_context(own: Option<&str>, context: &TraceContext) -> Box<str> {
    let mut out = b"{".to_vec();
    for (name, value) in own.into_iter().flat_map(reader::members) {
        if !CONTEXT_KEYS.iter().any(|key| name == *key) {
            raw_key(&mut out, name.raw());
            writer::append_compact(&mut out, value);
            out.push(b',');
        }
    }
    out.extend_from_slice(context_members(context).as_bytes());
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default().into()
}

/// The members of a trace context in `_meta`: JSON without the braces.
pub(crate) fn context_members(context: &TraceContext) -> String {
    let mut out = Vec::new();
    raw_key(&mut out, "traceparent");
    string::append(&mut out, &context.parent);
    if let Some(state) = &context.state {
        out.push(b',');
        raw_key(&mut out, "tracestate");
        string::append(&mut out, state);
    }
    String::from_utf8(out).unwrap_or_default()
}

/// Appends one request whose params `write` appends.
#[cfg(all(feature = "server", feature = "client"))]
pub(crate) fn forwarded(
    out: &mut Vec<u8>,
    key: RequestKey,
    method: &str,
    write: impl FnOnce(&mut Vec<u8>, RequestKey),
) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    number::append(out, key.get());
    out.extend_from_slice(b",\"method\":");
    append_method(out, method);
    write(out, key);
    out.push(b'}');
}

/// Appends one notification.
///
/// # Errors
/// If `params` is not a JSON object.
pub(crate) fn notification(
    out: &mut Vec<u8>,
    method: &str,
    params: Option<&str>,
) -> Result<(), RequestError> {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    append_method(out, method);
    append_params(out, params)?;
    out.push(b'}');
    Ok(())
}

fn append_method(out: &mut Vec<u8>, method: &str) {
    match Method::parse(method) {
        // No known name needs escaping.
        Some(method) => {
            out.push(b'"');
            out.extend_from_slice(method.name().as_bytes());
            out.push(b'"');
        }
        None => string::append(out, method),
    }
}

/// Bytes to reserve for what surrounds the params: their name and the usual `_meta`.
const TRAILER_BYTES: usize = 1024;

/// Appends `params` as the next member; returns them without surrounding whitespace.
pub(super) fn append_params<'a>(
    out: &mut Vec<u8>,
    params: Option<&'a str>,
) -> Result<Option<&'a str>, RequestError> {
    let Some(params) = params.map(str::trim_ascii) else {
        return Ok(None);
    };
    // Reserves room for everything that follows, so that large params are not moved.
    out.reserve(params.len() + PADDING + TRAILER_BYTES);
    out.extend_from_slice(b",\"params\":");
    let start = out.len();
    // Validated at the destination, because that has room for padding behind them.
    out.extend_from_slice(params.as_bytes());
    out.extend_from_slice(&[0; PADDING]);
    let copied = out.get(start..).unwrap_or_default();
    if !params.starts_with('{') || validate_head(copied, params.len(), MAX_DEPTH).is_err() {
        return Err(RequestError::Misuse("params must be a JSON object"));
    }
    out.truncate(start + params.len());
    if writer::has_breaks(params.as_bytes()) {
        out.truncate(start);
        writer::append_compact(out, params);
    }
    Ok(Some(params))
}

/// Whether the object may have a member `_meta`; may be `true` without one, never `false` with one.
fn may_hold_meta(params: &str) -> bool {
    let bytes = params.as_bytes();
    memchr::memchr2_iter(b'\\', b'_', bytes)
        .any(|at| matches!(bytes.get(at..), Some([b'\\', ..] | [b'_', b'm', b'e', ..])))
}

/// Appends the members of `params`, each followed by a comma, except `_meta`, whose value is returned.
fn append_all_but_meta<'a>(out: &mut Vec<u8>, params: &'a str) -> Option<&'a str> {
    let mut theirs = None;
    for (name, value) in reader::members(params) {
        if name.raw() == "_meta" {
            theirs = Some(value);
            continue;
        }
        raw_key(out, name.raw());
        writer::append_compact(out, value);
        out.push(b',');
    }
    theirs
}

/// Whether the engine writes this `_meta` member itself.
fn engine_key(name: &str) -> bool {
    matches!(
        name,
        meta::PROTOCOL_VERSION | meta::CLIENT_INFO | meta::CLIENT_CAPABILITIES
    )
}

const MAX_DEPTH: usize = Limits::STDIO.max_depth;

pub(super) fn is_object(json: &str) -> bool {
    json.starts_with('{') && crate::json::validate(json.as_bytes(), MAX_DEPTH).is_ok()
}

fn raw_key(out: &mut Vec<u8>, name: &str) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// R-MET-04, R-MET-05, R-PRG-01.
    #[test]
    fn params_keep_their_members_and_get_the_meta_of_their_revision() {
        let key = RequestKey::from_wire(7).unwrap();
        let config = Config::new(Side::Client, "c", "1");
        let envelope = envelope(&config, Revision::V2026_07_28).unwrap();
        let progress: super::super::ProgressFn = std::sync::Arc::new(|_| ());
        let every_params = [
            "{}",
            " { }\n",
            r#"{"a":1}"#,
            "{\"a\":[1],\r\n \"_met\":\"x\" }",
            r#"{"a":{"_meta":{}},"b":"\\"}"#,
            r#"{"_meta":{"own":1,"progressToken":3},"a":1}"#,
            r#"{"a":1,"_meta":{}}"#,
        ];
        for params in every_params {
            for (envelope, wants_progress, meta) in [
                (None, false, None),
                (None, true, None),
                (None, false, Some(r#"{"more":2}"#)),
                (Some(&*envelope), false, None),
                (Some(&*envelope), true, Some(r#"{ "more":2 }"#)),
            ] {
                let options = RequestOptions {
                    progress: wants_progress.then(|| progress.clone()),
                    meta: meta.map(Box::from),
                    ..RequestOptions::default()
                };
                let mut out = Vec::new();
                request(&mut out, envelope, key, "m\"", Some(params), &options).unwrap();
                assert!(!out.contains(&b'\n') && !out.contains(&b'\r'), "{params}");
                let request: Value = serde_json::from_slice(&out).unwrap();

                let mut expected: Value = serde_json::from_str(params).unwrap();
                let members = expected.as_object_mut().unwrap();
                if envelope.is_some() || wants_progress || meta.is_some() {
                    let theirs = members.entry("_meta").or_insert_with(|| json!({}));
                    let theirs = theirs.as_object_mut().unwrap();
                    theirs.remove("progressToken");
                    if meta.is_some() {
                        theirs.insert("more".into(), json!(2));
                    }
                    if wants_progress {
                        theirs.insert("progressToken".into(), json!(7));
                    }
                    if envelope.is_some() {
                        theirs.insert(meta::PROTOCOL_VERSION.into(), json!("2026-07-28"));
                        let info = json!({"name": "c", "version": "1"});
                        theirs.insert(meta::CLIENT_INFO.into(), info);
                        theirs.insert(meta::CLIENT_CAPABILITIES.into(), json!({}));
                    }
                }
                let whole = json!({"jsonrpc": "2.0", "id": 7, "method": "m\"", "params": expected});
                assert_eq!(request, whole, "{params}");
            }
        }
        for params in ["[]", "{", "{}}", "", "1", "{\"a\":1}x"] {
            let mut out = Vec::new();
            let refused = notification(&mut out, "ping", Some(params));
            assert!(matches!(refused, Err(RequestError::Misuse(_))), "{params}");
        }
    }

    #[test]
    fn a_meta_member_of_params_and_options_is_written_once() {
        let options = RequestOptions {
            meta: Some(r#"{"\u0062":3,"c":4}"#.into()),
            ..RequestOptions::default()
        };
        let (mut out, key) = (Vec::new(), RequestKey::from_wire(7).unwrap());
        let params = Some(r#"{"_meta":{"a":1,"b":2}}"#);
        request(&mut out, None, key, "m", params, &options).unwrap();
        let meta = r#"{"a":1,"\u0062":3,"c":4}"#;
        let expected =
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"m","params":{{"_meta":{meta}}}}}"#);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
