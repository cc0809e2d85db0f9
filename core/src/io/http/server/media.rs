//! Media types: the type of a request body, and the types of answer that a client accepts.

use hyper::header::HeaderValue;

use super::refusal::{HttpRefusal, NOT_ACCEPTED_BOTH};

pub const JSON: &str = "application/json";
pub const EVENTS: &str = "text/event-stream";

/// The type of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    Json,
    Events,
}

impl MediaType {
    /// The value of `Content-Type`.
    pub fn content_type(self) -> HeaderValue {
        const OF_JSON: HeaderValue = HeaderValue::from_static(JSON);
        const OF_EVENTS: HeaderValue = HeaderValue::from_static(EVENTS);
        match self {
            Self::Json => OF_JSON,
            Self::Events => OF_EVENTS,
        }
    }
}

/// The `Accept` value that most clients send.
const BOTH: &str = "application/json, text/event-stream";

/// Whether the values of `Content-Type` are JSON (R-HTP-02).
pub fn is_json(kinds: &[&HeaderValue]) -> bool {
    let is_json = |kind: &&HeaderValue| {
        *kind == JSON
            || kind
                .to_str()
                .is_ok_and(|kind| essence(kind).eq_ignore_ascii_case(JSON))
    };
    !kinds.is_empty() && kinds.iter().all(is_json)
}

/// Checks that a client that posts a JSON-RPC message accepts the answer in either form, by the values of its
/// `Accept` (R-HTP-03).
///
/// # Errors
/// When they exclude one of the two.
pub fn check_accept(said: &[&HeaderValue]) -> Result<(), HttpRefusal> {
    let is_usual = said.first().is_some_and(|said| *said == BOTH);
    match is_usual || accepts(said, JSON) && accepts(said, EVENTS) {
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

/// Whether a client whose `Accept` has these values accepts an answer of that type; without `Accept` it accepts
/// any. The range that names the type most closely decides (RFC 9110, 12.5.1).
pub fn accepts(said: &[&HeaderValue], kind: &str) -> bool {
    let ranges = said
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let closest = ranges
        .filter_map(|range| Some((closeness(range, kind)?, has_weight(range))))
        .max();
    said.is_empty() || closest.is_some_and(|(_, is_wanted)| is_wanted)
}

/// Whether the client accepts the answer to an action only as events.
pub fn wants_only_events(said: &[&HeaderValue]) -> bool {
    let mut all = said.iter().filter_map(|it| it.to_str().ok());
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
            let value = said.parse().unwrap();
            assert_eq!(accepts(&[&value], JSON), accepted, "{said}");
        }
        assert!(accepts(&[], JSON));
    }
}
