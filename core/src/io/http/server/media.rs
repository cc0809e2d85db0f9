//! Media types: the type of a request body, and the types of answer that a client accepts.

use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap};

use super::refusal::{HttpRefusal, NOT_ACCEPTED_BOTH};

pub const JSON: &str = "application/json";
pub const EVENTS: &str = "text/event-stream";
/// The `Accept` value that most clients send.
const BOTH: &str = "application/json, text/event-stream";

/// Whether the `Content-Type` is JSON (R-HTP-02).
pub fn is_json(headers: &HeaderMap) -> bool {
    let mut all = headers.get_all(CONTENT_TYPE).iter().peekable();
    all.peek().is_some()
        && all.all(|kind| {
            kind == JSON
                || kind
                    .to_str()
                    .is_ok_and(|kind| essence(kind).eq_ignore_ascii_case(JSON))
        })
}

/// Checks that a client that posts a JSON-RPC message accepts the answer in either form (R-HTP-03).
///
/// # Errors
/// When `Accept` excludes one of the two.
pub fn check_accept(headers: &HeaderMap) -> Result<(), HttpRefusal> {
    let is_usual = || headers.get(ACCEPT).is_some_and(|said| said == BOTH);
    match is_usual() || accepts(headers, JSON) && accepts(headers, EVENTS) {
        true => Ok(()),
        false => Err(NOT_ACCEPTED_BOTH),
    }
}

/// A media type without its parameters.
fn essence(kind: &str) -> &str {
    kind.split(';').next().unwrap_or_default().trim()
}

/// Whether a media range or a coding has a weight above zero, which it has without `q` (RFC 9110,
/// 12.4.2).
pub fn has_weight(range: &str) -> bool {
    let weight = range.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_weight = name.trim().eq_ignore_ascii_case("q");
        value.trim().parse::<f32>().ok().filter(|_| is_weight)
    });
    weight.is_none_or(|weight| weight > 0.0)
}

/// How closely a media range names that type, if it does: 2 for the type itself, 1 for its family, 0
/// for any type.
fn closeness(range: &str, kind: &str) -> Option<u8> {
    let range = essence(range);
    let family = kind.split('/').next().unwrap_or_default();
    if range.eq_ignore_ascii_case(kind) {
        return Some(2);
    }
    match range.strip_suffix("/*")? {
        "*" => Some(0),
        own => own.eq_ignore_ascii_case(family).then_some(1),
    }
}

/// Whether the client accepts an answer of that type; without `Accept` it accepts any. The range that
/// names the type most closely decides (RFC 9110, 12.5.1).
pub fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let mut all = headers.get_all(ACCEPT).iter().peekable();
    let nothing_said = all.peek().is_none();
    let ranges = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let closest = ranges
        .filter_map(|range| Some((closeness(range, kind)?, has_weight(range))))
        .max();
    nothing_said || closest.is_some_and(|(_, is_wanted)| is_wanted)
}

/// Whether the client accepts the answer to an action only as events.
pub fn wants_only_events(headers: &HeaderMap) -> bool {
    let mut all = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|it| it.to_str().ok());
    let mut events = false;
    let json = all.any(|value| {
        events |= value.contains(EVENTS);
        value.contains(JSON) || value.contains("*/*")
    });
    events && !json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_with_weight_zero_is_not_accepted() {
        for (said, accepted) in [
            ("application/json", true),
            ("application/json;q=0", false),
            ("Application/JSON; Q=0.0", false),
            ("application/json;q=0.1", true),
            ("application/json;charset=utf-8", true),
            ("application/json;q=0, */*", false),
            ("*/*;q=0, application/json", true),
            ("application/*;q=0, */*", false),
            ("application/*", true),
            ("*/*", true),
            ("*/*;q=0", false),
            ("text/*", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, said.parse().unwrap())]);
            assert_eq!(accepts(&headers, JSON), accepted, "{said}");
        }
        assert!(accepts(&HeaderMap::new(), JSON));
    }
}
