//! Requests of the action dialect over HTTP, at the same endpoint: `POST` for one answer or a stream of its
//! parts, `GET` of `…/stream` for clients that can only GET.
//!
//! | part of a request | meaning |
//! |---|---|
//! | `MCP-Version`, `MCP-Min-Version` | it is an action; the versions that the client speaks (R-ACT-38) |
//! | a body that is not JSON-RPC and names an action | the request is an action of any version |
//! | `Accept: text/event-stream` without `application/json` | the answer is sent as events (R-ACT-24) |
//! | `If-None-Match` | the schema that the client already has |
//! | `Last-Event-ID`, in a `GET` of `…/stream` | the event after which to resume a broken stream |

use hyper::header::{HeaderMap, HeaderName};

use super::headers::{ACTION_MIN_VERSION, ACTION_VERSION};
use super::refusal::{BAD_ACTION, HttpRefusal};
use crate::action::encode;
use crate::action::{Version, negotiate};
use crate::json::{reader, string, writer};

/// The agreed version, in the notation that the client used (R-ACT-37, R-ACT-38).
///
/// # Errors
/// Why there is no common version.
pub fn version(headers: &HeaderMap) -> Result<String, HttpRefusal> {
    agreed(headers).map_err(|why| {
        let all = Version::SUPPORTED.iter().map(|it| format!("\"{it}\""));
        let all: Vec<_> = all.collect();
        HttpRefusal {
            details: Some(format!("{{\"supported\":[{}]}}", all.join(","))),
            ..BAD_ACTION.because(why)
        }
    })
}

fn agreed(headers: &HeaderMap) -> Result<String, String> {
    let said = |name: &HeaderName| {
        let value = headers.get(name)?;
        Some(value.to_str().unwrap_or("?").trim().to_owned())
    };
    let parse = |text: &String| {
        text.parse::<Version>()
            .map_err(|why| format!("{text:?}: {why}"))
    };
    let oldest = said(&ACTION_MIN_VERSION);
    let oldest = oldest.as_ref().map(parse).transpose()?;
    let Some(asked) = said(&ACTION_VERSION) else {
        let newest = Version::SUPPORTED.last();
        return Ok(newest.map(ToString::to_string).unwrap_or_default());
    };
    let agreed = negotiate(&Version::SUPPORTED, parse(&asked)?, oldest);
    let agreed = agreed.ok_or("this version of the protocol is not spoken here")?;
    Ok(agreed.written_like(&asked))
}

/// The action that a query asks for.
#[derive(Debug)]
pub struct QueriedAction {
    pub action: String,
    pub tool: Option<String>,
    /// The query as a request message.
    pub request: Vec<u8>,
}

/// Builds the request that a query stands for (R-ACT-24, R-ACT-27). `of` returns the schema of an
/// action; a parameter whose schema names a type other than string is read as JSON.
///
/// # Errors
/// Why the query is not a valid request.
pub fn of_query(
    query: &str,
    of: impl FnOnce(&str) -> Option<String>,
) -> Result<QueriedAction, &'static str> {
    let (mut reserved, mut params) = ([None, None, None, None], Vec::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (unescaped(name)?, unescaped(value)?);
        let place = ["action", "tool", "context", "request_id"]
            .iter()
            .position(|own| *own == name);
        let taken = match place.and_then(|place| reserved.get_mut(place)) {
            Some(place) => place.replace(value).is_some(),
            None => {
                let taken = params.iter().any(|(own, _)| *own == name);
                params.push((name, value));
                taken
            }
        };
        if taken {
            return Err("the query has a parameter more than once");
        }
    }
    let [action, tool, context, id] = reserved;
    let schema = action.as_deref().and_then(of).unwrap_or_default();
    let mut json = b"{".to_vec();
    for (name, value) in &params {
        if json.len() > 1 {
            json.push(b',');
        }
        string::append(&mut json, name);
        json.push(b':');
        match wants_string(&schema, name) || crate::json::validate(value.as_bytes(), 64).is_err() {
            true => string::append(&mut json, value),
            false => writer::append_compact(&mut json, value),
        }
    }
    json.push(b'}');
    let params = String::from_utf8(json).unwrap_or_default();
    let metadata = id.map(|id| {
        let mut metadata = b"{\"request_id\":".to_vec();
        string::append(&mut metadata, &id);
        metadata.push(b'}');
        String::from_utf8(metadata).unwrap_or_default()
    });
    let action = action.ok_or("the query names no action")?;
    let mut request = Vec::new();
    let parts = encode::RequestParts {
        tool: tool.as_deref(),
        context: context.as_deref(),
        metadata: metadata.as_deref(),
    };
    encode::request(&mut request, &action, &params, parts);
    Ok(QueriedAction {
        action,
        tool,
        request,
    })
}

/// Whether the schema declares a parameter as a string, or does not declare its type.
fn wants_string(schema: &str, name: &str) -> bool {
    let kind = reader::find_path(schema, &["properties", name, "type"]);
    kind.is_none_or(|kind| kind == "\"string\"")
}

fn unescaped(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let both = (digit(rest.next()), digit(rest.next()));
                let (Some(high), Some(low)) = both else {
                    return Err("% is followed by two hexadecimal digits");
                };
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| "the query is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<String, &'static str> {
        let schema = r#"{"properties":{"count":{"type":"integer"},"name":{"type":"string"}}}"#;
        let asked = of_query(query, |_| Some(schema.to_owned()))?;
        Ok(String::from_utf8(asked.request).unwrap())
    }

    /// R-ACT-24, R-ACT-27: parameters are strings, or JSON where the schema wants another type.
    #[test]
    fn a_query_is_a_request() {
        for (query, request) in [
            (
                "action=llm.generate&prompt=Write%20a%20story",
                r#"{"action":"llm.generate","params":{"prompt":"Write a story"}}"#,
            ),
            (
                "action=a&count=3&name=3&other=true",
                r#"{"action":"a","params":{"count":3,"name":"3","other":"true"}}"#,
            ),
            (
                "count=three&action=a",
                r#"{"action":"a","params":{"count":"three"}}"#,
            ),
            (
                "action=a&tool=t&context=c+d&request_id=r%22",
                r#"{"action":"a","params":{},"tool":"t","context":"c d","metadata":{"request_id":"r\""}}"#,
            ),
            ("action=a&flag", r#"{"action":"a","params":{"flag":""}}"#),
        ] {
            assert_eq!(read(query).as_deref(), Ok(request), "{query}");
        }
        for query in [
            "",
            "prompt=x",
            "action=a&x=1&x=2",
            "action=a&action=b",
            "action=%ff",
            "action=%2",
        ] {
            assert!(read(query).is_err(), "{query}");
        }
    }
}
