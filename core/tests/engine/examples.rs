//! Messages of revision 2026-07-28 and their parts, from `corpus/messages.json`: a message decodes as
//! that message and encodes as it was; a part is valid, keeps its members, and comes back from the type
//! that holds it.
#![allow(clippy::unwrap_used)]

use mcpbolt::client::{CallToolResult, GetPromptResult};
use mcpbolt::json::{self, reader};
use mcpbolt::message::{Field, Kind, Message, encode};
use mcpbolt::model::{
    Completions, Content, Prompt, Resource, ResourceContents, ResourceTemplate, Tool,
};

const CORPUS: &str = include_str!("../../../corpus/messages.json");

#[test]
fn every_example_decodes_and_encodes_back() {
    let corpus: Vec<serde_json::Value> = serde_json::from_str(CORPUS).unwrap();
    let (mut messages, mut fragments, mut typed) = (0, 0, 0);
    for example in &corpus {
        let (name, value) = (example["is"].as_str().unwrap(), &example["value"]);
        // Indented, as nobody sends it, and as it is sent.
        for text in [
            serde_json::to_string_pretty(value),
            serde_json::to_string(value),
        ] {
            let text = text.unwrap();
            if value.get("jsonrpc").is_some() {
                message(name, &text, value);
            } else {
                fragment(&text, value);
            }
        }
        if value.get("jsonrpc").is_some() {
            messages += 1;
        } else {
            typed += usize::from(through_its_type(name, value));
            fragments += 1;
        }
    }
    assert!(
        messages + fragments >= 129 && messages > 40 && typed > 40,
        "{messages} messages, {fragments} fragments, {typed} of them with a type of their own"
    );
}

/// Checks that a fragment survives the type that holds it; `false` when none does.
fn through_its_type(name: &str, value: &serde_json::Value) -> bool {
    match name {
        "TextContent" | "ImageContent" | "AudioContent" | "EmbeddedResource" | "ResourceLink"
        | "ToolUseContent" | "ToolResultContent" => survives::<Content>(name, value),
        "TextResourceContents" | "BlobResourceContents" => {
            survives::<ResourceContents>(name, value);
        }
        "Tool" => survives::<Tool>(name, value),
        "Resource" => survives::<Resource>(name, value),
        "CallToolResult" => survives::<CallToolResult>(name, value),
        "GetPromptResult" => survives::<GetPromptResult>(name, value),
        "CompleteResult" => survives::<Completions>(name, &value["completion"]),
        "ListToolsResult" => survives::<Vec<Tool>>(name, &value["tools"]),
        "ListResourcesResult" => survives::<Vec<Resource>>(name, &value["resources"]),
        "ListResourceTemplatesResult" => {
            survives::<Vec<ResourceTemplate>>(name, &value["resourceTemplates"]);
        }
        "Prompt" => survives::<Prompt>(name, value),
        "ResourceTemplate" => survives::<ResourceTemplate>(name, value),
        "ListPromptsResult" => survives::<Vec<Prompt>>(name, &value["prompts"]),
        "ReadResourceResult" => survives::<Vec<ResourceContents>>(name, &value["contents"]),
        _ => return false,
    }
    true
}

fn survives<T: serde::de::DeserializeOwned + serde::Serialize>(
    name: &str,
    value: &serde_json::Value,
) {
    let typed: T = serde_json::from_value(value.clone()).unwrap();
    let again = serde_json::to_value(&typed).unwrap();
    assert_eq!(without_false(&again), without_false(value), "{name}");
}

/// The value without members that are `false`, which is what their absence means.
fn without_false(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, value)| **value != Value::Bool(false))
            .map(|(name, value)| (name.clone(), without_false(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_false).collect(),
        other => other.clone(),
    }
}

fn message(name: &str, text: &str, value: &serde_json::Value) {
    let message = Message::parse(text.as_bytes(), 64).unwrap();
    let view = message.as_ref();
    let expected = match (value.get("method").is_some(), value.get("id").is_some()) {
        (true, true) => Kind::Request,
        (true, false) => Kind::Notification,
        _ if value.get("error").is_some() => Kind::Error,
        _ => Kind::Response,
    };
    assert_eq!((view.kind(), view.fault()), (expected, None), "{name}");
    let meta = |key: &str| value.pointer(&format!("/params/_meta/io.modelcontextprotocol~1{key}"));
    let raw = |field| {
        view.raw(field)
            .map(|raw| serde_json::from_str(raw).unwrap())
    };
    let routed = [
        (Field::ProtocolVersion, meta("protocolVersion")),
        (Field::ClientCapabilities, meta("clientCapabilities")),
        (Field::ClientInfo, meta("clientInfo")),
        (Field::SubscriptionId, meta("subscriptionId")),
        (Field::Name, value.pointer("/params/name")),
        (Field::Uri, value.pointer("/params/uri")),
        (Field::ResultType, value.pointer("/result/resultType")),
    ];
    for (field, expected) in routed {
        assert_eq!(raw(field), expected.cloned(), "{field:?} of {name}");
    }
    let mut out = Vec::new();
    match view.kind() {
        Kind::Request => {
            let method = view.method().unwrap();
            encode::request(&mut out, view.id().unwrap(), &method, view.params());
        }
        Kind::Notification => {
            encode::notification(&mut out, &view.method().unwrap(), view.params())
        }
        Kind::Response => encode::response(&mut out, view.id().unwrap(), view.result().unwrap()),
        _ => {
            let error = view.error().unwrap();
            let part = |name| reader::find(error, name);
            let id = view.id().map_or(encode::ErrorId::Omit, encode::ErrorId::Id);
            let code = json::number::as_i64(part("code").unwrap()).unwrap();
            let text = reader::as_str(part("message").unwrap()).unwrap();
            encode::error(&mut out, id, code, &text, part("data"));
        }
    }
    assert!(!out.contains(&b'\n'));
    let again: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(&again, value, "{name}");
}

fn fragment(text: &str, value: &serde_json::Value) {
    json::validate(text.as_bytes(), 64).unwrap();
    let Some(object) = value.as_object() else {
        return;
    };
    let members: serde_json::Map<_, _> = reader::members(text)
        .map(|(key, raw)| {
            (
                key.decode().unwrap().into_owned(),
                serde_json::from_str(raw).unwrap(),
            )
        })
        .collect();
    assert_eq!(&members, object);
}
