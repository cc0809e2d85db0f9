//! The expected results, computed with serde_json and without the engine's code.

use std::fmt;

use mcpbolt::message::{Field, Kind};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Whether `bytes` is one JSON text in UTF-8.
pub fn accepts(bytes: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(bytes).is_ok()
}

/// The members of an object, including duplicates; `None` if serde_json cannot read a key
/// (lone surrogates).
pub fn members(raw: &str) -> Option<Vec<(String, &str)>> {
    let members: Members<'_> = serde_json::from_str(raw).ok()?;
    Some(members.0)
}

/// The elements of an array; empty for any other value.
pub fn elements(raw: &str) -> Vec<&str> {
    let elements: Vec<&RawValue> = serde_json::from_str(raw).unwrap_or_default();
    elements.into_iter().map(RawValue::get).collect()
}

struct Members<'a>(Vec<(String, &'a str)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Vec<(String, &'de str)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut all = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                    all.push((key, value.get()));
                }
                Ok(all)
            }
        }
        deserializer.deserialize_map(All).map(Members)
    }
}

/// The expected classification of a message.
#[derive(Debug)]
pub struct Verdict<'a> {
    /// The kind of message.
    pub kind: Kind,
    /// The first occurrences of the recorded members, without a malformed id.
    pub fields: Vec<(Field, &'a str)>,
    /// Whether a recorded member occurs twice by its decoded name.
    pub repeated: bool,
}

const META: &str = "io.modelcontextprotocol/";

/// Classifies a valid JSON text; `None` if serde_json cannot read a key or string.
pub fn classify(text: &str) -> Option<Verdict<'_>> {
    let trimmed = text.trim_matches([' ', '\t', '\r', '\n']);
    let mut verdict = Verdict {
        kind: Kind::Invalid,
        fields: Vec::new(),
        repeated: false,
    };
    if trimmed.starts_with('[') {
        verdict.kind = Kind::Batch;
    }
    if !trimmed.starts_with('{') {
        return Some(verdict);
    }
    use Field::*;
    let top = [
        ("jsonrpc", Version),
        ("id", Id),
        ("method", Method),
        ("params", Params),
        ("result", Result),
        ("error", Error),
    ];
    verdict.note(trimmed, "", &top)?;
    if let Some(params) = verdict.get(Params).filter(|raw| raw.starts_with('{')) {
        let names = [
            ("name", Name),
            ("uri", Uri),
            ("arguments", Arguments),
            ("cursor", Cursor),
            ("requestId", RequestId),
            ("progressToken", Progress),
            ("_meta", Meta),
        ];
        verdict.note(params, "", &names)?;
    }
    if let Some(meta) = verdict.get(Meta).filter(|raw| raw.starts_with('{')) {
        let names = [
            ("progressToken", ProgressToken),
            ("traceparent", Traceparent),
            ("tracestate", Tracestate),
            ("baggage", Baggage),
        ];
        verdict.note(meta, "", &names)?;
        let names = [
            ("protocolVersion", ProtocolVersion),
            ("clientCapabilities", ClientCapabilities),
            ("clientInfo", ClientInfo),
            ("logLevel", LogLevel),
            ("subscriptionId", SubscriptionId),
        ];
        verdict.note(meta, META, &names)?;
    }
    if let Some(result) = verdict.get(Result).filter(|raw| raw.starts_with('{')) {
        verdict.note(result, "", &[("resultType", ResultType)])?;
    }
    if let Some(error) = verdict.get(Error).filter(|raw| raw.starts_with('{')) {
        let names = [
            ("code", ErrorCode),
            ("message", ErrorMessage),
            ("data", ErrorData),
        ];
        verdict.note(error, "", &names)?;
    }
    verdict.decide()?;
    Some(verdict)
}

impl<'a> Verdict<'a> {
    fn get(&self, field: Field) -> Option<&'a str> {
        let found = self.fields.iter().find(|(f, _)| *f == field);
        found.map(|(_, raw)| *raw)
    }

    fn note(&mut self, object: &'a str, prefix: &str, names: &[(&str, Field)]) -> Option<()> {
        for (key, raw) in members(object)? {
            let Some(name) = key.strip_prefix(prefix) else {
                continue;
            };
            if let Some((_, field)) = names.iter().find(|(n, _)| *n == name) {
                match self.get(*field) {
                    Some(_) => self.repeated = true,
                    None => self.fields.push((*field, raw)),
                }
            }
        }
        Some(())
    }

    fn decide(&mut self) -> Option<()> {
        let string = |raw: &str| raw.starts_with('"');
        let integer = |raw: &str| {
            raw.trim_start_matches('-')
                .bytes()
                .all(|b| b.is_ascii_digit())
        };
        let id = self.get(Field::Id);
        let good_id = id.is_some_and(|raw| (string(raw) || integer(raw)) && raw.len() <= 4096);
        if !good_id {
            self.fields.retain(|(field, _)| *field != Field::Id);
        }
        let version = self.get(Field::Version).unwrap_or("0");
        if string(version) {
            // serde_json does not read a string with a lone surrogate, which is not "2.0" anyway.
            serde_json::from_str::<String>(version).ok()?;
        }
        if self.repeated || serde_json::from_str::<String>(version).ok().as_deref() != Some("2.0") {
            return Some(());
        }
        let object = |raw: &str| raw.starts_with('{');
        let (method, params) = (self.get(Field::Method), self.get(Field::Params));
        self.kind = match (method, self.get(Field::Result), self.get(Field::Error)) {
            (Some(method), None, None) if string(method) && params.is_none_or(object) => match id {
                None => Kind::Notification,
                Some(_) if good_id => Kind::Request,
                Some(_) => Kind::Invalid,
            },
            (None, Some(result), None) if object(result) && good_id => Kind::Response,
            (None, None, Some(error))
                if object(error) && (good_id || matches!(id, None | Some("null"))) =>
            {
                match (self.get(Field::ErrorCode), self.get(Field::ErrorMessage)) {
                    (Some(code), Some(message)) if integer(code) && string(message) => Kind::Error,
                    _ => Kind::Invalid,
                }
            }
            _ => Kind::Invalid,
        };
        Some(())
    }
}
