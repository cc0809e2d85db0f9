//! The frame of a request of this side, with the `_meta` that its revision wants.

use super::config::Config;
use super::handle::RequestOptions;
use crate::correlate::RequestKey;
use crate::error::RequestError;
use crate::json::{number, reader, string, writer};
use crate::limits::Limits;
use crate::mcp::{Era, Revision, Side, meta};

/// Appends one request. The progress token is the request's own id, which is unique among the
/// active requests (R-PRG-01).
///
/// # Errors
/// When `params` or the options' `_meta` is not a JSON object.
pub(crate) fn request(
    out: &mut Vec<u8>,
    config: &Config,
    revision: Revision,
    key: RequestKey,
    method: &str,
    params: Option<&str>,
    options: &RequestOptions,
) -> Result<(), RequestError> {
    let params = params.map(object).transpose()?;
    let own = options.meta.as_deref().map(str::trim_ascii);
    if own.is_some_and(|own| !is_object(own)) {
        return Err(RequestError::Misuse("_meta must be a JSON object"));
    }
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    number::append(out, key.get());
    out.extend_from_slice(b",\"method\":");
    string::append(out, method);
    let stateless = revision.era() == Era::Stateless && config.side == Side::Client;
    if !stateless && options.progress.is_none() && own.is_none() {
        if let Some(params) = params {
            out.extend_from_slice(b",\"params\":");
            writer::append_compact(out, params);
        }
        out.push(b'}');
        return Ok(());
    }
    out.extend_from_slice(b",\"params\":{");
    let mut theirs = None;
    for (name, value) in params.into_iter().flat_map(reader::members) {
        if name.raw() == "_meta" {
            theirs = Some(value);
            continue;
        }
        raw_key(out, name.raw());
        writer::append_compact(out, value);
        out.push(b',');
    }
    out.extend_from_slice(b"\"_meta\":{");
    let start = out.len();
    for (name, value) in theirs.into_iter().chain(own).flat_map(reader::members) {
        if name.raw() != "progressToken" && !(stateless && engine_key(name.raw())) {
            raw_key(out, name.raw());
            writer::append_compact(out, value);
            out.push(b',');
        }
    }
    if stateless {
        raw_key(out, meta::PROTOCOL_VERSION);
        string::append(out, revision.name());
        out.push(b',');
        raw_key(out, meta::CLIENT_INFO);
        writer::append_compact(out, &config.implementation);
        out.push(b',');
        raw_key(out, meta::CLIENT_CAPABILITIES);
        writer::append_compact(out, config.capabilities(revision));
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

/// Whether the engine writes that `_meta` member itself.
fn engine_key(name: &str) -> bool {
    matches!(
        name,
        meta::PROTOCOL_VERSION | meta::CLIENT_INFO | meta::CLIENT_CAPABILITIES
    )
}

/// `params` without the whitespace around them, if they are a JSON object.
pub(super) fn object(params: &str) -> Result<&str, RequestError> {
    let params = params.trim_ascii();
    match is_object(params) {
        true => Ok(params),
        false => Err(RequestError::Misuse("params must be a JSON object")),
    }
}

fn is_object(json: &str) -> bool {
    json.starts_with('{') && crate::json::validate(json.as_bytes(), Limits::STDIO.max_depth).is_ok()
}

fn raw_key(out: &mut Vec<u8>, name: &str) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}
